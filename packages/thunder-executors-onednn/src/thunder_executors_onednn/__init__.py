"""Products of matrices by oneDNN, where the library that PyTorch asks has no code for the widest vectors of a CPU."""

from thunder_executors_onednn._version import __version__
from thunder_executors_onednn.availability import is_faster_here, missing
from thunder_executors_onednn.executor import executor

__all__ = ["__version__", "executor", "is_faster_here", "missing"]
