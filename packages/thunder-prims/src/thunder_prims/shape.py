"""Prims that move elements and compute nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thunder_autograd import Pullback, jvp_rule, vjp_rule
from thunder_ir import DimensionError, OpTags, ShapeError, TensorProxy, is_one, same_shape
from thunder_ir.number_proxies import Dimension, Number
from thunder_prims.checks import (
    check_dim,
    check_dims,
    check_number,
    check_same,
    check_shape,
    check_tensor,
    count,
    described,
)
from thunder_prims.creation import zeros_like
from thunder_prims.derivatives import linear
from thunder_prims.prim import prim
from thunder_vmap import batching_rule

__all__ = [
    "broadcast_in_dim", "cat", "flip", "pad", "reshape", "shape_of", "slice", "squeeze", "transpose", "view",
]  # fmt: skip


@prim(OpTags.SHAPE_OP, OpTags.VIEW)
def transpose(a: TensorProxy, permutation: tuple[int, ...]) -> TensorProxy:
    """Reorder the dimensions of ``a``.

    Args:
        a: shape ``(d_0, ..., d_k)``, any dtype.
        permutation: each of ``0..k`` once.

    Returns:
        shape ``(d_p0, ..., d_pk)`` for ``permutation = (p0, ..., pk)``, dtype of ``a``.

    Raises:
        ShapeError: ``permutation`` repeats, misses or exceeds a dimension.

    Example:
        >>> from thunder_ir import Tensor, trace_of
        >>> from thunder_prims import transpose
        >>> def program(x):
        ...     return transpose(x, (1, 0))
        >>> print(trace_of(program, Tensor((2, 3))))
        def program(x: "float32[2, 3]"):
            t0 = prims.transpose(x, (1, 0))  # float32[3, 2]
            return t0

    Source:
        ``torch.permute``, with dimensions already non-negative.
    """
    check_tensor("transpose", a)
    if not isinstance(permutation, (tuple, list)) or sorted(permutation) != list(range(a.ndim)):
        raise ShapeError(f"transpose of {a.type_string} needs a permutation of 0..{a.ndim - 1}, got {permutation}")
    return a.like(shape=tuple([a.shape[d] for d in permutation]))


def inverse(permutation: Sequence[int]) -> tuple[int, ...]:
    """Return the permutation that takes back ``permutation``."""
    return tuple(sorted(range(len(permutation)), key=permutation.__getitem__))


@vjp_rule(transpose)
def transpose_vjp(a: TensorProxy, permutation: tuple[int, ...]) -> tuple[TensorProxy, Pullback]:
    """``da = transpose(dy, inverse of permutation)``."""
    return transpose(a, permutation), lambda dy: transpose(dy, inverse(permutation))


linear(transpose)


@batching_rule(transpose)
def transpose_batching(size: Dimension, args: Any, dims: Any) -> tuple[TensorProxy, int]:
    """The batch dimension comes to the front, the others behind it in the order asked for."""
    (a, permutation), (batch, _) = args, dims
    return transpose(a, (batch, *[p + (p >= batch) for p in permutation])), 0


@prim(OpTags.SHAPE_OP, OpTags.VIEW)
def broadcast_in_dim(a: TensorProxy, shape: tuple[Dimension, ...], dims: tuple[int, ...]) -> TensorProxy:
    """Repeat ``a`` along new dimensions and along those of size 1.

    Args:
        a: shape ``(d_0, ..., d_k)``, any dtype.
        shape: of the result.
        dims: for each dimension of ``a``, ascending, the dimension of the result that it becomes. ``d_i`` is 1 or
            ``shape[dims[i]]``.

    Returns:
        ``shape``, dtype of ``a``.

    Raises:
        ShapeError: ``dims`` does not fit, or a size is neither 1 nor that of the result.
        DimensionError: one of ``dims`` is no dimension of the result.
    """
    check_tensor("broadcast_in_dim", a)
    check_shape("broadcast_in_dim", shape)
    if len(dims) != a.ndim or any([i >= j for i, j in zip(dims, dims[1:], strict=False)]):
        raise ShapeError(
            f"broadcast_in_dim of {a.type_string} needs {a.ndim} ascending dimensions of the result, got {tuple(dims)}"
        )
    for size, dim in zip(a.shape, dims, strict=True):
        if not 0 <= dim < len(shape):
            raise DimensionError(f"broadcast_in_dim of {a.type_string} to {shape}: the result has no dimension {dim}")
        if not is_one(size) and size != shape[dim] and size != 1:
            raise ShapeError(
                f"broadcast_in_dim of {a.type_string} to {tuple(shape)} along {tuple(dims)}: a size of {size} can "
                f"become {size} only, not {shape[dim]}"
            )
    return a.like(shape=tuple(shape))


@vjp_rule(broadcast_in_dim)
def broadcast_in_dim_vjp(a: TensorProxy, shape: tuple[Dimension, ...], dims: tuple[int, ...]) -> Any:
    """``da = sum of dy over all that was repeated``."""

    def pullback(dy: TensorProxy) -> TensorProxy:
        kept = {dim for dim, size in zip(dims, a.shape, strict=True) if not is_one(size) and size == shape[dim]}
        kept.update([dim for dim, size in enumerate(shape) if size.__class__ is int and size == 1])
        repeated = tuple([dim for dim in range(len(shape)) if dim not in kept])
        return _reshape_to(dy.sum(repeated) if repeated else dy, a.shape)

    return broadcast_in_dim(a, shape, dims), pullback


linear(broadcast_in_dim)


@batching_rule(broadcast_in_dim)
def broadcast_in_dim_batching(size: Dimension, args: Any, dims: Any) -> tuple[TensorProxy, int]:
    """The batch dimension is one more in front."""
    (a, shape, places), (batch, *_) = args, dims
    return broadcast_in_dim(batch_first(a, batch, size), (size, *shape), (0, *[p + 1 for p in places])), 0


def batch_first(a: TensorProxy, batch: int | None, size: Dimension) -> TensorProxy:
    """Return ``a`` with its batch dimension in front; without one (``None``), repeated along a new one."""
    if batch == 0:
        return a
    if batch is None:
        return broadcast_in_dim(a, (size, *a.shape), tuple(range(1, a.ndim + 1)))
    order = (batch, *[dim for dim in range(a.ndim) if dim != batch])
    return transpose(a, order)


@prim(OpTags.SHAPE_OP, OpTags.VIEW, OpTags.MAY_COPY)
def reshape(a: TensorProxy, shape: tuple[Dimension, ...]) -> TensorProxy:
    """Give ``a`` another shape with the elements in the same row-major order.

    Args:
        a: any shape and dtype.
        shape: of as many elements as ``a``.

    Raises:
        ShapeError: ``shape`` has another number of elements.
    """
    return _reshaped("reshape", a, shape)


def _reshape_to(a: TensorProxy, shape: tuple[Dimension, ...]) -> TensorProxy:
    """``a`` itself where it has the shape already."""
    return a if same_shape(a.shape, shape) else reshape(a, shape)


@prim(OpTags.SHAPE_OP, OpTags.VIEW)
def view(a: TensorProxy, shape: tuple[Dimension, ...]) -> TensorProxy:
    """Give ``a`` another shape as :func:`reshape` does, sharing its memory: what runs it raises where that cannot be.

    Raises:
        ShapeError: ``shape`` has another number of elements.
    """
    return _reshaped("view", a, shape)


@vjp_rule(reshape)
def reshape_vjp(a: TensorProxy, shape: tuple[Dimension, ...]) -> tuple[TensorProxy, Pullback]:
    """``da = reshape(dy, shape of a)``."""
    return reshape(a, shape), lambda dy: reshape(dy, a.shape)


@vjp_rule(view)
def view_vjp(a: TensorProxy, shape: tuple[Dimension, ...]) -> tuple[TensorProxy, Pullback]:
    """``da = reshape(dy, shape of a)``: the memory of ``dy`` may be in any order."""
    return view(a, shape), lambda dy: reshape(dy, a.shape)


linear(reshape)


@jvp_rule(view)
def view_jvp(a: TensorProxy, shape: tuple[Dimension, ...], da: TensorProxy | None, _: None) -> Any:
    """``dy = reshape(da, shape)``: the memory of ``da`` may be in any order."""
    return view(a, shape), None if da is None else reshape(da, shape)


@batching_rule(reshape, view)
def reshape_batching(size: Dimension, args: Any, dims: Any) -> tuple[TensorProxy, int]:
    """The batch dimension comes to the front and stays as it is; that may need a copy."""
    (a, shape), (batch, _) = args, dims
    return reshape(batch_first(a, batch, size), (size, *shape)), 0


def _reshaped(operation: str, a: TensorProxy, shape: Sequence[Dimension]) -> TensorProxy:
    check_tensor(operation, a)
    check_shape(operation, shape)
    have, want = _without_shared(a.shape, shape)
    if count(have) != count(want):
        raise ShapeError(
            f"{operation} of {a.type_string} with {count(a.shape)} elements to {tuple(shape)} with {count(shape)}"
        )
    return a.like(shape=tuple(shape))


def _without_shared(a: Sequence[Dimension], b: Sequence[Dimension]) -> tuple[list[Dimension], list[Dimension]]:
    """Two shapes without the symbolic sizes that are in both: nothing need be known of those to compare the rest."""
    rest, others = list(a), []
    for size in b:
        if isinstance(size, int) or not any([size is s for s in rest]):
            others.append(size)
        else:
            rest = [*rest[: (i := [size is s for s in rest].index(True))], *rest[i + 1 :]]
    return rest, others


@prim(OpTags.SHAPE_OP, OpTags.VIEW)
def squeeze(a: TensorProxy, dims: tuple[int, ...]) -> TensorProxy:
    """Drop dimensions of size 1.

    Args:
        a: any shape and dtype.
        dims: those to drop, in any order.

    Raises:
        ShapeError: one of ``dims`` has another size, or appears twice.
        DimensionError: one of ``dims`` is no dimension of ``a``.
    """
    check_dims("squeeze", a, dims)
    for dim in dims:
        if a.shape[dim] != 1:
            raise ShapeError(f"squeeze of {a.type_string} needs dimensions of size 1, got {dim} of size {a.shape[dim]}")
    return a.like(shape=tuple([size for dim, size in enumerate(a.shape) if dim not in dims]))


@vjp_rule(squeeze)
def squeeze_vjp(a: TensorProxy, dims: tuple[int, ...]) -> tuple[TensorProxy, Pullback]:
    """``da = reshape(dy, shape of a)``."""
    return squeeze(a, dims), lambda dy: reshape(dy, a.shape)


linear(squeeze)


@batching_rule(squeeze)
def squeeze_batching(size: Dimension, args: Any, dims: Any) -> tuple[TensorProxy, int]:
    """The other dimensions move behind the batch dimension."""
    (a, squeezed), (batch, _) = args, dims
    return squeeze(batch_first(a, batch, size), tuple([dim + 1 for dim in squeezed])), 0


@prim(OpTags.SHAPE_OP, OpTags.VIEW)
def slice(
    a: TensorProxy, starts: Sequence[Dimension], ends: Sequence[Dimension], strides: Sequence[int] | None = None
) -> TensorProxy:
    """Take a regular part of ``a``: elements ``starts[i], starts[i] + strides[i], ...`` before ``ends[i]``.

    Args:
        a: shape ``(d_0, ..., d_k)``, any dtype.
        starts: one per dimension, ``0 <= starts[i] <= ends[i]``.
        ends: one per dimension, ``ends[i] <= d_i``.
        strides: one per dimension, positive; all 1 if not given.

    Returns:
        sizes ``ceil((ends[i] - starts[i]) / strides[i])``, dtype of ``a``.

    Raises:
        ShapeError: a bound lies outside, or there is not one of each per dimension.
    """
    check_tensor("slice", a)
    steps = (1,) * a.ndim if strides is None else strides
    if not len(starts) == len(ends) == len(steps) == a.ndim:
        raise ShapeError(
            f"slice of {a.type_string} needs {a.ndim} starts, ends and strides, got {starts}, {ends} and {strides}"
        )
    sizes = []
    for size, start, end, step in zip(a.shape, starts, ends, steps, strict=True):
        if not (0 <= start and start <= end and end <= size) or step < 1:
            raise ShapeError(
                f"slice of {a.type_string} from {tuple(starts)} to {tuple(ends)} by {tuple(steps)} needs "
                "0 <= start <= end <= size and a positive stride in each dimension"
            )
        taken = end - start
        sizes.append(taken if step == 1 else (taken + step - 1) // step)
    return a.like(shape=tuple(sizes))


@vjp_rule(slice)
def slice_vjp(
    a: TensorProxy, starts: Sequence[Dimension], ends: Sequence[Dimension], strides: Sequence[int] | None = None
) -> tuple[TensorProxy, Pullback]:
    """``da = dy`` at the places that were taken, and 0 at the others."""
    y = slice(a, starts, ends, strides)

    def pullback(dy: TensorProxy) -> TensorProxy:
        steps = (1,) * a.ndim if strides is None else strides
        config = []
        for size, start, step, taken in zip(a.shape, starts, steps, y.shape, strict=True):
            behind = size - start if taken == 0 else size - start - (taken - 1) * step - 1
            config.append((start, behind, step - 1))
        return pad(dy, 0, tuple(config))

    return y, pullback


linear(slice)


@batching_rule(slice)
def slice_batching(size: Dimension, args: Any, dims: Any) -> tuple[TensorProxy, int]:
    """The batch dimension is taken whole."""
    a, starts, ends, *strides = args
    steps = [None if s is None else (1, *s) for s in strides]
    return slice(batch_first(a, dims[0], size), (0, *starts), (size, *ends), *steps), 0


@prim(OpTags.SHAPE_OP)
def pad(a: TensorProxy, value: Number, config: Sequence[tuple[Dimension, Dimension, int]]) -> TensorProxy:
    """Put ``value`` before, behind and between the elements of each dimension.

    Args:
        a: shape ``(d_0, ..., d_k)``, any dtype.
        value: a number that fits the dtype of ``a``.
        config: per dimension how many go before, behind, and between any two elements. A negative number before or
            behind takes elements away.

    Returns:
        sizes ``before + d_i + max(d_i - 1, 0) * between + behind``, dtype of ``a``.

    Raises:
        ShapeError: not one triple per dimension, a negative number between, or a size that would be negative.
        DTypeError: ``value`` does not fit the dtype.
    """
    check_tensor("pad", a)
    check_number("pad", value, a.dtype)
    if len(config) != a.ndim or any([len(triple) != 3 for triple in config]):
        raise ShapeError(f"pad of {a.type_string} needs (before, behind, between) for each dimension, got {config}")
    sizes = []
    for size, (before, behind, between) in zip(a.shape, config, strict=True):
        if between < 0:
            raise ShapeError(f"pad of {a.type_string} cannot put {between} elements between others, got {config}")
        inner = size if between == 0 or size == 0 else size + (size - 1) * between
        padded = before + inner + behind
        if padded < 0:
            raise ShapeError(f"pad of {a.type_string} with {config} takes away more elements than there are")
        sizes.append(padded)
    return a.like(shape=tuple(sizes))


@vjp_rule(pad)
def pad_vjp(a: TensorProxy, value: Number, config: Any) -> tuple[TensorProxy, Pullback]:
    """``da`` is ``dy`` at the places of the elements of ``a``, and 0 for those that were taken away."""

    def pullback(dy: TensorProxy) -> TensorProxy:
        inner = pad(dy, 0, tuple([(-before, -behind, 0) for before, behind, _ in config]))
        if all([between == 0 for *_, between in config]):
            return inner
        steps = tuple([between + 1 for *_, between in config])
        return slice(inner, (0,) * a.ndim, inner.shape, steps)

    return pad(a, value, config), pullback


@jvp_rule(pad)
def pad_jvp(a: TensorProxy, value: Number, config: Any, da: TensorProxy | None, *_: None) -> Any:
    """``dy = pad(da, 0, config)``."""
    return pad(a, value, config), None if da is None else pad(da, 0, config)


@batching_rule(pad)
def pad_batching(size: Dimension, args: Any, dims: Any) -> tuple[TensorProxy, int]:
    """The batch dimension stays as it is."""
    (a, value, config), (batch, *_) = args, dims
    return pad(batch_first(a, batch, size), value, ((0, 0, 0), *config)), 0


@prim(OpTags.SHAPE_OP)
def cat(tensors: Sequence[TensorProxy], dim: int) -> TensorProxy:
    """Join tensors along an existing dimension.

    Args:
        tensors: at least one; of one dtype, device and number of dimensions, and of one size but along ``dim``.
        dim: along which.

    Returns:
        the sum of the sizes along ``dim``, elsewhere the shape of each.

    Raises:
        ShapeError: there is no tensor, or sizes differ in another dimension.
        DTypeError, DeviceError: they are not of one dtype or device.
        DimensionError: ``dim`` is no dimension of them.
    """
    if not isinstance(tensors, (tuple, list)) or not tensors:
        raise ShapeError(f"cat needs a sequence of at least one tensor, got {described(tensors)}")
    first: TensorProxy = tensors[0]
    check_tensor("cat", first)
    check_dim("cat", first, dim)
    total: Any = first.shape[dim]
    for tensor in tensors[1:]:
        check_tensor("cat", tensor)
        check_same("cat", first, tensor, shape=False)
        if tensor.ndim != first.ndim or any(
            [i != dim and m != n for i, (m, n) in enumerate(zip(first.shape, tensor.shape, strict=True))]
        ):
            raise ShapeError(
                f"cat of {first.type_string} and {tensor.type_string} along {dim} needs equal sizes in all other "
                "dimensions"
            )
        total = total + tensor.shape[dim]
    sizes = first.shape[:dim] + (total,) + first.shape[dim + 1 :]
    return first.like(shape=sizes, requires_grad=any([t.requires_grad for t in tensors]))


@vjp_rule(cat)
def cat_vjp(tensors: Sequence[TensorProxy], dim: int) -> tuple[TensorProxy, Pullback]:
    """Each tensor gets the part of ``dy`` that it went to."""

    def pullback(dy: TensorProxy) -> tuple[tuple[TensorProxy, ...]]:
        parts = []
        start: Dimension = 0
        for tensor in tensors:
            end = start + tensor.shape[dim]
            starts = [start if i == dim else 0 for i in range(dy.ndim)]
            ends = [end if i == dim else size for i, size in enumerate(dy.shape)]
            parts.append(slice(dy, tuple(starts), tuple(ends)))
            start = end
        return (tuple(parts),)

    return cat(tensors, dim), pullback


@jvp_rule(cat)
def cat_jvp(tensors: Sequence[TensorProxy], dim: int, tangents: Sequence[TensorProxy | None] | None, _: None) -> Any:
    """``dy = cat(tangents)``, zeros standing for those that are not there."""
    y = cat(tensors, dim)
    if tangents is None or all([d is None for d in tangents]):
        return y, None
    there = [zeros_like(a) if d is None else d for a, d in zip(tensors, tangents, strict=True)]
    return y, cat(tuple(there), dim)


@batching_rule(cat)
def cat_batching(size: Dimension, args: Any, dims: Any) -> tuple[TensorProxy, int]:
    """All batch dimensions come to the front."""
    (tensors, dim), (batches, _) = args, dims
    return cat(tuple([batch_first(a, b, size) for a, b in zip(tensors, batches, strict=True)]), dim + 1), 0


@prim(OpTags.SHAPE_OP)
def flip(a: TensorProxy, dims: tuple[int, ...]) -> TensorProxy:
    """Reverse the order of the elements along dimensions.

    Raises:
        DimensionError: one of ``dims`` is no dimension of ``a``.
        ShapeError: one of ``dims`` appears twice.
    """
    check_dims("flip", a, dims)
    return a.like()


@vjp_rule(flip)
def flip_vjp(a: TensorProxy, dims: tuple[int, ...]) -> tuple[TensorProxy, Pullback]:
    """``da = flip(dy, dims)``."""
    return flip(a, dims), lambda dy: flip(dy, dims)


linear(flip)


@batching_rule(flip)
def flip_batching(size: Dimension, args: Any, dims: Any) -> tuple[TensorProxy, int]:
    """The batch dimension keeps its order."""
    (a, flipped), (batch, _) = args, dims
    return flip(a, tuple([dim + (dim >= batch) for dim in flipped])), batch


@prim(OpTags.CONSTANT_FOR_DERIVATIVE)
def shape_of(a: TensorProxy) -> tuple[Dimension, ...]:
    """Return the sizes of ``a``, each an ``int`` or a symbolic number that the program has already."""
    check_tensor("shape_of", a)
    return a.shape


@batching_rule(shape_of)
def shape_of_batching(size: Dimension, args: Any, dims: Any) -> tuple[Any, Any]:
    """The batch dimension is not seen."""
    (a,), (batch,) = args, dims
    sizes = tuple([s for dim, s in enumerate(a.shape) if dim != batch])
    return sizes, (None,) * len(sizes)
