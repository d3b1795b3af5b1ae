"""Softmax over the last dimension by a kernel, and its derivative."""

from __future__ import annotations

from typing import Any

import torch

from thunder_executors import Declined
from thunder_executors_triton.executor import LONGEST, executor, fits, floating
from thunder_executors_triton.kernels_by_name import kernel
from thunder_ir import TensorProxy
from thunder_torch import symbol_of


def run_softmax(x: torch.Tensor) -> torch.Tensor:
    """Launch the kernel; see ``kernels.softmax``."""
    y: torch.Tensor = kernel("softmax_forward")(x)
    return y


def run_softmax_backward(dy: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Launch the kernel; see ``kernels.softmax``."""
    dx: torch.Tensor = kernel("softmax_backward")(dy, y)
    return dx


softmax_forward = executor.register_operator("softmax_forward", meta=lambda x: x.like(), fn=run_softmax)
softmax_backward = executor.register_operator("softmax_backward", meta=lambda dy, y: y.like(), fn=run_softmax_backward)


def takes_softmax(a: TensorProxy, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> bool | Declined:
    """Whether the kernel takes this softmax."""
    answer = fits(a) and floating(a)
    if not answer:
        return answer
    if dtype is not None or dim not in (-1, a.ndim - 1) or a.ndim == 0:
        return Declined("it takes softmax over the last dimension, in the dtype of its input")
    return a.shape[-1] <= LONGEST or Declined(f"its rows have at most {LONGEST} elements")


def softmax(a: TensorProxy, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> tuple[Any, Any]:
    """Save the output."""
    y = softmax_forward(a)
    return y, lambda dy: softmax_backward(dy, y)


executor.runs_by_rule(symbol_of(torch.nn.functional.softmax), softmax, takes_softmax)
executor.runs_by_rule(symbol_of(torch.softmax), softmax, lambda a, dim, dtype=None: takes_softmax(a, dim, 3, dtype))
