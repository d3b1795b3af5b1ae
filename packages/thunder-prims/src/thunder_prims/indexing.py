"""Prims that read and write whole slices at places given by indices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import mul
from typing import Any

from thunder_autograd import Pullback, jvp_rule, vjp_rule
from thunder_ir import OpTags, ShapeError, Symbol, TensorProxy
from thunder_prims.axes import filled, moved, positions, shifted
from thunder_prims.checks import check_dim
from thunder_prims.derivatives import linear
from thunder_prims.gathering import gather
from thunder_prims.operands import any_requires_grad, check_has_shape, check_indices, check_operands, replaced
from thunder_prims.prim import prim
from thunder_prims.shape import batch_first, broadcast_in_dim, reshape, slice, transpose
from thunder_vmap import batching_rule

__all__ = ["index", "index_add", "index_copy", "index_put", "slice_scatter", "take"]


@prim(OpTags.MAY_FAIL)
def take(a: TensorProxy, indices: TensorProxy, dim: int) -> TensorProxy:
    """Return the slices of ``a`` along ``dim`` that stand at ``indices``.

    Args:
        a: shape ``(d_0, ..., d_k)``, any dtype.
        indices: integers in ``0..d_dim - 1``, shape ``(i_0, ..., i_m)``.
        dim: a dimension of ``a``.

    Returns:
        The shape of ``a`` with ``i_0, ..., i_m`` in place of ``d_dim``.

    Example:
        >>> from thunder_ir import Tensor, trace_of
        >>> from thunder_prims import take
        >>> def program(x, i):
        ...     return take(x, i, 1)
        >>> print(trace_of(program, Tensor((2, 9, 4)), Tensor((5, 6), "int64")))
        def program(x: "float32[2, 9, 4]", i: "int64[5, 6]"):
            t0 = prims.take(x, i, 1)  # float32[2, 5, 6, 4]
            return t0

    Source:
        ``torch.index_select`` for one-dimensional ``indices``, ``numpy.take`` in general.
    """
    check_dim("take", a, dim)
    check_indices("take", a, indices)
    return a.like(shape=replaced(a.shape, dim, *indices.shape))


@vjp_rule(take)
def take_vjp(a: TensorProxy, indices: TensorProxy, dim: int) -> tuple[TensorProxy, Pullback]:
    """Each slice of ``dy`` is added where it stood in ``a``."""

    def pullback(dy: TensorProxy) -> Any:
        flat = indices
        if indices.ndim != 1:
            flat = reshape(indices, (indices.numel,))
            dy = reshape(dy, replaced(a.shape, dim, indices.numel))
        return index_add(filled(dy, 0, a.shape), flat, dy, dim)

    return take(a, indices, dim), pullback


linear(take)


@batching_rule(take)
def take_batching(size: Any, args: Any, dims: Any) -> tuple[TensorProxy, int]:
    """One tensor for all, or indices for all, need nothing moved; with both batched, each element is gathered.

    An index, unlike either, would count negative places from the end.
    """
    (a, indices, dim), (of_a, of_indices, _) = args, dims
    if of_indices is None:
        along = shifted(dim, of_a)
        return take(a, indices, along), of_a if of_a < along else of_a + indices.ndim - 1
    if of_a is None:
        return take(a, indices, dim), dim + of_indices
    places = batch_first(indices, of_indices, size)
    a, count = batch_first(a, of_a, size), reduce(mul, places.shape[1:], 1)
    every = replaced(a.shape, dim + 1, count)
    taken = gather(a, broadcast_in_dim(reshape(places, (size, count)), every, (0, dim + 1)), dim + 1)
    return reshape(taken, (*every[: dim + 1], *places.shape[1:], *every[dim + 2 :])), 0


def _index_write(operation: str, a: TensorProxy, indices: TensorProxy, values: TensorProxy, dim: int) -> TensorProxy:
    check_dim(operation, a, dim)
    check_indices(operation, a, indices)
    check_operands(operation, a, values)
    if indices.ndim > 1:
        raise ShapeError(f"{operation} needs indices of at most one dimension, got {indices.type_string}")
    length = indices.shape[0] if indices.ndim else 1
    check_has_shape(operation, "values", values, replaced(a.shape, dim, length))
    return a.like(requires_grad=any_requires_grad(a, values))


def _batched_indices(size: Any, indices: Any, dims: Any) -> tuple[Any, ...]:
    """Put the place of each example before its indices, all repeated to one shape with the batch in front."""
    batched = [None if i is None else batch_first(i, d, size) for i, d in zip(indices, dims, strict=True)]
    shape = next(i.shape for i in batched if i is not None)
    first = next(i for i in batched if i is not None)
    return (positions(first, shape, 0), *batched)


def _moved_block(a: Any, start: int, count: int, destination: int) -> Any:
    """Return ``a`` with ``count`` dimensions from ``start`` on moved to ``destination``, the others in order."""
    order = [i for i in range(a.ndim) if not start <= i < start + count]
    order[destination:destination] = range(start, start + count)
    return a if order == list(range(a.ndim)) else transpose(a, tuple(order))


@prim(OpTags.MAY_FAIL)
def index_add(a: TensorProxy, indices: TensorProxy, values: TensorProxy, dim: int) -> TensorProxy:
    """Add slices to those of ``a`` at ``indices``; an index that repeats adds repeatedly.

    Args:
        a: shape ``(d_0, ..., d_k)``.
        indices: integers in ``0..d_dim - 1``, shape ``(n,)`` or ``()``, which counts as ``(1,)``.
        values: the shape of ``a`` with ``n`` at ``dim``, dtype of ``a``.
        dim: a dimension of ``a``.

    Source:
        ``torch.index_add``.
    """
    return _index_write("index_add", a, indices, values, dim)


@vjp_rule(index_add)
def index_add_vjp(a: Any, indices: Any, values: Any, dim: int) -> tuple[TensorProxy, Pullback]:
    """``da = dy``, and ``dvalues`` is ``dy`` at the places that were added to."""
    return index_add(a, indices, values, dim), lambda dy: (dy, None, _taken(dy, indices, values, dim))


def _taken(dy: TensorProxy, indices: TensorProxy, values: TensorProxy, dim: int) -> Any:
    taken = take(dy, indices, dim)
    return taken if indices.ndim else reshape(taken, values.shape)


@jvp_rule(index_add)
def index_add_jvp(a: Any, indices: Any, values: Any, dim: int, da: Any, _: None, dvalues: Any, __: None) -> Any:
    """``dvalues`` added to ``da``."""
    y = index_add(a, indices, values, dim)
    if dvalues is None:
        return y, da
    return y, index_add(filled(y, 0) if da is None else da, indices, dvalues, dim)


@batching_rule(index_add)
def index_add_batching(size: Any, args: Any, dims: Any) -> tuple[TensorProxy, int]:
    """As it is where the indices are the same for all; pairs of places otherwise."""
    return _index_write_batching(index_add, True, size, args, dims)


def _index_write_batching(symbol: Symbol, accumulate: bool, size: Any, args: Any, dims: Any) -> tuple[Any, int]:
    (a, indices, values, dim), (of_a, of_indices, of_values, _) = args, dims
    a, values = batch_first(a, of_a, size), batch_first(values, of_values, size)
    if of_indices is None:
        return symbol(a, indices, values, dim + 1), 0
    if indices.ndim == 1:
        indices = reshape(indices, (size, 1))
    pairs = _batched_indices(size, (indices,), (of_indices if indices.ndim == 2 else 0,))
    written = index_put(moved(a, dim + 1, 1), pairs, moved(values, dim + 1, 1), accumulate)
    return moved(written, 1, dim + 1), 0


@prim(OpTags.MAY_FAIL)
def index_copy(a: TensorProxy, indices: TensorProxy, values: TensorProxy, dim: int) -> TensorProxy:
    """Put slices in place of those of ``a`` at ``indices``, each of which should come once.

    Arguments as for ``index_add``.

    Source:
        ``torch.index_copy``.
    """
    return _index_write("index_copy", a, indices, values, dim)


@vjp_rule(index_copy)
def index_copy_vjp(a: Any, indices: Any, values: Any, dim: int) -> tuple[TensorProxy, Pullback]:
    """``da`` is ``dy`` without what was replaced, ``dvalues`` is ``dy`` at those places."""

    def pullback(dy: TensorProxy) -> tuple[Any, ...]:
        kept = index_copy(dy, indices, filled(dy, 0, values.shape), dim)
        return kept, None, _taken(dy, indices, values, dim)

    return index_copy(a, indices, values, dim), pullback


@jvp_rule(index_copy)
def index_copy_jvp(a: Any, indices: Any, values: Any, dim: int, da: Any, _: None, dvalues: Any, __: None) -> Any:
    """``dvalues`` put into ``da``."""
    y = index_copy(a, indices, values, dim)
    da = filled(y, 0) if da is None else da
    return y, index_copy(da, indices, filled(values, 0) if dvalues is None else dvalues, dim)


@batching_rule(index_copy)
def index_copy_batching(size: Any, args: Any, dims: Any) -> tuple[TensorProxy, int]:
    """As it is where the indices are the same for all; pairs of places otherwise."""
    return _index_write_batching(index_copy, False, size, args, dims)


def _advanced_shape(operation: str, a: TensorProxy, indices: Sequence[TensorProxy | None]) -> tuple[object, ...]:
    """The shape that ``a[indices]`` has, in NumPy's order: in place if the indexed dimensions are neighbours."""
    given = [i for i, index in enumerate(indices) if index is not None]
    if not given:
        raise ShapeError(f"{operation} of {a.type_string} needs at least one tensor of indices")
    if len(indices) > a.ndim:
        raise ShapeError(f"{operation} of {a.type_string} takes at most {a.ndim} indices, got {len(indices)}")
    common: TensorProxy | None = None
    for index in indices:
        if index is None:
            continue
        check_indices(operation, a, index)
        if common is None:
            common = index
        else:
            check_has_shape(operation, "indices", index, common.shape)
    assert common is not None
    rest = [d for i, d in enumerate(a.shape) if i not in given]
    first = given[0] if given == list(range(given[0], given[-1] + 1)) else 0
    return (*rest[:first], *common.shape, *rest[first:])


