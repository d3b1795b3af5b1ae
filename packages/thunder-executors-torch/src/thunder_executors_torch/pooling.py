"""Pooling. PyTorch has kernels for two and three dimensions; one dimension is two, the first of length 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

import thunder_prims as prims
from thunder_executors import arguments
from thunder_executors_torch.executor import executor
from thunder_ir import BoundSymbol, TensorProxy

Ints = Sequence[int]


def over(dimensions: int, parameter: int) -> Any:
    """Return a checker for pooling over so many dimensions, told by the length of a positional argument."""

    def when(bound: BoundSymbol) -> bool:
        return len(bound.args[parameter]) == dimensions

    return when


executor.implements(prims.max_pool, when=over(2, 1))(torch._C._nn.max_pool2d_with_indices)
executor.implements(prims.max_pool, when=over(3, 1))(torch._C._nn.max_pool3d_with_indices)
executor.implements(prims.avg_pool, when=over(2, 1))(torch._C._nn.avg_pool2d)
executor.implements(prims.avg_pool, when=over(3, 1))(torch._C._nn.avg_pool3d)
executor.implements(prims.adaptive_avg_pool, when=over(2, 1))(torch._C._nn.adaptive_avg_pool2d)
executor.implements(prims.adaptive_avg_pool, when=over(3, 1))(torch._C._nn.adaptive_avg_pool3d)


def _max_pool_backward(
    dy: TensorProxy,
    a: TensorProxy,
    indices: TensorProxy,
    window: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    ceil_mode: bool,
) -> Any:
    return arguments(dy, a, window, stride, padding, dilation, ceil_mode, indices)


_max_backward_2d = torch.ops.aten.max_pool2d_with_indices_backward.default
_max_backward_3d = torch.ops.aten.max_pool3d_with_indices_backward.default
executor.calls(_max_backward_2d, prims.max_pool_backward, when=over(2, 3))(_max_pool_backward)
executor.calls(_max_backward_3d, prims.max_pool_backward, when=over(3, 3))(_max_pool_backward)


@executor.implements(prims.max_pool, when=over(1, 1))
def max_pool1d(a: torch.Tensor, window: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool) -> Any:
    elements, places = torch._C._nn.max_pool2d_with_indices(
        a.unsqueeze(-2), (1, *window), (1, *stride), (0, *padding), (1, *dilation), ceil_mode
    )
    return elements.squeeze(-2), places.squeeze(-2)


@executor.implements(prims.max_pool_backward, when=over(1, 3))
def max_pool1d_backward(
    dy: torch.Tensor,
    a: torch.Tensor,
    indices: torch.Tensor,
    window: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    ceil_mode: bool,
) -> torch.Tensor:
    parameters = ((1, *window), (1, *stride), (0, *padding), (1, *dilation), ceil_mode)
    da: torch.Tensor = _max_backward_2d(dy.unsqueeze(-2), a.unsqueeze(-2), *parameters, indices.unsqueeze(-2))
    return da.squeeze(-2)


@executor.implements(prims.avg_pool, when=over(1, 1))
def avg_pool1d(
    a: torch.Tensor,
    window: Ints,
    stride: Ints,
    padding: Ints,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: int | None,
) -> torch.Tensor:
    parameters = ((1, *window), (1, *stride), (0, *padding), ceil_mode, count_include_pad, divisor)
    return torch._C._nn.avg_pool2d(a.unsqueeze(-2), *parameters).squeeze(-2)


@executor.implements(prims.avg_pool_backward)
def avg_pool_backward(
    dy: torch.Tensor,
    shape: Ints,
    window: Ints,
    stride: Ints,
    padding: Ints,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: int | None,
) -> torch.Tensor:
    """The kernels want the input, of which they read only the shape: a single number, repeated, stands for it."""
    a = dy.new_zeros(()).expand(shape)
    parameters = (window, stride, padding)
    if len(window) == 1:
        dy, a = dy.unsqueeze(-2), a.unsqueeze(-2)
        parameters = ((1, *window), (1, *stride), (0, *padding))
    aten: Any = torch.ops.aten
    backward = aten.avg_pool3d_backward.default if len(window) == 3 else aten.avg_pool2d_backward.default
    da: torch.Tensor = backward(dy, a, *parameters, ceil_mode, count_include_pad, divisor)
    return da.squeeze(-2) if len(window) == 1 else da


@executor.implements(prims.adaptive_avg_pool)
def adaptive_avg_pool1d(a: torch.Tensor, lengths: Ints) -> torch.Tensor:
    return torch._C._nn.adaptive_avg_pool2d(a.unsqueeze(-2), (1, *lengths)).squeeze(-2)


@executor.implements(prims.adaptive_avg_pool_backward)
def adaptive_avg_pool_backward(dy: torch.Tensor, lengths: Ints) -> torch.Tensor:
    a = dy.new_zeros(()).expand(*dy.shape[: -len(lengths)], *lengths)
    aten: Any = torch.ops.aten
    backward = (aten._adaptive_avg_pool3d_backward if len(lengths) == 3 else aten._adaptive_avg_pool2d_backward).default
    if len(lengths) == 1:
        dy, a = dy.unsqueeze(-2), a.unsqueeze(-2)
    da: torch.Tensor = backward(dy, a)
    return da.squeeze(-2) if len(lengths) == 1 else da
