"""Reports on programs. ``thunder.examine(fn, *args)`` tells which operations a program is made of.

The names are those of :mod:`thunder_examine`, and what Lightning Thunder has here of nvFuser's regions.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from thunder_ir import Trace

try:
    from thunder_examine import *  # noqa: F403
    from thunder_examine import OperationsReport, examine
except ImportError as error:
    raise ImportError("thunder.examine needs thunder-examine: pip install 'thunder-jit[examine]'") from error


def get_nvfuser_fusion_definition(trace: Trace, name: str) -> Any:
    """Return the definition by which nvFuser ran a region last; see :mod:`thunder_executors_nvfuser`."""
    return _nvfuser().get_nvfuser_fusion_definition(trace, name)


def get_nvfuser_repro(trace: Trace, name: str) -> str:
    """Return a Python program that runs a region by nvFuser; see :mod:`thunder_executors_nvfuser`."""
    found: str = _nvfuser().get_nvfuser_repro(trace, name)
    return found


def _nvfuser() -> Any:
    try:
        return import_module("thunder_executors_nvfuser")
    except ModuleNotFoundError as error:
        raise ImportError("it needs thunder-executors-nvfuser: pip install thunder-executors-nvfuser") from error


class _CallableModule(ModuleType):
    def __call__(self, fn: Any, *args: Any, **kwargs: Any) -> OperationsReport:
        return examine(fn, *args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
