"""Prims that read and write single elements at places given by indices along one dimension."""

from __future__ import annotations

from typing import Any

from thunder_autograd import Pullback, jvp_rule, vjp_rule
from thunder_ir import OpTags, ShapeError, Symbol, TensorProxy, same_shape
from thunder_ir.number_proxies import Number
from thunder_prims.axes import filled
from thunder_prims.checks import check_dim
from thunder_prims.derivatives import linear
from thunder_prims.operands import any_requires_grad, check_indices, check_operands, without
from thunder_prims.prim import prim
from thunder_prims.shape import batch_first, pad
from thunder_vmap import batching_rule

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


@prim(OpTags.MAY_FAIL)
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


linear(gather)


@prim(OpTags.MAY_FAIL)
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


linear(take_along_axis)


@vjp_rule(gather)
def gather_vjp(a: TensorProxy, indices: TensorProxy, dim: int) -> tuple[TensorProxy, Pullback]:
    """Each of ``dy`` is added where its value stood."""
    return gather(a, indices, dim), lambda dy: scatter_add(filled(dy, 0, a.shape), indices, dy, dim)


@vjp_rule(take_along_axis)
def take_along_axis_vjp(a: TensorProxy, indices: TensorProxy, dim: int) -> tuple[TensorProxy, Pullback]:
    """Each of ``dy`` is added where its value stood."""
    return take_along_axis(a, indices, dim), lambda dy: scatter_add(filled(dy, 0, a.shape), indices, dy, dim)


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


@prim(OpTags.MAY_FAIL)
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


def _gathered(dy: TensorProxy, indices: TensorProxy, source: TensorProxy, dim: int) -> Any:
    """Return the elements of ``dy`` that came from ``source``; zeros for those of it that ``indices`` leaves out."""
    taken = gather(dy, indices, dim)
    if same_shape(indices.shape, source.shape):
        return taken
    return pad(taken, 0, tuple([(0, n - m, 0) for m, n in zip(indices.shape, source.shape, strict=True)]))


@vjp_rule(scatter)
def scatter_vjp(a: TensorProxy, indices: TensorProxy, source: Any, dim: int) -> tuple[TensorProxy, Pullback]:
    """``da`` is ``dy`` without what was replaced, ``dsource`` is ``dy`` at those places."""

    def pullback(dy: TensorProxy) -> tuple[Any, ...]:
        of_source = _gathered(dy, indices, source, dim) if isinstance(source, TensorProxy) else None
        return scatter(dy, indices, 0, dim), None, of_source

    return scatter(a, indices, source, dim), pullback


@jvp_rule(scatter)
def scatter_jvp(a: Any, indices: Any, source: Any, dim: int, da: Any, _: None, dsource: Any, __: None) -> Any:
    """``dsource`` put into ``da``."""
    y = scatter(a, indices, source, dim)
    if da is None:
        da = filled(y, 0)
    return y, scatter(da, indices, 0 if dsource is None else dsource, dim)


@prim(OpTags.MAY_FAIL)
def scatter_add(a: TensorProxy, indices: TensorProxy, source: TensorProxy, dim: int) -> TensorProxy:
    """Add elements of ``source`` to those that ``gather(a, indices, dim)`` reads, repeatedly where an index repeats.

    Arguments as for ``scatter``.

    Source:
        ``torch.scatter_add``.
    """
    return _write("scatter_add", a, indices, source, dim)


@vjp_rule(scatter_add)
def scatter_add_vjp(a: Any, indices: Any, source: Any, dim: int) -> tuple[TensorProxy, Pullback]:
    """``da = dy``, and ``dsource`` is ``dy`` at the places that were added to."""
    return scatter_add(a, indices, source, dim), lambda dy: (dy, None, _gathered(dy, indices, source, dim))


@jvp_rule(scatter_add)
def scatter_add_jvp(a: Any, indices: Any, source: Any, dim: int, da: Any, _: None, dsource: Any, __: None) -> Any:
    """``dsource`` added to ``da``."""
    y = scatter_add(a, indices, source, dim)
    if dsource is None:
        return y, da
    return y, scatter_add(filled(y, 0) if da is None else da, indices, dsource, dim)


def _batches_places(*symbols: Symbol) -> None:
    """Give these operations their batching rule: all tensors get the batch dimension in front."""

    def register(symbol: Symbol) -> None:
        @batching_rule(symbol)
        def rule(size: Any, args: Any, dims: Any) -> tuple[Any, int]:
            tensors = [
                batch_first(a, d, size) if isinstance(a, TensorProxy) else a for a, d in zip(args, dims, strict=True)
            ]
            return symbol(*tensors[:-1], args[-1] + 1), 0

    for symbol in symbols:
        register(symbol)


_batches_places(gather, take_along_axis, scatter, scatter_add)
