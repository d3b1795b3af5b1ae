"""Runs regions of programs as kernels compiled by LLVM, in PyTorch's threads and with its vector mathematics."""

import thunder_executors_llvm._internals_needed  # noqa: F401  (first, so that what PyTorch lacks fails no other import)
from thunder_executors_llvm._version import __version__
from thunder_executors_llvm.executor import LlvmExecutor, executor

__all__ = ["LlvmExecutor", "__version__", "executor"]
