"""Runs the calls of a finished program one after the other in native code, by PyTorch's C interface."""

from thunder_native._version import __version__
from thunder_native.executor import NativeExecutor, executor, join_calls

__all__ = ["NativeExecutor", "__version__", "executor", "join_calls"]
