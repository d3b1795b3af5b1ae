"""Products of matrices and convolutions of single points by oneDNN, on CPUs for which PyTorch's own library has no code for their widest vectors."""

from thunder_executors_onednn._version import __version__
from thunder_executors_onednn.availability import is_faster_here, missing
from thunder_executors_onednn.executor import executor

__all__ = ["__version__", "executor", "is_faster_here", "missing"]
