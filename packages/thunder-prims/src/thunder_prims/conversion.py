"""Prims that change dtype, device, place or order in memory, and those that leave the world of tensors."""

from __future__ import annotations

from typing import Any

from thunder_ir import Device, DType, OpTags, ShapeError, TensorProxy, number_proxy
from thunder_ir.dtypes import python_type
from thunder_ir.proxies import NumberProxy
from thunder_prims.checks import check_device, check_dtype, check_tensor
from thunder_prims.prim import prim

__all__ = ["bitcast", "clone", "convert_element_type", "device_put", "item", "shallow_copy", "stride_order"]

CAST = OpTags.CAST


@prim(CAST, OpTags.ELEMENTWISE)
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


@prim(CAST)
def device_put(a: TensorProxy, device: Device) -> TensorProxy:
    """Copy ``a`` to ``device``; if it lives there, the result is ``a`` itself."""
    check_tensor("device_put", a)
    check_device("device_put", device)
    return a if a.device == device else a.like(device=device)


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


@prim()
def clone(a: TensorProxy) -> TensorProxy:
    """Copy ``a`` to memory of its own."""
    check_tensor("clone", a)
    return a.like()


@prim(OpTags.VIEW)
def shallow_copy(a: TensorProxy) -> TensorProxy:
    """Return a new tensor that shares the memory of ``a``."""
    check_tensor("shallow_copy", a)
    return a.like()


@prim()
def stride_order(a: TensorProxy, order: tuple[int, ...]) -> TensorProxy:
    """Lay ``a`` out densely in memory, its dimensions in the given order; where it lies so already, it is shared.

    Args:
        a: any dtype.
        order: for each dimension its rank by stride, 0 for the one whose elements are neighbours: ``(1, 0)`` is
            row-major, ``(3, 0, 2, 1)`` is "channels last".

    Returns:
        the shape of ``a``, with strides known.

    Raises:
        ShapeError: ``order`` is not a permutation of the dimensions.
    """
    check_tensor("stride_order", a)
    if sorted(order) != list(range(a.ndim)):
        raise ShapeError(f"stride_order of {a.type_string} needs a permutation of 0..{a.ndim - 1}, got {order}")
    strides: list[Any] = [1] * a.ndim
    stride: Any = 1
    for rank in range(a.ndim):
        dim = order.index(rank)
        strides[dim] = stride
        stride = stride * a.shape[dim]
    result = a.like()
    result.strides = tuple(strides)
    return result


_EXAMPLES = {bool: False, int: 0, float: 0.0, complex: 0j}


@prim(OpTags.DEVICE_SYNC, OpTags.DONT_FUSE, OpTags.CONSTANT_FOR_DERIVATIVE)
def item(a: TensorProxy) -> NumberProxy:
    """Return the only element of ``a`` as a number, waiting for it to be computed.

    Returns:
        a number of the dtype's kind, whose value nobody knows while recording (it stands at 0).

    Raises:
        ShapeError: ``a`` has not exactly one element.
    """
    check_tensor("item", a)
    if a.numel != 1:
        raise ShapeError(f"item of {a.type_string} needs exactly one element")
    return number_proxy(_EXAMPLES[python_type(a.dtype)])
