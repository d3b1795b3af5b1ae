"""The builtins as they were when the interpreter was imported."""

import builtins
from typing import Any

BUILTINS: dict[str, Any] = dict(vars(builtins))


def keep_builtins(namespace: dict[str, Any]) -> None:
    """Let the functions that a module defines from here on use builtins that interpreted code cannot patch.

    Args:
        namespace: the globals of the module.
    """
    namespace["__builtins__"] = BUILTINS
