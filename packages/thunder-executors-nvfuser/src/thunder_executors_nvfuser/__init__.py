"""Compiles regions of a program by nvFuser. Imports no nvFuser by itself."""

from thunder_executors_nvfuser._version import __version__
from thunder_executors_nvfuser.availability import missing
from thunder_executors_nvfuser.executor import NvFuserExecutor, executor, fusions_of, get_fusion_source
from thunder_executors_nvfuser.fusions import Fusion

__all__ = ["Fusion", "NvFuserExecutor", "__version__", "executor", "fusions_of", "get_fusion_source", "missing"]
