"""Bringing the operands of elementwise operations to one dtype, shape and device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import thunder_prims as prims
from thunder_ir import (
    Device,
    DeviceError,
    DType,
    NumberProxy,
    ShapeError,
    Symbol,
    TensorProxy,
    are_one_number,
    is_one,
    is_unknown,
    same_shape,
    value_of,
)
from thunder_ir.number_proxies import Dimension
from thunder_lang.dims import shape_text
from thunder_lang.promotion import Promotion, compute_dtype

__all__ = ["broadcast", "broadcast_shapes", "broadcast_to", "convert", "elementwise", "matched"]


def broadcast_shapes(*shapes: Sequence[Dimension]) -> tuple[Dimension, ...]:
    """Return the shape to which all of ``shapes`` broadcast.

    Raises:
        ShapeError: two of them have a dimension of different lengths, neither of which is 1.

    Example:
        >>> broadcast_shapes((2, 1), (3,), ())
        (2, 3)

    Source:
        ``torch.broadcast_shapes``.
    """
    ndim = max([len(shape) for shape in shapes], default=0)
    result: list[Dimension] = [1] * ndim
    for shape in shapes:
        offset = ndim - len(shape)
        for position, length in enumerate(shape, offset):
            before = result[position]
            if is_one(before):
                result[position] = length
            elif not _stays(before, length):
                if before == 1:
                    result[position] = length
                    continue
                raise ShapeError(
                    f"shapes {', '.join(map(shape_text, shapes))} do not broadcast: "
                    f"dimension {position} would be {before} and {length}"
                )
    return tuple(result)


def _stays(length: Dimension, other: Dimension) -> bool:
    """Whether a dimension stays as long as it is beside one of another tensor."""
    if is_one(other) or are_one_number(length, other):
        return True
    differ = is_unknown(length) or is_unknown(other) or value_of(length) != value_of(other)
    return bool(other == 1 or length == other) if differ else bool(length == other)


def broadcast_to(a: TensorProxy, shape: Sequence[Dimension]) -> TensorProxy:
    """Return ``a`` repeated along dimensions of length 1, and new ones in front, to have ``shape``.

    Raises:
        ShapeError: a dimension of ``a`` has another length that is not 1, or ``a`` has more dimensions.

    Source:
        ``torch.broadcast_to``.
    """
    shape = tuple(shape)
    if same_shape(a.shape, shape):
        return a
    new = len(shape) - len(a.shape)
    if new < 0 or not all([is_one(old) or _stays(n, old) for old, n in zip(a.shape, shape[new:], strict=True)]):
        raise ShapeError(f"{a.type_string} does not broadcast to {shape_text(shape)}")
    return prims.broadcast_in_dim(a, shape, tuple(range(new, len(shape))))


def broadcast(*operands: Any) -> tuple[Any, ...]:
    """Return the operands with all tensors broadcast to one shape; what is no tensor stays.

    Raises:
        ShapeError: the shapes do not broadcast.
    """
    shapes = [o.shape for o in operands if isinstance(o, TensorProxy)]
    if not shapes or all([same_shape(shape, shapes[0]) for shape in shapes[1:]]):
        return operands
    common = broadcast_shapes(*shapes)
    return tuple([broadcast_to(o, common) if isinstance(o, TensorProxy) else o for o in operands])


def convert(a: Any, dtype: DType) -> Any:
    """Return a tensor in ``dtype``, or a Python number of the kind of ``dtype`` where that loses nothing.

    A number proxy stays as it is.
    """
    if isinstance(a, TensorProxy):
        return a if a.dtype is dtype else prims.convert_element_type(a, dtype)
    if isinstance(a, NumberProxy) or dtype.is_bool:
        return a
    if a.__class__ is bool:
        return int(a)
    return a


def _on_one_device(operation: str, operands: list[Any]) -> list[Any]:
    """Move tensors without dimensions from the CPU to where the others are; refuse other mixtures."""
    tensors = [o for o in operands if isinstance(o, TensorProxy)]
    first = tensors[0].device
    if all([t.device is first or t.device == first for t in tensors[1:]]):
        return operands
    device = next((t.device for t in tensors if not _follows(t)), first)
    for t in tensors:
        if t.device != device and not _follows(t):
            raise DeviceError(
                f"{operation} needs tensors on one device, got {', '.join([t.type_string for t in tensors])}"
            )
    return [_moved(o, device) if isinstance(o, TensorProxy) else o for o in operands]


def _follows(a: TensorProxy) -> bool:
    return not a.shape and a.device.type == "cpu"


def _moved(a: TensorProxy, device: Device) -> TensorProxy:
    return a if a.device == device else prims.device_put(a, device)


def matched(operation: str, *operands: Any, promotion: Promotion = Promotion.DEFAULT) -> list[Any]:
    """Return the operands in one dtype, on one device and, the tensors among them, of one shape.

    Raises:
        TypeError: an operand is neither a tensor nor a number, or all of them are numbers.
        ShapeError: the shapes do not broadcast.
        DTypeError: the dtypes have no common one.
        DeviceError: tensors with dimensions live on different devices.
    """
    shapes = [o.shape for o in operands if isinstance(o, TensorProxy)]
    if not shapes:
        kinds = ", ".join([type(o).__name__ for o in operands])
        raise TypeError(f"{operation} needs at least one tensor, got {kinds}")
    try:
        dtype = compute_dtype(promotion, *operands)
    except TypeError as error:
        raise TypeError(f"{operation}: {error}") from None
    found = [convert(o, dtype) for o in operands]
    if len(shapes) > 1:
        found = _on_one_device(operation, found)
        if not all([same_shape(shape, shapes[0]) for shape in shapes[1:]]):
            try:
                common = broadcast_shapes(*shapes)
            except ShapeError as error:
                raise ShapeError(f"{operation}: {error}") from None
            found = [broadcast_to(o, common) if isinstance(o, TensorProxy) else o for o in found]
    return found


def elementwise(symbol: Symbol, *operands: Any, promotion: Promotion = Promotion.DEFAULT) -> Any:
    """Call a strict elementwise prim on operands brought to one dtype, shape and device."""
    if promotion is Promotion.DEFAULT and len(operands) == 2:
        a, b = operands
        if a.__class__ is b.__class__ is TensorProxy and a.dtype is b.dtype and same_shape(a.shape, b.shape):
            if a.device is b.device:  # the usual case, for which nothing has to be done
                return symbol(a, b)
    return symbol(*matched(symbol.name, *operands, promotion=promotion))
