"""The builtins as they were when the interpreter was imported.

A module that imports ``__builtins__`` from here does not notice when the code it interprets patches ``builtins.len``.
"""

import builtins
from typing import Any

__builtins__: dict[str, Any] = dict(vars(builtins))  # type: ignore[no-redef]
