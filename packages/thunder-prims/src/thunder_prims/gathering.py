"""Prims that read and write single elements at places given by indices along one dimension."""

from __future__ import annotations

from thunder_ir import ShapeError, TensorProxy
from thunder_ir.proxies import Number
from thunder_prims.checks import check_dim
from thunder_prims.operands import any_requires_grad, check_indices, check_operands, without
from thunder_prims.prim import prim

__all__ = ["gather", "scatter", "scatter_add", "take_along_axis"]


def _check_fitting(operation: str, a: TensorProxy, indices: TensorProxy, dim: int) -> None:
    """Raise unless ``indices`` has the rank of ``a`` and is nowhere longer than it, but along ``dim``."""
    check_dim(operation, a, dim)
    check_indices(operation, a, indices)
    if indices.ndim != a.ndim:
        raise ShapeError(
            f"{operation} of {a.type_string} needs indices of {a.ndim} dimensions, got {indices.type_string}"
        )
    for i, (length, wanted) in enumerate(zip(a.shape, indices.shape, strict=True)):
        if i != dim and wanted > length:
            raise ShapeError(
                f"{operation} of {a.type_string} along dimension {dim} needs indices that are elsewhere no longer, "
                f"got {indices.type_string}"
            )


@prim(method="gather")
def gather(a: TensorProxy, indices: TensorProxy, dim: int) -> TensorProxy:
    """Return ``a[i_0, ..., indices[i_0, ..., i_k], ..., i_k]``, the index standing at ``dim``.

    Args:
        a: any dtype.
        indices: integers in ``0..d_dim - 1``; the rank of ``a``, and nowhere longer than it but along ``dim``.
        dim: a dimension of ``a``.

    Returns:
        The shape of ``indices``, dtype of ``a``.

    Source:
        ``torch.gather``.
    """
    _check_fitting("gather", a, indices, dim)
    return a.like(shape=indices.shape)


@prim(method="take_along_axis")
def take_along_axis(a: TensorProxy, indices: TensorProxy, dim: int) -> TensorProxy:
    """``gather`` where ``indices`` has the shape of ``a`` but along ``dim``.

    Source:
        ``numpy.take_along_axis``, without broadcasting.
    """
    _check_fitting("take_along_axis", a, indices, dim)
    if without(indices.shape, (dim,)) != without(a.shape, (dim,)):
        raise ShapeError(
            f"take_along_axis of {a.type_string} along dimension {dim} needs indices of that shape but for this "
            f"dimension, got {indices.type_string}"
        )
    return a.like(shape=indices.shape)


def _write(operation: str, a: TensorProxy, indices: TensorProxy, source: TensorProxy | Number, dim: int) -> TensorProxy:
    _check_fitting(operation, a, indices, dim)
    if not isinstance(source, TensorProxy):
        return a.like()
    check_operands(operation, a, source)
    if source.ndim != a.ndim or any(
        wanted > length for wanted, length in zip(indices.shape, source.shape, strict=True)
    ):
        raise ShapeError(
            f"{operation} needs a source at least as long as indices in every dimension, "
            f"got {source.type_string} for {indices.type_string}"
        )
    return a.like(requires_grad=any_requires_grad(a, source))


@prim(method="scatter")
def scatter(a: TensorProxy, indices: TensorProxy, source: TensorProxy | Number, dim: int) -> TensorProxy:
    """Put elements of ``source`` in place of those that ``gather(a, indices, dim)`` reads.

    Args:
        a: any dtype.
        indices: as for ``gather``; where two lead to one place, either may win.
        source: dtype of ``a``, and at least as long as ``indices`` everywhere; or a number.
        dim: a dimension of ``a``.

    Returns:
        The shape of ``a``.

    Source:
        ``torch.scatter``.
    """
    return _write("scatter", a, indices, source, dim)


@prim(method="scatter_add")
def scatter_add(a: TensorProxy, indices: TensorProxy, source: TensorProxy, dim: int) -> TensorProxy:
    """Add elements of ``source`` to those that ``gather(a, indices, dim)`` reads, repeatedly where an index repeats.

    Arguments as for ``scatter``.

    Source:
        ``torch.scatter_add``.
    """
    return _write("scatter_add", a, indices, source, dim)
