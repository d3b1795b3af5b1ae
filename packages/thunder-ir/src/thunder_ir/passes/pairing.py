"""Old outputs and what takes their place, walked side by side."""

from __future__ import annotations

from typing import Any

from thunder_ir.errors import VerificationError
from thunder_ir.proxies import Proxy


def pair_outputs(old: Any, new: Any, found: dict[str, Any]) -> None:
    """Add to ``found`` what stands in ``new`` where ``old`` has a proxy, under the proxy's name.

    Raises:
        VerificationError: ``new`` has another structure.
    """
    if isinstance(old, Proxy):
        found[old.name] = new
    elif isinstance(old, (tuple, list)):
        if not isinstance(new, (tuple, list)) or len(old) != len(new):
            raise VerificationError(f"{_shown(new)} cannot take the place of a sequence of {len(old)} outputs")
        for one, other in zip(old, new, strict=True):
            pair_outputs(one, other, found)
    elif isinstance(old, dict):
        if not isinstance(new, dict) or old.keys() != new.keys():
            raise VerificationError(f"{_shown(new)} cannot take the place of a dict of {len(old)} outputs")
        for key, one in old.items():
            pair_outputs(one, new[key], found)


def _shown(value: Any) -> str:
    return f"a sequence of {len(value)}" if isinstance(value, (tuple, list)) else f"a {type(value).__name__}"


def renaming(found: dict[str, Any], defined: set[str]) -> dict[str, Proxy]:
    """Return which new values can have the name of the first old one that they replaced.

    Args:
        found: for the names of old values, what took their place.
        defined: the names of new values.
    """
    renames: dict[str, Proxy] = {}
    for old, new in found.items():
        if isinstance(new, Proxy) and new.name in defined and old not in defined and new.name not in renames:
            renames[new.name] = new.renamed(old)
    return renames
