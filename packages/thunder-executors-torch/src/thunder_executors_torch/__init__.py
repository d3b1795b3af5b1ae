"""Runs every prim, and every function of the torch language, by calling PyTorch directly."""

from thunder_executors_torch import (
    comparison,
    conditional,
    conversion,
    convolution,
    creation,
    debug,
    elementwise_binary,
    elementwise_unary,
    factorization,
    fft,
    gathering,
    indexing,
    linalg,
    nn,
    pooling,
    random,
    reduction,
    scan,
    shape,
    sort,
    special,
)
from thunder_executors_torch._version import __version__
from thunder_executors_torch.executor import TorchExecutor, executor

__all__ = [
    "TorchExecutor", "__version__", "comparison", "conditional", "conversion", "convolution", "creation", "debug",
    "elementwise_binary", "elementwise_unary", "executor", "factorization", "fft", "gathering", "indexing", "linalg",
    "nn", "pooling", "random", "reduction", "scan", "shape", "sort", "special",
]  # fmt: skip
