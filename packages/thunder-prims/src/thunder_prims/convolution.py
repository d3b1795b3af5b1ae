"""Convolution, plain and transposed, and its backward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thunder_autograd import Pullback, jvp_rule, vjp_rule
from thunder_ir import OpTags, ShapeError, TensorProxy
from thunder_ir.number_proxies import Dimension
from thunder_prims.axes import conjugate, moved
from thunder_prims.checks import NUMERIC, check_accepts, windows_in
from thunder_prims.operands import any_requires_grad, check_has_shape, check_operands
from thunder_prims.prim import prim
from thunder_prims.shape import batch_first, broadcast_in_dim, reshape
from thunder_vmap import batching_rule

__all__ = ["convolution", "convolution_backward"]

Ints = tuple[int, ...]
Gradients = tuple[TensorProxy | None, TensorProxy | None, TensorProxy | None]


@prim(OpTags.MATMUL)
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
        padded = length + 2 * padding
        if reach > padded:
            raise ShapeError(
                f"convolution of {a.type_string} padded by {padding} is smaller than the weight {weight.type_string}, "
                f"dilated by {dilation}"
            )
        result = windows_in(padded, reach, stride)
    if result < 0:
        raise ShapeError(f"convolution of {a.type_string} with {weight.type_string} would have the length {result}")
    return result


@vjp_rule(convolution)
def convolution_vjp(a: Any, weight: Any, bias: Any, *parameters: Any) -> tuple[TensorProxy, Pullback]:
    """``da`` and ``dweight`` are convolutions of ``dy`` with the other factor, ``dbias`` is the sum of ``dy``.

    They come from two calls, one for ``da`` and one for the parameters, because one of them is often not wanted:
    the first layer of a network needs no ``da``, a frozen layer no ``dweight``.
    """

    def pullback(dy: TensorProxy) -> tuple[Any, Any, Any]:
        da, _, _ = _backward(dy, a, weight, parameters, (True, False, False))
        _, dweight, dbias = _backward(dy, a, weight, parameters, (False, True, bias is not None))
        return da, dweight, dbias

    return convolution(a, weight, bias, *parameters), pullback


def _backward(dy: Any, a: Any, weight: Any, parameters: Any, mask: tuple[bool, bool, bool]) -> Any:
    return convolution_backward(dy, conjugate(a), conjugate(weight), *parameters, mask)


@jvp_rule(convolution)
def convolution_jvp(a: Any, weight: Any, bias: Any, *rest: Any) -> tuple[TensorProxy, Any]:
    """``dy = conv(da, weight) + conv(a, dweight) + dbias``."""
    parameters, (da, dweight, dbias) = rest[:6], rest[6:9]
    y = convolution(a, weight, bias, *parameters)
    if dweight is not None:
        dy = convolution(a, dweight, dbias, *parameters)
        return y, dy if da is None else dy + convolution(da, weight, None, *parameters)
    if da is not None:
        return y, convolution(da, weight, dbias, *parameters)
    return y, None if dbias is None else broadcast_in_dim(dbias, y.shape, (1,))


@batching_rule(convolution)
def convolution_batching(size: Any, args: Any, dims: Any) -> tuple[TensorProxy, int]:
    """A batch of inputs joins the first dimension; one of weights makes more channels, and both make more groups."""
    (a, weight, bias, *parameters), (of_a, of_weight, of_bias, *_) = args, dims
    own_bias = bias if of_bias is None and of_weight is None else None
    if of_weight is None:
        a = batch_first(a, of_a, size)
        y = convolution(reshape(a, (size * a.shape[1], *a.shape[2:])), weight, own_bias, *parameters)
        y = reshape(y, (size, a.shape[1], *y.shape[1:]))
    else:
        *parameters, groups = parameters
        joined = _channels_joined(batch_first(a, of_a, size))
        weight = batch_first(weight, of_weight, size)
        rows = reshape(weight, (size * weight.shape[1], *weight.shape[2:]))
        y = _channels_parted(convolution(joined, rows, None, *parameters, size * groups), size)
    if bias is None or own_bias is not None:
        return y, 0
    if of_bias is None:
        return y + broadcast_in_dim(bias, y.shape, (2,)), 0
    return y + broadcast_in_dim(batch_first(bias, of_bias, size), y.shape, (0, 2)), 0


def _channels_joined(a: Any) -> Any:
    """Turn ``(size, n, c, ...)`` into ``(n, size * c, ...)``."""
    a = moved(a, 0, 1)
    return reshape(a, (a.shape[0], a.shape[1] * a.shape[2], *a.shape[3:]))


def _channels_parted(a: Any, size: Any) -> Any:
    """Turn ``(n, size * c, ...)`` into ``(size, n, c, ...)``."""
    return moved(reshape(a, (a.shape[0], size, a.shape[1] // size, *a.shape[2:])), 1, 0)


@prim(OpTags.MATMUL)
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


@vjp_rule(convolution_backward)
def convolution_backward_vjp(dy: Any, a: Any, weight: Any, *parameters: Any) -> tuple[Gradients, Pullback]:
    """The gradients are bilinear, as the convolution is: each of three tensors comes from the other two.

    ``ddy = conv(xa, weight) + conv(a, xweight) + xbias``, where ``xa`` is the cotangent of ``da`` and so on; ``a`` gets
    what ``da`` would be for ``xweight``, ``weight`` what ``dweight`` would be for ``xa``.
    """
    *plain, _ = parameters

    def pullback(xa: Any, xweight: Any, xbias: Any) -> tuple[Any, Any, Any]:
        terms, of_a, of_weight = [], None, None
        if xa is not None:
            terms.append(convolution(xa, conjugate(weight), xbias, *plain))
            _, of_weight, _ = _backward(dy, xa, weight, plain, (False, True, False))
            of_weight = conjugate(of_weight)
        if xweight is not None:
            terms.append(convolution(conjugate(a), xweight, xbias if xa is None else None, *plain))
            of_a, _, _ = _backward(dy, a, xweight, plain, (True, False, False))
            of_a = conjugate(of_a)
        if not terms:
            return broadcast_in_dim(xbias, dy.shape, (1,)), None, None
        return terms[0] if len(terms) == 1 else terms[0] + terms[1], of_a, of_weight

    return convolution_backward(dy, a, weight, *parameters), pullback


@jvp_rule(convolution_backward)
def convolution_backward_jvp(dy: Any, a: Any, weight: Any, *rest: Any) -> tuple[Gradients, Any]:
    """The product rule: each gradient changes with either of its two factors."""
    *plain, mask = rest[:7]
    ddy, da, dweight = rest[7:10]
    wants_a, wants_weight, wants_bias = mask
    parts: list[Any] = []
    if ddy is not None:
        parts.append(convolution_backward(ddy, a, weight, *plain, mask))
    if da is not None and wants_weight:
        parts.append(convolution_backward(dy, da, weight, *plain, (False, True, False)))
    if dweight is not None and wants_a:
        parts.append(convolution_backward(dy, a, dweight, *plain, (True, False, False)))
    tangents: list[Any] = [None, None, None]
    for part in parts:
        tangents = [t if p is None else p if t is None else t + p for t, p in zip(tangents, part, strict=True)]
    return convolution_backward(dy, a, weight, *plain, mask), tuple(tangents)


@batching_rule(convolution_backward)
def convolution_backward_batching(size: Any, args: Any, dims: Any) -> tuple[Gradients, Any]:
    """Examples become groups, so that each has its own gradient of the weight; with one weight for all, those of the
    input join the first dimension instead."""
    (dy, a, weight, *plain, groups, mask), (of_dy, of_a, of_weight, *_) = args, dims
    wants_a, wants_weight, wants_bias = mask
    da = None
    dy, a = batch_first(dy, of_dy, size), batch_first(a, of_a, size)
    if wants_a and of_weight is None:
        rows = [reshape(x, (size * x.shape[1], *x.shape[2:])) for x in (dy, a)]
        da, _, _ = convolution_backward(*rows, weight, *plain, groups, (True, False, False))
        da, wants_a = reshape(da, a.shape), False
    dweight = dbias = None
    if wants_a or wants_weight or wants_bias:
        weight = batch_first(weight, of_weight, size)
        joined = reshape(weight, (size * weight.shape[1], *weight.shape[2:]))
        mask = (wants_a, wants_weight, wants_bias)
        own, dweight, dbias = convolution_backward(
            _channels_joined(dy), _channels_joined(a), joined, *plain, size * groups, mask
        )
        da = _channels_parted(own, size) if wants_a else da
        dweight = reshape(dweight, weight.shape) if wants_weight else None
        dbias = None if dbias is None else reshape(dbias, (size, dbias.shape[0] // size))
    return (da, dweight, dbias), tuple([None if g is None else 0 for g in (da, dweight, dbias)])
