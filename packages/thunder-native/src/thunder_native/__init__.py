"""Runs the calls of a finished program one after the other in native code, by PyTorch's C interface."""

from thunder_native import guards, rows  # noqa: F401  # to have them registered
from thunder_native._version import __version__
from thunder_native.executor import NativeExecutor, executor, join_calls
from thunder_native.registry import dispatched, lowering

__all__ = ["NativeExecutor", "__version__", "dispatched", "executor", "join_calls", "lowering"]
