"""Steps that rules share: moving dimensions, undoing a reduction, adjoints, zeros, and where a batch dimension goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thunder_ir import Symbol, TensorProxy, dtypes
from thunder_prims.comparison import eq, ge, gt, le, lt, ne
from thunder_prims.complex_numbers import conj, real
from thunder_prims.conditional import where
from thunder_prims.conversion import convert_element_type
from thunder_prims.creation import full, iota
from thunder_prims.operands import replaced
from thunder_prims.shape import broadcast_in_dim, cat, reshape, slice, squeeze, transpose

Shape = tuple[Any, ...]


def restored(a: Any, shape: Shape, dims: Sequence[int]) -> Any:
    """Repeat ``a``, from which ``dims`` were reduced, along them, so that it has ``shape`` again."""
    if not dims:
        return a
    return broadcast_in_dim(a, shape, tuple([i for i in range(len(shape)) if i not in dims]))


def moved(a: Any, source: int, destination: int) -> Any:
    """Return ``a`` with the dimension ``source`` at ``destination``, the others in order."""
    if source == destination:
        return a
    order = [i for i in range(a.ndim) if i != source]
    order.insert(destination, source)
    return transpose(a, tuple(order))


def expanded(a: Any, dim: int, length: Any) -> Any:
    """Return ``a`` repeated along a new dimension ``dim`` of ``length``."""
    shape = (*a.shape[:dim], length, *a.shape[dim:])
    return broadcast_in_dim(a, shape, tuple([i for i in range(len(shape)) if i != dim]))


def swapped(a: Any) -> Any:
    """Return the transposes of the matrices in ``a``."""
    return transpose(a, (*range(a.ndim - 2), a.ndim - 1, a.ndim - 2))


def conjugate(a: Any) -> Any:
    """Return the complex conjugate of ``a``: ``a`` itself where it is real."""
    return conj(a) if a.dtype.is_complex else a


def adjoint(a: Any) -> Any:
    """Return the conjugate transposes of the matrices in ``a``."""
    return swapped(conjugate(a))


def of_dtype(a: Any, dtype: Any) -> Any:
    """Return ``a`` in ``dtype``: a real gradient of something complex becomes complex, and a complex one real."""
    if a.dtype is dtype:
        return a
    if a.dtype.is_complex and not dtype.is_complex:
        return convert_element_type(real(a), dtype)
    return convert_element_type(a, dtype)


def filled(a: TensorProxy, value: Any, shape: Shape | None = None, dtype: Any = None) -> Any:
    """Return a tensor of ``value``, with shape, dtype and device of ``a`` but for those given."""
    return full(a.shape if shape is None else shape, value, a.dtype if dtype is None else dtype, a.device)


def positions(a: TensorProxy, shape: Shape, dim: int) -> Any:
    """Return ``int64`` places along ``dim`` of a tensor of ``shape``, on the device of ``a``."""
    return broadcast_in_dim(iota(shape[dim], 0, 1, dtypes.int64, a.device), shape, (dim,))


_RELATIONS = {
    "diagonal": eq,
    "off the diagonal": ne,
    "lower": ge,
    "upper": le,
    "strictly lower": gt,
    "strictly upper": lt,
}


def triangle(a: Any, part: str) -> Any:
    """Return the matrices in ``a`` with zeros outside of a part of theirs: ``"lower"``, ``"strictly upper"``, …"""
    shape = a.shape[-2:]
    mask = _RELATIONS[part](positions(a, shape, 0), positions(a, shape, 1))
    return where(broadcast_in_dim(mask, a.shape, (a.ndim - 2, a.ndim - 1)) if a.ndim > 2 else mask, a, 0)


def diagonal_matrix(d: Any) -> Any:
    """Return the matrices that have the last dimension of ``d`` as their diagonals."""
    return triangle(expanded(d, d.ndim - 1, d.shape[-1]), "diagonal")


def part_along(a: Any, dim: int, start: Any, end: Any) -> Any:
    """Return the elements from ``start`` to before ``end`` along ``dim``."""
    starts, ends = replaced((0,) * a.ndim, dim, start), replaced(a.shape, dim, end)
    return slice(a, starts, ends)


def shifted(dim: int, batch: int) -> int:
    """Return where a dimension of a single example stands in a tensor with the batch dimension ``batch``."""
    return dim if dim < batch else dim + 1


def shifted_dims(dims: Sequence[int], batch: int) -> tuple[int, ...]:
    """Return where dimensions of a single example stand in a tensor with the batch dimension ``batch``."""
    return tuple([shifted(dim, batch) for dim in dims])


def looped(
    symbol: Symbol, size: int, args: Sequence[Any], dims: Sequence[int | None], **kwargs: Any
) -> tuple[Any, Any]:
    """Return the outputs of one call for each example, stacked in front, where a batched call cannot say the same."""
    calls = []
    for i in range(size):
        picked = [
            a if d is None else squeeze(part_along(a, d, i, i + 1), (d,)) for a, d in zip(args, dims, strict=True)
        ]
        calls.append(symbol(*picked, **kwargs))
    if isinstance(calls[0], tuple):
        return tuple([stacked(outputs) for outputs in zip(*calls, strict=True)]), (0,) * len(calls[0])
    return stacked(calls), 0


def stacked(tensors: Sequence[Any]) -> Any:
    """Join tensors of one shape along a new dimension in front."""
    return cat([reshape(t, (1, *t.shape)) for t in tensors], 0)