@prim(OpTags.MAY_FAIL)
def index(a: TensorProxy, indices: tuple[TensorProxy | None, ...]) -> TensorProxy:
    """Return the elements of ``a`` at tuples of indices, as ``a[indices]`` does with ``None`` for a full slice.

    Args:
        a: any dtype.
        indices: for leading dimensions of ``a`` a tensor of integers each, all of one shape, or ``None`` for a
            dimension that is kept. Negative integers are not counted from the end.

    Returns:
        The shape of the indices in place of the indexed dimensions if these are neighbours, in front otherwise.

    Source:
        ``numpy`` advanced indexing.
    """
    return a.like(shape=_advanced_shape("index", a, indices))  # type: ignore[arg-type]


@vjp_rule(index)
def index_vjp(a: TensorProxy, indices: Any) -> tuple[TensorProxy, Pullback]:
    """Each of ``dy`` is added where it stood in ``a``."""
    return index(a, indices), lambda dy: index_put(filled(dy, 0, a.shape), indices, dy, True)


linear(index)


def _block(indices: Sequence[Any]) -> tuple[int, int]:
    """Return where the dimensions of the indices stand in the result of ``index``, and how many they are."""
    given = [i for i, index in enumerate(indices) if index is not None]
    count = indices[given[0]].ndim
    return (given[0] if given[-1] - given[0] == len(given) - 1 else 0), count


