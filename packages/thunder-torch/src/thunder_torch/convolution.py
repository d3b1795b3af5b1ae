"""Convolutions."""

from __future__ import annotations

from typing import Any

import torch

import thunder_lang as lang
import thunder_prims as prims
from thunder_ir import OpTags, TensorProxy
from thunder_torch.symbol import torchsymbol
from thunder_torch.traits import Trait, state

PRODUCT = (OpTags.MATMUL,)
state(
    "_convolution", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    "convolution", traits=(Trait.ROWS_ON_META,),
)  # fmt: skip


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


def _define_convolutions(count: int, plain: Any, transposed: Any) -> tuple[Any, Any]:
    """Return the symbols of a convolution over so many dimensions, and of its transpose."""

    def convolve(
        a: TensorProxy,
        weight: Any,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
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

    def transpose(
        a: TensorProxy,
        weight: Any,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Any:
        if a.dtype.is_complex or _is_empty(weight):
            return NotImplemented
        batched = a.ndim == count + 2
        x = a if batched else lang.unsqueeze(a, 0)
        sizes = [spread_to(p, count) for p in (stride, padding, dilation)]
        y = prims.convolution(x, weight, bias, *sizes, True, spread_to(output_padding, count), groups)
        return y if batched else lang.squeeze(y, 0)

    convolve.__doc__ = f"Convolve over the last {count} dimensions."
    transpose.__doc__ = f"The transpose of a convolution over the last {count} dimensions."
    return (
        torchsymbol(plain, tags=PRODUCT, name=f"conv{count}d")(convolve),
        torchsymbol(transposed, tags=PRODUCT, name=f"conv_transpose{count}d")(transpose),
    )


conv1d, conv_transpose1d = _define_convolutions(1, torch.conv1d, torch.conv_transpose1d)
conv2d, conv_transpose2d = _define_convolutions(2, torch.conv2d, torch.conv_transpose2d)
conv3d, conv_transpose3d = _define_convolutions(3, torch.conv3d, torch.conv_transpose3d)


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
