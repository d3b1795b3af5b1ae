"""Operations that change the shape and keep the elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import thunder_prims as prims
from thunder_ir import DimensionError, NumberProxy, ShapeError, TensorProxy, same_shape
from thunder_ir.number_proxies import Dimension
from thunder_lang.dims import as_tensor, canonical_dim, canonical_dims, need_tensor, shape_text, spread
from thunder_lang.language import core
from thunder_lang.operands import broadcast, broadcast_to
from thunder_prims.checks import count

__all__ = [
    "broadcast_tensors", "diagonal", "expand", "expand_as", "expand_dims", "flatten", "matrix_transpose", "movedim",
    "permute", "permute_dims", "ravel", "reshape", "select", "squeeze", "swapaxes", "t", "transpose", "unflatten",
    "unfold", "unsqueeze", "view_as",
]  # fmt: skip


@core.method("reshape", "view")
def reshape(a: TensorProxy, *shape: Any) -> TensorProxy:
    """Return the elements of ``a`` in another shape.

    Args:
        a: any dtype.
        shape: dimensions; one of them may be -1, and is computed.

    Raises:
        ShapeError: the numbers of elements differ, or cannot be made equal.

    Example:
        >>> from thunder_ir import Tensor, trace_of
        >>> from thunder_lang import core, reshape
        >>> print(trace_of(lambda x: reshape(x, -1, 2), Tensor((2, 3)), language=core))
        def program(x: "float32[2, 3]"):
            t0 = prims.reshape(x, (3, 2))  # float32[3, 2]
            return t0

    Source:
        ``torch.reshape``.
    """
    a = need_tensor("reshape", a)
    wanted = spread(shape)
    wanted = _with_computed(a, wanted) if any([_is_computed(n) for n in wanted]) else wanted
    return a if same_shape(a.shape, wanted) else as_tensor(prims.reshape(a, wanted))


def _is_computed(length: Any) -> bool:
    """Whether a length is -1, asked without a constraint on symbolic ones, which never are."""
    return not isinstance(length, NumberProxy) and bool(length == -1)


def _with_computed(a: TensorProxy, shape: tuple[Any, ...]) -> tuple[Any, ...]:
    places = [i for i, n in enumerate(shape) if _is_computed(n)]
    place = places[0]
    known = count([d for i, d in enumerate(shape) if i != place])
    if len(places) > 1:
        raise ShapeError(f"reshape: only one dimension can be computed, got {shape_text(shape)}")
    numel = a.numel
    if known == 0:
        raise ShapeError(
            f"reshape: cannot reshape {a.type_string} into {shape_text(shape)}: the dimension -1 can be any number"
        )
    if numel % known != 0:
        raise ShapeError(f"shape '{shape_text(shape)}' is invalid for {a.type_string} of {numel} elements")
    return (*shape[:place], numel // known, *shape[place + 1 :])


@core.method("view_as", "reshape_as")
def view_as(a: TensorProxy, other: TensorProxy) -> TensorProxy:
    """Return the elements of ``a`` in the shape of ``other``."""
    return reshape(a, other.shape)


@core.method("permute", "permute_dims")
def permute(a: TensorProxy, *dims: Any) -> TensorProxy:
    """Reorder the dimensions.

    Args:
        a: shape ``(d_0, ..., d_k)``.
        dims: each dimension once.

    Returns:
        shape ``(d_p0, ..., d_pk)`` for ``dims = (p0, ..., pk)``.

    Raises:
        ShapeError: a dimension is missing or repeated.
        DimensionError: one does not exist.
    """
    a = need_tensor("permute", a)
    order = canonical_dims("permute", a.ndim, spread(dims))
    if len(order) != a.ndim:
        raise ShapeError(f"permute of {a.type_string} needs {a.ndim} dimensions, got {spread(dims)}")
    return a if order == tuple(range(a.ndim)) else as_tensor(prims.transpose(a, order))


permute_dims = permute


@core.method("transpose", "swapaxes", "swapdims")
def transpose(a: TensorProxy, dim0: int, dim1: int) -> TensorProxy:
    """Swap two dimensions."""
    a = need_tensor("transpose", a)
    first, second = canonical_dim("transpose", a.ndim, dim0), canonical_dim("transpose", a.ndim, dim1)
    if first == second:
        return a
    order = list(range(a.ndim))
    order[first], order[second] = second, first
    return as_tensor(prims.transpose(a, tuple(order)))


swapaxes = transpose


@core.method("t")
def t(a: TensorProxy) -> TensorProxy:
    """Swap the dimensions of a matrix; a vector is returned as it is.

    Raises:
        ShapeError: ``a`` has more than two dimensions.
    """
    if a.ndim > 2:
        raise ShapeError(f"t needs a tensor of at most 2 dimensions, got {a.type_string}")
    return a if a.ndim < 2 else transpose(a, 0, 1)


@core.attribute("mT")
def matrix_transpose(a: TensorProxy) -> TensorProxy:
    """Swap the last two dimensions.

    Raises:
        ShapeError: there are fewer than two.
    """
    if a.ndim < 2:
        raise ShapeError(f"a matrix transpose needs at least 2 dimensions, got {a.type_string}")
    return transpose(a, -2, -1)


@core.attribute("T")
def reversed_dims(a: TensorProxy) -> TensorProxy:
    """Reverse the order of the dimensions."""
    return permute(a, tuple(reversed(range(a.ndim))))


@core.method("movedim", "moveaxis")
def movedim(a: TensorProxy, source: int | Sequence[int], destination: int | Sequence[int]) -> TensorProxy:
    """Move dimensions to other places; the rest keeps its order.

    Raises:
        ShapeError: there are more sources than destinations, or fewer, or one comes twice.
    """
    a = need_tensor("movedim", a)
    sources, destinations = (canonical_dims("movedim", a.ndim, d) for d in (source, destination))
    if len(sources) != len(destinations):
        raise ShapeError(f"movedim needs as many sources as destinations, got {source} and {destination}")
    order = [d for d in range(a.ndim) if d not in sources]
    for place, dim in sorted(zip(destinations, sources, strict=True)):
        order.insert(place, dim)
    return permute(a, order)


@core.method("unsqueeze", "expand_dims")
def unsqueeze(a: TensorProxy, dim: int | Sequence[int]) -> TensorProxy:
    """Insert dimensions of length 1.

    Args:
        a: any dtype.
        dim: where they are in the result.
    """
    a = need_tensor("unsqueeze", a)
    places: list[Any] = list(dim) if isinstance(dim, (tuple, list)) else [dim]
    extra = len(places)
    new = {canonical_dim("unsqueeze", a.ndim, place, extra) for place in places}
    if len(new) != extra:
        raise ShapeError(f"unsqueeze: a dimension appears multiple times in {tuple(places)}")
    kept = tuple([d for d in range(a.ndim + extra) if d not in new])
    lengths = iter(a.shape)
    shape = tuple([1 if d in new else next(lengths) for d in range(a.ndim + extra)])
    return a if not new else as_tensor(prims.broadcast_in_dim(a, shape, kept))


expand_dims = unsqueeze


@core.method("squeeze")
def squeeze(a: TensorProxy, dim: int | Sequence[int] | None = None) -> TensorProxy:
    """Drop dimensions of length 1: all of them, or those among ``dim``."""
    a = need_tensor("squeeze", a)
    dims = [d for d in canonical_dims("squeeze", a.ndim, dim) if a.shape[d] == 1]
    return as_tensor(prims.squeeze(a, tuple(sorted(dims)))) if dims else a


@core.method("flatten")
def flatten(a: TensorProxy, start_dim: int = 0, end_dim: int = -1) -> TensorProxy:
    """Make one dimension of those from ``start_dim`` to ``end_dim``, both included.

    Raises:
        ShapeError: ``start_dim`` comes after ``end_dim``.
    """
    a = need_tensor("flatten", a)
    start, end = canonical_dim("flatten", a.ndim, start_dim), canonical_dim("flatten", a.ndim, end_dim)
    if start > end:
        raise ShapeError(f"flatten: start_dim {start_dim} comes after end_dim {end_dim}")
    return reshape(a, (*a.shape[:start], count(a.shape[start : end + 1]), *a.shape[end + 1 :]))


@core.method("ravel")
def ravel(a: TensorProxy) -> TensorProxy:
    """Return the elements in one dimension."""
    return reshape(a, (-1,)) if a.numel != 0 else reshape(a, (0,))


@core.method("unflatten")
def unflatten(a: TensorProxy, dim: int, sizes: Sequence[int]) -> TensorProxy:
    """Make several dimensions of one.

    Raises:
        ShapeError: their product is not the length of the dimension.
    """
    a = need_tensor("unflatten", a)
    place = canonical_dim("unflatten", a.ndim, dim)
    length = a.shape[place]
    known = count([s for s in sizes if s != -1])
    computed = [s for s in sizes if s == -1]
    if len(computed) > 1 or (length % known != 0 if computed and known != 0 else not computed and known != length):
        raise ShapeError(f"unflatten: sizes {list(sizes)} do not multiply up to {length}, dimension {dim} of the input")
    whole = [length // known if s == -1 else s for s in sizes]
    return reshape(a, (*a.shape[:place], *whole, *a.shape[place + 1 :]))


@core.method("expand", "broadcast_to")
def expand(a: TensorProxy, *shape: Any) -> TensorProxy:
    """Repeat dimensions of length 1, and add new ones in front, without copying.

    Args:
        a: any dtype.
        shape: of the result; -1 keeps the length of a dimension.

    Raises:
        ShapeError: a dimension that is not 1 would change.
    """
    a = need_tensor("expand", a)
    wanted = spread(shape)
    new = len(wanted) - a.ndim
    if new < 0:
        raise ShapeError(
            f"expand of {a.type_string} to {shape_text(wanted)}: the number of sizes must be at least {a.ndim}"
        )
    if any([_is_computed(n) for n in wanted[:new]]):
        raise ShapeError(f"expand of {a.type_string} to {shape_text(wanted)}: a new dimension cannot be -1")
    lengths = [have if _is_computed(want) else want for want, have in zip(wanted[new:], a.shape, strict=True)]
    return broadcast_to(a, (*wanted[:new], *lengths))


@core.method("expand_as")
def expand_as(a: TensorProxy, other: TensorProxy) -> TensorProxy:
    """Expand to the shape of ``other``."""
    return expand(a, other.shape)


def broadcast_tensors(*tensors: TensorProxy) -> tuple[TensorProxy, ...]:
    """Return the tensors broadcast to one shape."""
    return broadcast(*tensors)


@core.method("select")
def select(a: TensorProxy, dim: int, index: Dimension) -> TensorProxy:
    """Return the slice at ``index`` of a dimension, without that dimension.

    Raises:
        DimensionError: there is no such index or dimension.
    """
    a = need_tensor("select", a)
    if not a.shape:
        raise DimensionError("select() cannot be applied to a 0-dim tensor")
    place = canonical_dim("select", a.ndim, dim)
    length = a.shape[place]
    if not -length <= index < length:
        raise DimensionError(f"select: index {index} out of range for {a.type_string} at dimension {dim}")
    start = index + length if index < 0 else index
    starts = tuple([start if d == place else 0 for d in range(a.ndim)])
    ends = tuple([start + 1 if d == place else n for d, n in enumerate(a.shape)])
    return as_tensor(prims.squeeze(prims.slice(a, starts, ends, (1,) * a.ndim), (place,)))


@core.method("diagonal")
def diagonal(a: TensorProxy, offset: int = 0, dim1: int = 0, dim2: int = 1) -> TensorProxy:
    """Return a diagonal of the matrices along two dimensions, as the last dimension.

    Args:
        a: at least two dimensions.
        offset: above the main diagonal where positive.
        dim1, dim2: rows and columns.
    """
    a = need_tensor("diagonal", a)
    rows, columns = canonical_dim("diagonal", a.ndim, dim1), canonical_dim("diagonal", a.ndim, dim2)
    if a.ndim < 2 or rows == columns:
        raise ShapeError(f"diagonal of {a.type_string} needs two different dimensions, got {dim1} and {dim2}")
    a = movedim(a, (rows, columns), (-2, -1))
    n, m = a.shape[-2], a.shape[-1]
    down, right = max(0, -offset), max(0, offset)
    length = max(0, min(n - down, m - right))
    if length == 0:
        return as_tensor(prims.reshape(_sliced(a, {-2: (0, 0)}), (*a.shape[:-2], 0)))
    a = _sliced(a, {-2: (down, down + length), -1: (right, right + length)})
    flat = prims.reshape(a, (*a.shape[:-2], length * length))
    starts, strides = (0,) * flat.ndim, (*(1,) * (flat.ndim - 1), length + 1)
    return as_tensor(prims.slice(flat, starts, flat.shape, strides))


def _sliced(a: TensorProxy, ranges: dict[int, tuple[Any, Any]]) -> TensorProxy:
    """The part of ``a`` within a range per dimension, counted from the end."""
    bounds = [ranges.get(d - a.ndim, (0, n)) for d, n in enumerate(a.shape)]
    if all([start == 0 and stop is n for (start, stop), n in zip(bounds, a.shape, strict=True)]):
        return a
    return as_tensor(prims.slice(a, tuple([b[0] for b in bounds]), tuple([b[1] for b in bounds]), (1,) * a.ndim))


@core.method("unfold")
def unfold(a: TensorProxy, dimension: int, size: int, step: int) -> TensorProxy:
    """Return all windows of ``size`` elements, ``step`` apart, along a dimension, as the last dimension.

    Source:
        ``torch.Tensor.unfold``.
    """
    a = need_tensor("unfold", a)
    return as_tensor(prims.unfold(a, canonical_dim("unfold", a.ndim, dimension), size, step))
