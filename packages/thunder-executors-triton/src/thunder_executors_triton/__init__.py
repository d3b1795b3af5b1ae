"""Fused kernels in Triton, and the executor that runs functions of PyTorch by them. Imports no Triton by itself."""

from thunder_executors_triton import functions, loss, normalization, softmax
from thunder_executors_triton._version import __version__
from thunder_executors_triton.availability import missing
from thunder_executors_triton.errors import KernelError
from thunder_executors_triton.executor import executor
from thunder_executors_triton.fusion_executor import fusion_executor
from thunder_executors_triton.kernels_by_name import kernel

__all__ = [
    "KernelError",
    "__version__",
    "executor",
    "functions",
    "fusion_executor",
    "kernel",
    "loss",
    "missing",
    "normalization",
    "softmax",
]
