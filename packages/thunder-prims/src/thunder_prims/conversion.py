"""Prims that change dtype, device, place or order in memory, and those that leave the world of tensors."""

from __future__ import annotations

import math
from typing import Any

from thunder_autograd import Pullback, jvp_rule, vjp_rule
from thunder_ir import Device, DType, OpTags, ShapeError, TensorProxy, Unknown, number_proxy
from thunder_ir.dtypes import python_type
from thunder_ir.number_proxies import Dimension, NumberProxy
from thunder_prims.batching import batch_first, batches_elementwise, elementwise_prim
from thunder_prims.checks import check_device, check_dtype, check_tensor
from thunder_prims.complex_numbers import real
from thunder_prims.derivatives import Map, derivatives, linear
from thunder_prims.prim import prim
from thunder_vmap import batching_rule

__all__ = ["bitcast", "clone", "convert_element_type", "device_put", "item", "shallow_copy", "stride_order"]

CAST = OpTags.CAST


@elementwise_prim(CAST)
def convert_element_type(a: TensorProxy, dtype: DType) -> TensorProxy:
    """Convert each element to ``dtype``.

    Complex numbers lose their imaginary part in a real dtype; floats their fraction in an integer dtype; whatever is
    not 0 becomes true in ``bool8``.

    Args:
        a: any dtype.
        dtype: of the result; if that of ``a``, the result is ``a`` itself.
    """
    check_tensor("convert_element_type", a)
    check_dtype("convert_element_type", dtype)
    return a if a.dtype is dtype else a.like(dtype=dtype)


@vjp_rule(convert_element_type)
def convert_element_type_vjp(a: TensorProxy, dtype: DType) -> tuple[TensorProxy, Pullback]:
    """``da = dy`` in the dtype of ``a``, its real part where only ``dtype`` is complex; none for exact dtypes."""
    return convert_element_type(a, dtype), lambda dy: _converted(dy, a.dtype) if dtype.is_inexact else None


@jvp_rule(convert_element_type)
def convert_element_type_jvp(a: TensorProxy, dtype: DType, da: TensorProxy | None, _: None) -> Any:
    """``dy = da`` in ``dtype``; none for exact dtypes."""
    return convert_element_type(a, dtype), _converted(da, dtype) if da is not None and dtype.is_inexact else None


def _converted(d: TensorProxy, dtype: DType) -> TensorProxy | None:
    if not dtype.is_inexact:
        return None
    return convert_element_type(d if dtype.is_complex else real(d), dtype)


@prim(CAST)
def device_put(a: TensorProxy, device: Device) -> TensorProxy:
    """Copy ``a`` to ``device``; if it lives there, the result is ``a`` itself."""
    check_tensor("device_put", a)
    check_device("device_put", device)
    return a if a.device == device else a.like(device=device)


@vjp_rule(device_put)
def device_put_vjp(a: TensorProxy, device: Device) -> tuple[TensorProxy, Pullback]:
    """``da = dy`` on the device of ``a``."""
    return device_put(a, device), lambda dy: device_put(dy, a.device)


linear(device_put)
batches_elementwise(device_put)


