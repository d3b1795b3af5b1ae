"""Convolutions."""

from __future__ import annotations

from typing import Any

import torch

import thunder_lang as lang
import thunder_prims as prims
from thunder_ir import OpTags, TensorProxy
from thunder_torch.symbol import torchsymbol

PRODUCT = (OpTags.MATMUL,)


def spread_to(value: Any, count: int) -> tuple[int, ...]:
    """Return a parameter that may be one number as one for each trailing dimension."""
    if isinstance(value, (tuple, list)):
        return tuple(value) * count if len(value) == 1 else tuple(value)
    return (value,) * count


def _same_padding(weight: TensorProxy, dilation: tuple[int, ...]) -> list[tuple[int, int]]:
    totals = [d * (n - 1) for d, n in zip(dilation, weight.shape[2:], strict=True)]
    return [(t // 2, t - t // 2) for t in totals]


def _is_empty(weight: Any) -> bool:
    """Whether there is nothing to convolve with, such as no channels, for which PyTorch has shapes of its own."""
    return any([d.__class__ is int and d == 0 for d in weight.shape])


def _convolve(
    a: TensorProxy, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int, count: int
) -> Any:
    if a.dtype.is_complex or _is_empty(weight):  # PyTorch composes these of real ones, on the way to its kernels
        return NotImplemented
    batched = a.ndim == count + 2
    x = a if batched else lang.unsqueeze(a, 0)
    stride, dilation = spread_to(stride, count), spread_to(dilation, count)
    if padding == "valid":
        padding = 0
    if padding == "same":
        sides = _same_padding(weight, dilation)
        if any(low != high for low, high in sides):
            x = lang.pad(x, [n for side in reversed(sides) for n in side])
            padding = 0
        else:
            padding = [low for low, _ in sides]
    y = prims.convolution(x, weight, bias, stride, spread_to(padding, count), dilation, False, (0,) * count, groups)
    return y if batched else lang.squeeze(y, 0)


@torchsymbol(torch.conv1d, tags=PRODUCT)
def conv1d(
    a: TensorProxy, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Any:
    """Convolve over the last dimension."""
    return _convolve(a, weight, bias, stride, padding, dilation, groups, 1)


@torchsymbol(torch.conv2d, tags=PRODUCT)
def conv2d(
    a: TensorProxy, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Any:
    """Convolve over the last two dimensions."""
    return _convolve(a, weight, bias, stride, padding, dilation, groups, 2)


@torchsymbol(torch.conv3d, tags=PRODUCT)
def conv3d(
    a: TensorProxy, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Any:
    """Convolve over the last three dimensions."""
    return _convolve(a, weight, bias, stride, padding, dilation, groups, 3)


def _transposed(
    a: TensorProxy,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: int,
    dilation: Any,
    count: int,
) -> Any:
    if a.dtype.is_complex or _is_empty(weight):
        return NotImplemented
    batched = a.ndim == count + 2
    y = prims.convolution(
        a if batched else lang.unsqueeze(a, 0),
        weight,
        bias,
        *[spread_to(p, count) for p in (stride, padding, dilation)],
        True,
        spread_to(output_padding, count),
        groups,
    )
    return y if batched else lang.squeeze(y, 0)


@torchsymbol(torch.conv_transpose1d, tags=PRODUCT)
def conv_transpose1d(
    a: TensorProxy,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Any:
    """The transpose of a convolution over the last dimension."""
    return _transposed(a, weight, bias, stride, padding, output_padding, groups, dilation, 1)


@torchsymbol(torch.conv_transpose2d, tags=PRODUCT)
def conv_transpose2d(
    a: TensorProxy,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Any:
    """The transpose of a convolution over the last two dimensions."""
    return _transposed(a, weight, bias, stride, padding, output_padding, groups, dilation, 2)


@torchsymbol(torch.conv_transpose3d, tags=PRODUCT)
def conv_transpose3d(
    a: TensorProxy,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Any:
    """The transpose of a convolution over the last three dimensions."""
    return _transposed(a, weight, bias, stride, padding, output_padding, groups, dilation, 3)


@torchsymbol(torch.convolution, tags=PRODUCT)
def convolution(
    a: TensorProxy,
    weight: TensorProxy,
    bias: TensorProxy | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> Any:
    """Convolve over the trailing dimensions."""
    if _is_empty(weight):
        return NotImplemented
    count = weight.ndim - 2
    stride, padding, dilation, output_padding = (
        spread_to(p, count) for p in (stride, padding, dilation, output_padding)
    )
    return prims.convolution(a, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


__all__ = [
    "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "convolution",
    "spread_to",
]  # fmt: skip
