"""Operations that join, cut, repeat, pad and turn tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import thunder_prims as prims
from thunder_ir import DimensionError, ShapeError, TensorProxy, dtypes, same_shape
from thunder_lang.dims import as_tensor, canonical_dim, canonical_dims, need_tensor, shape_text, spread
from thunder_lang.language import core
from thunder_lang.operands import convert
from thunder_lang.promotion import kind_of, result_type
from thunder_lang.shape import expand, flatten, reshape, select, unsqueeze

__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "cat", "chunk", "column_stack", "concatenate", "dstack", "flip", "hstack",
    "meshgrid", "narrow", "pad", "repeat", "repeat_interleave", "roll", "rot90", "split", "stack", "tensor_split",
    "tile", "tril", "triu", "unbind", "vstack",
]  # fmt: skip


def cat(tensors: Sequence[TensorProxy], dim: int = 0) -> TensorProxy:
    """Join tensors along a dimension.

    Args:
        tensors: of equal shapes but for ``dim``; their dtypes promote. One-dimensional empty ones are passed over.
        dim: of all of them.

    Raises:
        ValueError: there is none.
        ShapeError: the shapes differ in another dimension.

    Example:
        >>> from thunder_ir import Tensor, trace_of
        >>> from thunder_lang import cat, core
        >>> print(trace_of(lambda x, y: cat((x, y), -1), Tensor((2, 3)), Tensor((2, 4)), language=core))
        def program(x: "float32[2, 3]", y: "float32[2, 4]"):
            t0 = prims.cat((x, y), 1)  # float32[2, 7]
            return t0

    Source:
        ``torch.cat``.
    """
    tensors = [need_tensor("cat", t, "each item") for t in tensors]
    if not tensors:
        raise ValueError("cat needs a non-empty sequence of tensors")
    dtype = _common_dtype(tensors)
    kept = [t for t in tensors if not same_shape(t.shape, (0,))] or tensors[:1]
    if kept[0].ndim == 0:
        raise ShapeError("zero-dimensional tensors cannot be concatenated; stack them")
    dim = canonical_dim("cat", kept[0].ndim, dim)
    first = kept[0]
    for number, t in enumerate(kept):
        if t.ndim != first.ndim:
            raise ShapeError(f"cat: tensors must have one number of dimensions, got {first.ndim} and {t.ndim}")
        for place, (a, b) in enumerate(zip(first.shape, t.shape, strict=True)):
            if place != dim and a is not b and a != b:
                raise ShapeError(
                    f"cat: sizes must match except in dimension {dim}: expected size {a} but got size {b} "
                    f"in dimension {place} of tensor number {number}"
                )
    # What is passed over has a gradient all the same: it is joined as nothing at all along the dimension.
    nothing = (*first.shape[:dim], 0, *first.shape[dim + 1 :])
    passed = [] if same_shape(first.shape, (0,)) else [t for t in tensors if same_shape(t.shape, (0,))]
    passed = [t for t in passed if t.requires_grad]
    kept += [as_tensor(prims.reshape(t, nothing)) for t in passed]
    kept = [convert(t, dtype) for t in kept]
    return kept[0] if len(kept) == 1 else as_tensor(prims.cat(tuple(kept), dim))


concatenate = cat


def _common_dtype(tensors: Sequence[TensorProxy]) -> Any:
    first = tensors[0].dtype
    return first if all([t.dtype is first for t in tensors]) else result_type(*tensors)


def stack(tensors: Sequence[TensorProxy], dim: int = 0) -> TensorProxy:
    """Join tensors of one shape along a new dimension.

    Raises:
        ShapeError: there is none, or the shapes differ.
    """
    tensors = [need_tensor("stack", t, "each item") for t in tensors]
    if not tensors:
        raise ShapeError("stack needs a non-empty sequence of tensors")
    first = tensors[0]
    for number, t in enumerate(tensors):
        if not same_shape(t.shape, first.shape):
            raise ShapeError(
                f"stack needs tensors of equal size, got {shape_text(first.shape)} first "
                f"and {shape_text(t.shape)} at entry {number}"
            )
    dtype = _common_dtype(tensors)
    dim = canonical_dim("stack", first.ndim, dim, 1)
    lifted = tuple([unsqueeze(convert(t, dtype), dim) for t in tensors])
    return as_tensor(prims.cat(lifted, dim))


def atleast_1d(a: TensorProxy) -> TensorProxy:
    """Return ``a``, with a dimension if it has none."""
    return unsqueeze(a, 0) if a.ndim == 0 else a


def atleast_2d(a: TensorProxy) -> TensorProxy:
    """Return ``a``, with dimensions of length 1 in front so that there are two."""
    a = atleast_1d(a)
    return unsqueeze(a, 0) if a.ndim == 1 else a


def atleast_3d(a: TensorProxy) -> TensorProxy:
    """Return ``a`` with three dimensions at least: a vector in the middle one, a matrix in the first two."""
    a = atleast_2d(a)
    return unsqueeze(a, -1) if a.ndim == 2 else a


def hstack(tensors: Sequence[TensorProxy]) -> TensorProxy:
    """Join along the second dimension; vectors along their only one."""
    lifted = [atleast_1d(t) for t in tensors]
    return cat(lifted, 0 if lifted and lifted[0].ndim == 1 else 1)


def vstack(tensors: Sequence[TensorProxy]) -> TensorProxy:
    """Join along the first dimension, vectors as rows."""
    return cat([atleast_2d(t) for t in tensors], 0)


def dstack(tensors: Sequence[TensorProxy]) -> TensorProxy:
    """Join along the third dimension."""
    return cat([atleast_3d(t) for t in tensors], 2)


def column_stack(tensors: Sequence[TensorProxy]) -> TensorProxy:
    """Join along the second dimension, vectors as columns."""
    return cat([reshape(t, (t.numel, 1)) if t.ndim < 2 else t for t in tensors], 1)


@core.method("narrow")
def narrow(a: TensorProxy, dim: int, start: int, length: int) -> TensorProxy:
    """Return ``length`` elements from ``start`` on along a dimension.

    Raises:
        ShapeError: they do not exist.
    """
    a = need_tensor("narrow", a)
    place = canonical_dim("narrow", a.ndim, dim)
    size = a.shape[place]
    if not -size <= start <= size:
        raise DimensionError(f"narrow: start out of range (expected to be in range of [{-size}, {size}], got {start})")
    start = start + size if start < 0 else start
    if length < 0 or start + length > size:
        raise ShapeError(f"narrow: start ({start}) + length ({length}) exceeds dimension size ({size})")
    return _part(a, place, start, start + length)


def _part(a: TensorProxy, dim: int, start: Any, stop: Any, step: int = 1) -> TensorProxy:
    """The elements from ``start`` to ``stop`` along ``dim``, all three canonical."""
    length = a.shape[dim]
    if step == 1 and start == 0 and (stop is length or stop == length):
        return a
    starts = tuple([start if d == dim else 0 for d in range(a.ndim)])
    ends = tuple([stop if d == dim else n for d, n in enumerate(a.shape)])
    strides = tuple([step if d == dim else 1 for d in range(a.ndim)])
    return as_tensor(prims.slice(a, starts, ends, strides))


@core.method("split")
def split(a: TensorProxy, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[TensorProxy, ...]:
    """Cut into parts of one size (the last may be smaller), or of the sizes given.

    Raises:
        ShapeError: the sizes do not add up to the length of the dimension, or one is negative.
    """
    a = need_tensor("split", a)
    place = canonical_dim("split", a.ndim, dim)
    length = a.shape[place]
    if isinstance(split_size_or_sections, (tuple, list)):
        sizes = list(split_size_or_sections)
        if any([size < 0 for size in sizes]) or sum(sizes) != length:
            raise ShapeError(f"split: sizes {sizes} must be non-negative and sum to {length}, dimension {dim}")
    else:
        size: Any = split_size_or_sections
        if size < 0 or (size == 0 and length != 0):
            raise ShapeError(f"split needs a positive size, got {size}")
        count = max(1, -(-length // size)) if size != 0 else 1
        sizes = [size] * (count - 1) + [length - size * (count - 1)]
    return _cut(a, place, sizes)


def _cut(a: TensorProxy, dim: int, sizes: Sequence[Any]) -> tuple[TensorProxy, ...]:
    parts, start = [], 0
    for size in sizes:
        parts.append(_part(a, dim, start, start + size))
        start = start + size
    return tuple(parts)


@core.method("chunk")
def chunk(a: TensorProxy, chunks: int, dim: int = 0) -> tuple[TensorProxy, ...]:
    """Cut into at most ``chunks`` parts of equal size; the last may be smaller.

    Raises:
        ShapeError: ``chunks`` is not positive.
    """
    if chunks <= 0:
        raise ShapeError(f"chunk expects chunks to be greater than 0, got {chunks}")
    a = need_tensor("chunk", a)
    place = canonical_dim("chunk", a.ndim, dim)
    length = a.shape[place]
    if length == 0:
        return _cut(a, place, [0] * chunks)
    return split(a, -(-length // chunks), place)


@core.method("tensor_split")
def tensor_split(a: TensorProxy, indices_or_sections: int | Sequence[int], dim: int = 0) -> tuple[TensorProxy, ...]:
    """Cut into that many parts, of sizes that differ by one at most, or at the places given."""
    a = need_tensor("tensor_split", a)
    place = canonical_dim("tensor_split", a.ndim, dim)
    length = a.shape[place]
    if isinstance(indices_or_sections, (tuple, list)):
        cuts = [0] + [min(max(i + length if i < 0 else i, 0), length) for i in indices_or_sections] + [length]
        return tuple([_part(a, place, start, max(start, stop)) for start, stop in zip(cuts, cuts[1:], strict=False)])
    sections: Any = indices_or_sections
    if sections <= 0:
        raise ShapeError(f"tensor_split needs a positive number of sections, got {sections}")
    small, more = divmod(length, sections)
    return _cut(a, place, [small + 1] * more + [small] * (sections - more))


@core.method("unbind")
def unbind(a: TensorProxy, dim: int = 0) -> tuple[TensorProxy, ...]:
    """Return the slices along a dimension, without it.

    Raises:
        DimensionError: ``a`` has no dimension.
    """
    a = need_tensor("unbind", a)
    if a.ndim == 0:
        raise DimensionError("unbind needs at least one dimension; iteration over a 0-d tensor is not possible")
    place = canonical_dim("unbind", a.ndim, dim)
    return tuple([select(a, place, i) for i in range(a.shape[place])])


@core.method("flip")
def flip(a: TensorProxy, *dims: Any) -> TensorProxy:
    """Reverse the order of the elements along dimensions."""
    a = need_tensor("flip", a)
    places = canonical_dims("flip", a.ndim, spread(dims))
    return as_tensor(prims.flip(a, places)) if places else a


@core.method("roll")
def roll(a: TensorProxy, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> TensorProxy:
    """Shift the elements along dimensions, those that fall out coming back on the other side.

    Args:
        a: any dtype.
        shifts: how far, per dimension.
        dims: which; if not given, as if all elements were in one.

    Raises:
        ShapeError: there are more shifts than dimensions, or fewer.
    """
    a = need_tensor("roll", a)
    if dims is None or dims == ():
        flat = flatten(a)
        rolled = roll(flat, shifts, 0)
        return a if rolled is flat else reshape(rolled, a.shape)
    places = (
        canonical_dims("roll", a.ndim, dims)
        if not isinstance(dims, (tuple, list))
        else tuple([canonical_dim("roll", a.ndim, d) for d in dims])
    )
    distances = tuple(shifts) if isinstance(shifts, (tuple, list)) else (shifts,)
    if len(places) != len(distances):
        raise ShapeError(f"roll needs as many shifts as dimensions, got {distances} and {dims}")
    for place, distance in zip(places, distances, strict=True):
        length = a.shape[place]
        if length == 0 or distance % length == 0:
            continue
        cut = length - distance % length
        a = cat([_part(a, place, cut, length), _part(a, place, 0, cut)], place)
    return a


@core.method("rot90")
def rot90(a: TensorProxy, k: int = 1, dims: Sequence[int] = (0, 1)) -> TensorProxy:
    """Turn by ``k`` times 90 degrees in the plane of two dimensions, from the first towards the second."""
    first, second = canonical_dims("rot90", a.ndim, dims)
    order = list(range(a.ndim))
    order[first], order[second] = second, first
    if k % 4 == 0:
        return a
    if k % 4 == 2:
        return flip(a, first, second)
    if k % 4 == 1:
        return as_tensor(prims.transpose(flip(a, second), tuple(order)))
    return flip(as_tensor(prims.transpose(a, tuple(order))), second)


def pad(a: TensorProxy, pad: Sequence[int], value: Any = 0) -> TensorProxy:
    """Add elements of one value at the ends of the last dimensions, or cut elements off where negative.

    Args:
        a: any dtype.
        pad: before and after the last dimension, before and after the last but one, and so on.
        value: a number that fits the dtype.

    Raises:
        ShapeError: the number of sizes is odd, or there are too many.

    Source:
        ``torch.nn.functional.pad`` in mode ``"constant"``.
    """
    a = need_tensor("pad", a)
    if len(pad) % 2 or len(pad) > 2 * a.ndim:
        raise ShapeError(f"pad of {a.type_string} needs an even number of sizes, at most {2 * a.ndim}, got {len(pad)}")
    if kind_of(value) > a.dtype.kind:
        value = (bool, int, float, complex)[a.dtype.kind](value)
    config = [(0, 0, 0)] * (a.ndim - len(pad) // 2)
    config += [(pad[i], pad[i + 1], 0) for i in range(len(pad) - 2, -1, -2)]
    return a if all([c == (0, 0, 0) for c in config]) else as_tensor(prims.pad(a, value, tuple(config)))


@core.method("repeat")
def repeat(a: TensorProxy, *sizes: Any) -> TensorProxy:
    """Repeat the whole tensor along each dimension.

    Raises:
        ShapeError: there are fewer sizes than dimensions, or one is negative.
    """
    a = need_tensor("repeat", a)
    times = spread(sizes)
    if len(times) < a.ndim:
        raise ShapeError(f"repeat of {a.type_string} needs at least {a.ndim} sizes, got {times}")
    if any([n < 0 for n in times]):
        raise ShapeError(f"repeat needs sizes that are not negative, got {times}")
    shape = (1,) * (len(times) - a.ndim) + tuple(a.shape)
    inner = tuple([d for n, length in zip(times, shape, strict=True) for d in (n, length)])
    dims = tuple([2 * i + 1 for i in range(len(times) - a.ndim, len(times))])
    result = tuple([n * length for n, length in zip(times, shape, strict=True)])
    if result == a.shape:
        return a
    return as_tensor(prims.reshape(prims.broadcast_in_dim(a, inner, dims), result))


@core.method("tile")
def tile(a: TensorProxy, *sizes: Any) -> TensorProxy:
    """Repeat the whole tensor along the last dimensions."""
    times = spread(sizes)
    return repeat(a, (1,) * (a.ndim - len(times)) + times)


@core.method("repeat_interleave")
def repeat_interleave(a: TensorProxy, repeats: int, dim: int | None = None) -> TensorProxy:
    """Repeat each element along a dimension, the copies side by side.

    Args:
        a: any dtype.
        repeats: how often, an integer.
        dim: which dimension; if not given, of all elements in one.

    Raises:
        TypeError: ``repeats`` is a tensor, with which the shape would depend on values.
    """
    if isinstance(repeats, TensorProxy):
        raise TypeError("repeat_interleave with a tensor of repeats has a shape that depends on values; use a number")
    if dim is None:
        a, dim = flatten(need_tensor("repeat_interleave", a)), 0
    place = canonical_dim("repeat_interleave", a.ndim, dim)
    lifted = unsqueeze(a, place + 1)
    wide = expand(lifted, *[repeats if d == place + 1 else n for d, n in enumerate(lifted.shape)])
    return flatten(wide, place, place + 1)


def _below(a: TensorProxy, diagonal: int) -> TensorProxy:
    """Which elements of the last two dimensions are not above a diagonal."""
    rows, columns = a.shape[-2], a.shape[-1]
    row = prims.iota(rows, diagonal, 1, dtypes.int64, a.device)
    column = prims.iota(columns, 0, 1, dtypes.int64, a.device)
    dims = (a.ndim - 2,), (a.ndim - 1,)
    first, second = (prims.broadcast_in_dim(x, a.shape, d) for x, d in zip((row, column), dims, strict=True))
    return as_tensor(prims.le(second, first))


def _zero(a: TensorProxy) -> Any:
    return (False, 0, 0.0, 0j)[a.dtype.kind]


@core.method("tril")
def tril(a: TensorProxy, diagonal: int = 0) -> TensorProxy:
    """Return the matrices with zeros above a diagonal."""
    if need_tensor("tril", a).ndim < 2:
        raise ShapeError(f"tril needs at least 2 dimensions, got {a.type_string}")
    return as_tensor(prims.where(_below(a, diagonal), a, _zero(a)))


@core.method("triu")
def triu(a: TensorProxy, diagonal: int = 0) -> TensorProxy:
    """Return the matrices with zeros below a diagonal."""
    if need_tensor("triu", a).ndim < 2:
        raise ShapeError(f"triu needs at least 2 dimensions, got {a.type_string}")
    return as_tensor(prims.where(_below(a, diagonal - 1), _zero(a), a))


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[TensorProxy, ...]:
    """Return for vectors the grid of their combinations: each of them repeated along the others' dimensions.

    Args:
        tensors: of at most one dimension.
        indexing: ``"ij"`` for a dimension per vector in order, ``"xy"`` with the first two swapped.

    Raises:
        ShapeError: a tensor has more dimensions, or ``indexing`` is another word.
    """
    vectors = [atleast_1d(need_tensor("meshgrid", t)) for t in spread(tensors)]
    if indexing not in ("ij", "xy") or any([v.ndim > 1 for v in vectors]):
        raise ShapeError(f"meshgrid needs vectors and an indexing of 'ij' or 'xy', got {indexing!r}")
    order = list(range(len(vectors)))
    if indexing == "xy" and len(vectors) > 1:
        order[0], order[1] = 1, 0
    lengths: list[Any] = [1] * len(vectors)
    for place, vector in zip(order, vectors, strict=True):
        lengths[place] = vector.shape[0]
    shape = tuple(lengths)
    return tuple([as_tensor(prims.broadcast_in_dim(v, shape, (d,))) for d, v in zip(order, vectors, strict=True)])
