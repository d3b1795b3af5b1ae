"""Arguments of PyTorch's functions that several executors have kernels for: one value, a field for each parameter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

from thunder_ir import TensorProxy

A = TypeVar("A")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, eq=False)
class CrossEntropy:
    """See :func:`torch.nn.functional.cross_entropy`."""

    input: TensorProxy
    target: TensorProxy
    weight: TensorProxy | None = None
    size_average: bool | None = None
    ignore_index: int = -100
    reduce: bool | None = None
    reduction: str = "mean"
    label_smoothing: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class LayerNorm:
    """See :func:`torch.nn.functional.layer_norm`; the last one is of :func:`torch.layer_norm`."""

    input: TensorProxy
    normalized_shape: Sequence[int]
    weight: TensorProxy | None = None
    bias: TensorProxy | None = None
    eps: float = 1e-5
    cudnn_enable: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class RMSNorm:
    """See :func:`torch.nn.functional.rms_norm`."""

    input: TensorProxy
    normalized_shape: Sequence[int]
    weight: TensorProxy | None = None
    eps: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Attention:
    """See :func:`torch.nn.functional.scaled_dot_product_attention`."""

    query: TensorProxy
    key: TensorProxy
    value: TensorProxy
    attn_mask: TensorProxy | None = None
    dropout_p: float = 0.0
    is_causal: bool = False
    scale: float | None = None
    enable_gqa: bool = False


def called_with(kind: Callable[..., A]) -> Callable[[Callable[[A], R]], Callable[..., R]]:
    """Let a function of such a value be called with the arguments themselves.

    Example:
        >>> from thunder_torch.call_arguments import LayerNorm, called_with
        >>> @called_with(LayerNorm)
        ... def epsilon(call):
        ...     return call.eps
        >>> epsilon(None, (3,), eps=0.5), epsilon(None, (3,))
        (0.5, 1e-05)
    """

    def decorate(function: Callable[[A], R]) -> Callable[..., R]:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> R:
            return function(kind(*args, **kwargs))

        setattr(call, "__signature__", signature(kind))  # noqa: B010 - which fits rules to the arguments of a call
        return call

    return decorate
