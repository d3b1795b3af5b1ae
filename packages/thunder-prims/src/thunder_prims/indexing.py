"""Prims that read and write whole slices at places given by indices."""

from __future__ import annotations

from collections.abc import Sequence

from thunder_ir import ShapeError, TensorProxy
from thunder_prims.checks import check_dim
from thunder_prims.operands import any_requires_grad, check_has_shape, check_indices, check_operands, replaced
from thunder_prims.prim import prim

__all__ = ["index", "index_add", "index_copy", "index_put", "slice_scatter", "take"]


@prim(method="take")
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


def _index_write(operation: str, a: TensorProxy, indices: TensorProxy, values: TensorProxy, dim: int) -> TensorProxy:
    check_dim(operation, a, dim)
    check_indices(operation, a, indices)
    check_operands(operation, a, values)
    if indices.ndim > 1:
        raise ShapeError(f"{operation} needs indices of at most one dimension, got {indices.type_string}")
    length = indices.shape[0] if indices.ndim else 1
    check_has_shape(operation, "values", values, replaced(a.shape, dim, length))
    return a.like(requires_grad=any_requires_grad(a, values))


@prim(method="index_add")
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


@prim(method="index_copy")
def index_copy(a: TensorProxy, indices: TensorProxy, values: TensorProxy, dim: int) -> TensorProxy:
    """Put slices in place of those of ``a`` at ``indices``, each of which should come once.

    Arguments as for ``index_add``.

    Source:
        ``torch.index_copy``.
    """
    return _index_write("index_copy", a, indices, values, dim)


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


@prim(method="index")
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


@prim(method="index_put")
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


@prim(method="slice_scatter")
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
