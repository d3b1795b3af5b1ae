"""Reports on programs. ``thunder.examine(fn, *args)`` tells which operations a program is made of.

The names are those of :mod:`thunder_examine`.
"""

import sys
from types import ModuleType
from typing import Any

try:
    from thunder_examine import *  # noqa: F403
    from thunder_examine import OperationsReport, examine
except ImportError as error:
    raise ImportError("thunder.examine needs thunder-examine: pip install 'thunder-jit[examine]'") from error


class _CallableModule(ModuleType):
    def __call__(self, fn: Any, *args: Any, **kwargs: Any) -> OperationsReport:
        return examine(fn, *args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
