"""Changing dtype and device, copying, and leaving the world of tensors."""

from __future__ import annotations

from typing import Any

import thunder_prims as prims
from thunder_ir import Device, DType, NumberProxy, ShapeError, TensorProxy, devices, dtypes
from thunder_lang.dims import as_tensor, need_tensor
from thunder_lang.language import core

__all__ = ["astype", "clone", "item", "numel", "to", "type_as"]


@core.method("to")
def to(a: TensorProxy, *args: Any, dtype: DType | None = None, device: Device | str | None = None) -> TensorProxy:
    """Return ``a`` in another dtype, on another device, or both.

    Args:
        a: any dtype.
        args: a dtype, a device (or the text of one), a device and a dtype, or a tensor to be like.

    Raises:
        TypeError: an argument is none of these.
    """
    a = need_tensor("to", a)
    for arg in args:
        if isinstance(arg, DType):
            dtype = arg
        elif isinstance(arg, (Device, str)):
            device = arg
        elif isinstance(arg, TensorProxy):
            dtype, device = arg.dtype, arg.device
        else:
            raise TypeError(f"to: takes a dtype, a device or a tensor, not {type(arg).__name__}")
    if device is not None:
        a = as_tensor(prims.device_put(a, devices.device(device)))
    return a if dtype is None or dtype is a.dtype else as_tensor(prims.convert_element_type(a, dtype))


@core.method("astype")
def astype(a: TensorProxy, dtype: DType) -> TensorProxy:
    """Return ``a`` in another dtype."""
    a = need_tensor("astype", a)
    return a if a.dtype is dtype else as_tensor(prims.convert_element_type(a, dtype))


@core.method("type_as")
def type_as(a: TensorProxy, other: TensorProxy) -> TensorProxy:
    """Return ``a`` in the dtype of ``other``."""
    return astype(a, other.dtype)


@core.method("clone", "copy")
def clone(a: TensorProxy) -> TensorProxy:
    """Copy ``a`` to memory of its own."""
    return as_tensor(prims.clone(need_tensor("clone", a)))


@core.method("item")
def item(a: TensorProxy) -> NumberProxy:
    """Return the only element as a number of the program.

    Raises:
        ShapeError: there is another number of elements.
    """
    return prims.item(need_tensor("item", a))


def numel(a: TensorProxy) -> Any:
    """Return the number of elements."""
    return a.numel


@core.method("len")
def _length(a: TensorProxy) -> Any:
    if not a.shape:
        raise TypeError("len() of a 0-d tensor")
    return a.shape[0] if isinstance(a.shape[0], int) else int(a.shape[0])


@core.method("bool")
def _truth(a: TensorProxy) -> bool:
    """Fix the truth of a tensor of one element: it depends on values, which are not known while recording."""
    raise ShapeError(
        f"the truth of {a.type_string} depends on its values, which are not known while a program is recorded; "
        "use where, or keep the decision outside"
    )


_NAMED = {
    "float": dtypes.float32, "double": dtypes.float64, "half": dtypes.float16, "bfloat16": dtypes.bfloat16,
    "long": dtypes.int64, "int": dtypes.int32, "short": dtypes.int16, "char": dtypes.int8, "byte": dtypes.uint8,
}  # fmt: skip


def _define(name: str, dtype: DType) -> None:
    @core.method(name)
    def convert_to(a: TensorProxy) -> TensorProxy:
        return astype(a, dtype)


for _name, _dtype in _NAMED.items():
    _define(_name, _dtype)
