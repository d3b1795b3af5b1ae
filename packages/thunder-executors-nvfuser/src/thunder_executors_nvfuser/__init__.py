"""Compiles regions of a program by nvFuser. Imports no nvFuser by itself."""

from thunder_executors_nvfuser._version import __version__
from thunder_executors_nvfuser.availability import missing
from thunder_executors_nvfuser.executor import (
    NvFuserExecutor,
    executor,
    fusions_of,
    get_fusion_source,
    get_nvfuser_fusion_definition,
    get_nvfuser_repro,
)
from thunder_executors_nvfuser.fusions import Fusion
from thunder_executors_nvfuser.settings import Settings

__all__ = [
    "Fusion", "NvFuserExecutor", "Settings", "__version__", "executor", "fusions_of", "get_fusion_source",
    "get_nvfuser_fusion_definition", "get_nvfuser_repro", "missing",
]  # fmt: skip
