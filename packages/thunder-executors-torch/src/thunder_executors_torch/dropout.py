"""The derivative of dropout: a mask of one byte per element is saved."""

from __future__ import annotations

from typing import Any

import torch

from thunder_autograd import vjp_rule
from thunder_executors_torch.executor import executor
from thunder_executors_torch.normalization import floating
from thunder_ir import OpTags, TensorProxy, dtypes

Rule = tuple[Any, Any]


def _dropout(a: TensorProxy, p: float, train: bool) -> tuple[TensorProxy, TensorProxy]:
    return a.like(), a.like(dtype=dtypes.bool8)


def _dropout_backward(dy: TensorProxy, mask: TensorProxy, scale: float) -> TensorProxy:
    return dy.like()


native_dropout = executor.without_rule(torch.native_dropout, _dropout, OpTags.RANDOM, path="torch.native_dropout")
dropout_backward = executor.call("torch.ops.aten.native_dropout_backward.default", _dropout_backward)


@vjp_rule(native_dropout)
def native_dropout_vjp(a: TensorProxy, p: float, train: bool) -> Rule:
    """``da = dy * mask / (1 - p)``, by the mask that was drawn."""
    y, mask = native_dropout(a, p, train)
    return (y, mask), lambda dy, dmask: None if dy is None else dropout_backward(dy, mask, 1.0 / (1.0 - p))


def drops_some(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> bool:
    """Whether some elements are dropped, and not all."""
    return floating(input) and training is True and isinstance(p, float) and 0.0 < p < 1.0


@executor.differentiates_torch(torch.nn.functional.dropout, torch.dropout, when=drops_some)
def dropout(input: TensorProxy, p: float = 0.5, training: bool = True, inplace: bool = False) -> Rule:
    """Save the mask. The numbers drawn are those that eager execution draws."""
    y, mask = native_dropout(input, p, True)
    return y, lambda dy: dropout_backward(dy, mask, 1.0 / (1.0 - p))
