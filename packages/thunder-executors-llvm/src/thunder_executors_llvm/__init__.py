"""Runs regions of programs as kernels compiled by LLVM, in PyTorch's threads and with its vector mathematics."""

from thunder_executors_llvm._version import __version__
from thunder_executors_llvm.executor import LlvmExecutor, executor

__all__ = ["LlvmExecutor", "__version__", "executor"]
