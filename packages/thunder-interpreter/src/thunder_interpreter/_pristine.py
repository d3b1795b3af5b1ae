"""The builtins as they were when the interpreter was imported."""

import builtins
from typing import Any

BUILTINS: dict[str, Any] = dict(vars(builtins))


def replaced_builtins() -> list[str]:
    """The names of the builtins that are others now."""
    now = vars(builtins)
    return [name for name, value in BUILTINS.items() if now.get(name) is not value]


def keep_builtins(namespace: dict[str, Any]) -> None:
    """Let the functions that a module defines from here on use builtins that interpreted code cannot patch.

    Args:
        namespace: the globals of the module.
    """
    namespace["__builtins__"] = BUILTINS
