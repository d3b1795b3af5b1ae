"""Runs every prim, and every function of the torch language, by calling PyTorch directly."""

import thunder_executors_torch._internals_needed  # noqa: F401  (first, so that what PyTorch lacks fails no other import)
from thunder_executors_torch import (
    activation,
    attention,
    batch_normalization,
    broadcasting,
    comparison,
    conditional,
    conversion,
    convolution,
    creation,
    debug,
    dropout,
    elementwise_binary,
    elementwise_unary,
    factorization,
    fft,
    gathering,
    indexing,
    linalg,
    loss,
    masks,
    nn,
    normalization,
    pooling,
    random,
    reduction,
    scan,
    shape,
    small_gelu,
    sort,
    special,
)
from thunder_executors_torch._version import __version__
from thunder_executors_torch.executor import TorchExecutor, executor

__all__ = [
    "TorchExecutor", "__version__", "activation", "attention", "batch_normalization", "broadcasting", "comparison",
    "conditional", "conversion", "convolution", "creation", "debug", "dropout", "elementwise_binary",
    "elementwise_unary", "executor", "factorization", "fft", "gathering", "indexing", "linalg", "loss", "masks", "nn",
    "normalization", "pooling", "random", "reduction", "scan", "shape", "small_gelu", "sort", "special",
]  # fmt: skip
