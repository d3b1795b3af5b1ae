"""Convolution, plain and transposed, and its backward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thunder_ir import OpTags, ShapeError, TensorProxy
from thunder_ir.proxies import Dimension
from thunder_prims.checks import NUMERIC, check_accepts
from thunder_prims.operands import any_requires_grad, check_has_shape, check_operands
from thunder_prims.prim import prim

__all__ = ["convolution", "convolution_backward"]

Ints = tuple[int, ...]


@prim(OpTags.MATMUL, method="convolution")
def convolution(
    a: TensorProxy,
    weight: TensorProxy,
    bias: TensorProxy | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
) -> TensorProxy:
    """Convolve ``a`` with ``weight`` over its trailing dimensions; strictly, correlate.

    Args:
        a: shape ``(n, c, d_1, ..., d_k)`` with ``k`` at least 1.
        weight: shape ``(o, c // groups, w_1, ..., w_k)``; ``(c, o // groups, w_1, ..., w_k)`` if transposed.
        bias: shape ``(o,)``, or ``None``.
        stride, padding, dilation: per trailing dimension.
        transposed: compute the transpose of the convolution that these parameters describe.
        output_padding: per trailing dimension, what a transposed convolution adds at the end; zeros otherwise.
        groups: into how many parts the channels fall that do not mix.

    Returns:
        shape ``(n, o, e_1, ..., e_k)``; ``e = (d + 2 padding - dilation (w - 1) - 1) // stride + 1``, or
        ``e = (d - 1) stride - 2 padding + dilation (w - 1) + output_padding + 1`` if transposed.

    Raises:
        ShapeError: ranks, channels or numbers of parameters do not fit, or the result would be smaller than empty.

    Source:
        ``torch.convolution``.
    """
    check_operands("convolution", a, weight, bias)
    check_accepts("convolution", a, NUMERIC)
    parameters = (stride, padding, dilation, output_padding)
    shape = _output_shape(a, weight, parameters, transposed, groups)
    if bias is not None:
        check_has_shape("convolution", "a bias", bias, shape[1:2])
    return a.like(shape=shape, requires_grad=any_requires_grad(a, weight, bias))


def _output_shape(
    a: TensorProxy, weight: TensorProxy, parameters: Sequence[Ints], transposed: bool, groups: int
) -> tuple[Dimension, ...]:
    spatial = a.ndim - 2
    if spatial < 1 or weight.ndim != a.ndim:
        raise ShapeError(
            f"convolution needs an input (n, c, d_1, ...) and a weight of equally many dimensions, "
            f"got {a.type_string} and {weight.type_string}"
        )
    for name, values in zip(("stride", "padding", "dilation", "output_padding"), parameters, strict=True):
        least = 1 if name in ("stride", "dilation") else 0
        if len(values) != spatial or any([v < least for v in values]):
            raise ShapeError(
                f"convolution of {a.type_string} needs a {name} of {spatial} numbers, each at least {least}, "
                f"got {values}"
            )
    channels = _output_channels(a, weight, transposed, groups)
    lengths = tuple(
        [
            _output_length(a, weight, d, w, transposed, *numbers)
            for d, w, *numbers in zip(a.shape[2:], weight.shape[2:], *parameters, strict=True)
        ]
    )
    return (a.shape[0], channels, *lengths)


def _output_channels(a: TensorProxy, weight: TensorProxy, transposed: bool, groups: int) -> Any:
    if groups < 1 or a.shape[1] % groups != 0:
        raise ShapeError(
            f"convolution of {a.type_string} in {groups} groups needs a number of channels that they divide"
        )
    if transposed:
        if weight.shape[0] != a.shape[1]:
            raise ShapeError(
                f"convolution of {a.type_string}, transposed, needs a weight (c, o // groups, ...) with c = "
                f"{a.shape[1]}, got {weight.type_string}"
            )
        return weight.shape[1] * groups
    if weight.shape[1] != a.shape[1] // groups or weight.shape[0] % groups != 0:
        raise ShapeError(
            f"convolution of {a.type_string} in {groups} groups needs a weight (o, c // groups, ...) with "
            f"c // groups = {a.shape[1] // groups} and o a multiple of {groups}, got {weight.type_string}"
        )
    return weight.shape[0]


def _output_length(
    a: TensorProxy,
    weight: TensorProxy,
    length: Any,
    window: Any,
    transposed: bool,
    stride: int,
    padding: int,
    dilation: int,
    extra: int,
) -> Any:
    reach = dilation * (window - 1) + 1
    if transposed:
        result = (length - 1) * stride - 2 * padding + reach + extra
    else:
        if reach > length + 2 * padding:
            raise ShapeError(
                f"convolution of {a.type_string} padded by {padding} is smaller than the weight {weight.type_string}, "
                f"dilated by {dilation}"
            )
        result = (length + 2 * padding - reach) // stride + 1
    if result < 0:
        raise ShapeError(f"convolution of {a.type_string} with {weight.type_string} would have the length {result}")
    return result


Gradients = tuple[TensorProxy | None, TensorProxy | None, TensorProxy | None]


@prim(OpTags.MATMUL, method="convolution_backward")
def convolution_backward(
    dy: TensorProxy,
    a: TensorProxy,
    weight: TensorProxy,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
    mask: tuple[bool, bool, bool],
) -> Gradients:
    """Return the gradients of ``a``, ``weight`` and ``bias`` of a convolution, those that ``mask`` asks for.

    Args:
        dy: of the shape of ``convolution(a, weight, ...)``.
        a, weight, stride, padding, dilation, transposed, output_padding, groups: as for ``convolution``.
        mask: which of the three are wanted; the others are ``None``.

    Returns:
        ``(da, dweight, dbias)`` of the shapes of ``a``, ``weight`` and ``(o,)``.

    Source:
        ``torch.ops.aten.convolution_backward``.
    """
    check_operands("convolution_backward", dy, a, weight)
    check_accepts("convolution_backward", a, NUMERIC)
    shape = _output_shape(a, weight, (stride, padding, dilation, output_padding), transposed, groups)
    check_has_shape("convolution_backward", "the gradient of the result", dy, shape)
    wants_a, wants_weight, wants_bias = mask
    requires_grad = any_requires_grad(dy, a, weight)
    return (
        a.like(requires_grad=requires_grad) if wants_a else None,
        weight.like(requires_grad=requires_grad) if wants_weight else None,
        dy.like(shape=dy.shape[1:2]) if wants_bias else None,
    )
