"""What executes opaque calls, in a module whose dotted path generated code can follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def run(call: Callable[..., Any], *values: Any) -> Any:
    """Run a call on its values."""
    return call(*values)


__all__ = ["run"]
