"""Where a Python callable can be found again by a dotted path, so that generated code calls it directly."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

_MISSING = object()


def resolve(path: str) -> Any:
    """Return what a dotted path stands for: the longest loaded module in it, then attributes; ``None`` if nothing does.

    Example:
        >>> from thunder_executors.paths import resolve
        >>> import operator
        >>> resolve("operator.add") is operator.add, resolve("operator.nothing")
        (True, None)
    """
    home = path
    names: list[str] = []
    while home not in sys.modules and "." in home:
        home, _, name = home.rpartition(".")
        names.insert(0, name)
    found: Any = sys.modules.get(home)
    for name in names:
        found = getattr(found, name, _MISSING)
        if found is _MISSING:
            return None
    return found


def find_path(function: Callable[..., Any], modules: Iterable[str] = ()) -> str:
    """Return a dotted path under which ``function`` itself is found, or ``""``.

    Args:
        function: any callable; a lambda or a local function has no path.
        modules: where to look before its own module (a public home, such as ``"torch.nn.functional"``).

    Example:
        >>> from thunder_executors.paths import find_path
        >>> import math
        >>> find_path(math.sqrt), find_path(lambda x: x)
        ('math.sqrt', '')
    """
    name = getattr(function, "__name__", "")
    qualified = getattr(function, "__qualname__", name)
    home = getattr(function, "__module__", None)
    candidates = [f"{module}.{name}" for module in modules]
    if isinstance(home, str) and home and home != "__main__":
        candidates += [f"{home}.{qualified}"]
    for candidate in candidates:
        if candidate.isascii() and candidate.replace(".", "_").isidentifier() and resolve(candidate) is function:
            return candidate
    return ""
