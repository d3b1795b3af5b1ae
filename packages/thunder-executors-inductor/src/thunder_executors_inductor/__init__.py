"""Compiles regions of a program by PyTorch's Inductor."""

from thunder_executors_inductor._version import __version__
from thunder_executors_inductor.executor import (
    InductorExecutor,
    inductor,
    torchcompile,
    torchcompile_cat,
    torchcompile_xentropy,
)

__all__ = ["InductorExecutor", "__version__", "inductor", "torchcompile", "torchcompile_cat", "torchcompile_xentropy"]