@batching_rule(index)
def index_batching(size: Any, args: Any, dims: Any) -> tuple[TensorProxy, int]:
    """A batch of tensors alone is a full slice more, one of indices alone needs nothing; both make pairs of places."""
    (a, indices), (of_a, of_indices) = args, dims
    if not any([d is not None for d in of_indices or ()]):
        indices = (None, *indices)
        start, count = _block(indices)
        return index(batch_first(a, of_a, size), indices), 0 if start else count
    if of_a is None:
        pairs = _batched_indices(size, indices, of_indices)[1:]
        return index(a, pairs), _block(pairs)[0]
    start, _ = _block(indices)
    pairs = _batched_indices(size, indices, of_indices)
    taken = index(batch_first(a, of_a, size), pairs)
    return _moved_block(taken, 1, pairs[0].ndim - 1, start + 1), 0


@prim(OpTags.MAY_FAIL)
def index_put(
    a: TensorProxy, indices: tuple[TensorProxy | None, ...], values: TensorProxy, accumulate: bool
) -> TensorProxy:
    """Put ``values`` in place of the elements that ``index(a, indices)`` reads, or add them.

    Args:
        a: any dtype.
        indices: as for ``index``.
        values: of the shape of ``index(a, indices)`` and the dtype of ``a``.
        accumulate: add, repeatedly where an index repeats; otherwise replace, and of repeated ones any may win.

    Returns:
        The shape of ``a``.

    Source:
        ``torch.index_put``.
    """
    shape = _advanced_shape("index_put", a, indices)
    check_operands("index_put", a, values)
    check_has_shape("index_put", "values", values, shape)
    return a.like(requires_grad=any_requires_grad(a, values))