@prim(OpTags.CONSTANT_FOR_DERIVATIVE, OpTags.VIEW)
def bitcast(a: TensorProxy, dtype: DType) -> TensorProxy:
    """Read the bits of ``a`` as elements of ``dtype``.

    Args:
        a: shape ``(..., n)``.
        dtype: if of another size, elements of the last dimension are joined or split.

    Returns:
        shape ``(..., n * size of a's dtype / size of dtype)``.

    Raises:
        ShapeError: there is no last dimension, or not enough elements in it.
    """
    check_tensor("bitcast", a)
    check_dtype("bitcast", dtype)
    if a.dtype.bytes == dtype.bytes:
        return a.like(dtype=dtype)
    if a.ndim == 0 or (a.shape[-1] * a.dtype.bytes) % dtype.bytes != 0:
        raise ShapeError(f"bitcast of {a.type_string} to {dtype} needs a last dimension that is whole elements of it")
    return a.like(shape=(*a.shape[:-1], a.shape[-1] * a.dtype.bytes // dtype.bytes), dtype=dtype)


@batching_rule(bitcast)
def bitcast_batching(size: Dimension, args: Any, dims: Any) -> tuple[TensorProxy, int]:
    """The batch dimension comes to the front, for the last one may change."""
    (a, dtype), (batch, _) = args, dims
    if a.ndim == 1 and a.dtype.bytes != dtype.bytes:
        raise ShapeError(f"bitcast of a {a.dtype} without dimensions to {dtype}, which has another size")
    return bitcast(batch_first(a, batch, size), dtype), 0


@prim()
def clone(a: TensorProxy) -> TensorProxy:
    """Copy ``a`` to memory of its own."""
    check_tensor("clone", a)
    return a.like()


@derivatives(clone)
def clone_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``d``."""
    return lambda d: d


batches_elementwise(clone)


@prim(OpTags.VIEW)
def shallow_copy(a: TensorProxy) -> TensorProxy:
    """Return a new tensor that shares the memory of ``a``."""
    check_tensor("shallow_copy", a)
    return a.like()


@derivatives(shallow_copy)
def shallow_copy_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``d``."""
    return lambda d: d


batches_elementwise(shallow_copy)


@prim(OpTags.VIEW, OpTags.MAY_COPY)
def stride_order(a: TensorProxy, order: tuple[int, ...]) -> TensorProxy:
    """Lay ``a`` out densely in memory, its dimensions in the given order; where it lies so already, it is shared.

    Args:
        a: any dtype.
        order: for each dimension its rank by stride, 0 for the one whose elements are neighbours: ``(1, 0)`` is
            row-major, ``(3, 0, 2, 1)`` is "channels last".

    Returns:
        the shape of ``a``, with strides where its sizes are known.

    Raises:
        ShapeError: ``order`` is not a permutation of the dimensions.
    """
    check_tensor("stride_order", a)
    if sorted(order) != list(range(a.ndim)):
        raise ShapeError(f"stride_order of {a.type_string} needs a permutation of 0..{a.ndim - 1}, got {order}")
    result = a.like()
    if any([size.__class__ is not int for size in a.shape]):
        result.strides = None
        return result
    strides: list[Any] = [1] * a.ndim
    stride: Any = 1
    for rank in range(a.ndim):
        dim = order.index(rank)
        strides[dim] = stride
        stride = stride * a.shape[dim]
    result.strides = tuple(strides)
    return result


@vjp_rule(stride_order)
def stride_order_vjp(a: TensorProxy, order: tuple[int, ...]) -> tuple[TensorProxy, Pullback]:
    """``da = dy``, however it lies in memory."""
    return stride_order(a, order), lambda dy: dy


linear(stride_order)


@batching_rule(stride_order)
def stride_order_batching(size: Dimension, args: Any, dims: Any) -> tuple[TensorProxy, int]:
    """The batch dimension is outermost."""
    (a, order), (batch, _) = args, dims
    return stride_order(batch_first(a, batch, size), (len(order), *order)), 0


# What stands for a value that is not known yet: no arithmetic on it while recording raises for the value's sake.
_STAND_INS = {bool: True, int: 3, float: math.nan, complex: complex(math.nan, math.nan)}  # 3: as a size, not special


def unknown_number(kind: type, what: str) -> NumberProxy:
    """Return a number of a Python type that is known only when the program runs.

    Args:
        kind: ``bool``, ``int``, ``float`` or ``complex``.
        what: where it comes from, for messages.
    """
    return number_proxy(_STAND_INS[kind], unknown=Unknown(what))


@prim(OpTags.DEVICE_SYNC, OpTags.DONT_FUSE, OpTags.CONSTANT_FOR_DERIVATIVE)
def item(a: TensorProxy) -> NumberProxy:
    """Return the only element of ``a`` as a number, waiting for it to be computed.

    Returns:
        a number of the dtype's kind, whose value is unknown while recording: what depends on it cannot be compared.

    Raises:
        ShapeError: ``a`` has not exactly one element.
    """
    check_tensor("item", a)
    if a.numel != 1:
        raise ShapeError(f"item of {a.type_string} needs exactly one element")
    return unknown_number(python_type(a.dtype), "what item() returns")