@vjp_rule(index_put)
def index_put_vjp(a: Any, indices: Any, values: Any, accumulate: bool) -> tuple[TensorProxy, Pullback]:
    """``dvalues`` is ``dy`` at the places written to, ``da`` is ``dy``, without these unless they were added to."""

    def pullback(dy: TensorProxy) -> tuple[Any, ...]:
        of_a = dy if accumulate else index_put(dy, indices, filled(dy, 0, values.shape), False)
        return of_a, None, index(dy, indices)

    return index_put(a, indices, values, accumulate), pullback


@jvp_rule(index_put)
def index_put_jvp(a: Any, indices: Any, values: Any, accumulate: bool, da: Any, _: Any, dvalues: Any, __: Any) -> Any:
    """``dvalues`` put into ``da``, or added to it."""
    y = index_put(a, indices, values, accumulate)
    da = filled(y, 0) if da is None else da
    return y, index_put(da, indices, filled(values, 0) if dvalues is None else dvalues, accumulate)


@batching_rule(index_put)
def index_put_batching(size: Any, args: Any, dims: Any) -> tuple[TensorProxy, int]:
    """Where indices are the same for all, the batch is a full slice more; otherwise they become pairs of places."""
    (a, indices, values, accumulate), (of_a, of_indices, of_values, _) = args, dims
    a, values = batch_first(a, of_a, size), batch_first(values, of_values, size)
    start, count = _block(indices)
    if any([d is not None for d in of_indices or ()]):
        pairs = _batched_indices(size, indices, of_indices)
        return index_put(a, pairs, _moved_block(values, start + 1, pairs[0].ndim - 1, 1), accumulate), 0
    indices = (None, *indices)
    return index_put(a, indices, values if _block(indices)[0] else moved(values, 0, count), accumulate), 0


@prim()
def slice_scatter(
    a: TensorProxy, values: TensorProxy, starts: tuple[int, ...], ends: tuple[int, ...], strides: tuple[int, ...]
) -> TensorProxy:
    """Put ``values`` in place of the elements that ``slice(a, starts, ends, strides)`` reads.

    Args:
        a: any dtype.
        values: of the shape of that slice and the dtype of ``a``.
        starts, ends, strides: per dimension of ``a``, with ``0 <= start <= end <= length`` and ``stride >= 1``.

    Returns:
        The shape of ``a``.
    """
    if not len(starts) == len(ends) == len(strides) == a.ndim:
        raise ShapeError(
            f"slice_scatter of {a.type_string} needs {a.ndim} starts, ends and strides, got {starts}, {ends}, {strides}"
        )
    for length, start, end, stride in zip(a.shape, starts, ends, strides, strict=True):
        if not (0 <= start <= end <= length and stride >= 1):
            raise ShapeError(
                f"slice_scatter of {a.type_string} needs 0 <= start <= end <= length and stride >= 1, "
                f"got {starts}, {ends}, {strides}"
            )
    check_operands("slice_scatter", a, values)
    shape = [(end - start + stride - 1) // stride for start, end, stride in zip(starts, ends, strides, strict=True)]
    check_has_shape("slice_scatter", "values", values, shape)
    return a.like(requires_grad=any_requires_grad(a, values))


@vjp_rule(slice_scatter)
def slice_scatter_vjp(a: Any, values: Any, starts: Any, ends: Any, strides: Any) -> tuple[TensorProxy, Pullback]:
    """``da`` is ``dy`` without what was replaced, ``dvalues`` is ``dy`` at those places."""

    def pullback(dy: TensorProxy) -> tuple[Any, Any]:
        kept = slice_scatter(dy, filled(dy, 0, values.shape), starts, ends, strides)
        return kept, slice(dy, starts, ends, strides)

    return slice_scatter(a, values, starts, ends, strides), pullback


@jvp_rule(slice_scatter)
def slice_scatter_jvp(a: Any, values: Any, *where_and_tangents: Any) -> Any:
    """``dvalues`` put into ``da``."""
    starts, ends, strides, da, dvalues, *_ = where_and_tangents
    y = slice_scatter(a, values, starts, ends, strides)
    da = filled(y, 0) if da is None else da
    return y, slice_scatter(da, filled(values, 0) if dvalues is None else dvalues, starts, ends, strides)


@batching_rule(slice_scatter)
def slice_scatter_batching(size: Any, args: Any, dims: Any) -> tuple[TensorProxy, int]:
    """The batch dimension is taken whole."""
    (a, values, starts, ends, strides), (of_a, of_values, *_) = args, dims
    a, values = batch_first(a, of_a, size), batch_first(values, of_values, size)
    return slice_scatter(a, values, (0, *starts), (size, *ends), (1, *strides)), 0
