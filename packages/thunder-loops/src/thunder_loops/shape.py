"""Prims that move elements: arithmetic on indices, and choices where tensors are joined or padded."""

from __future__ import annotations

from typing import Any

import thunder_prims as prims
from thunder_ir import NumberProxy, are_one_number, dtypes
from thunder_loops.build import Builder
from thunder_loops.index import Index, from_row_major, row_major
from thunder_loops.rules import CannotLower, Elements, Place, Wanted, lowering


def is_one(size: Any) -> bool:
    """Whether a size is known to be 1."""
    return size.__class__ is int and bool(size == 1)


def known(*numbers: Any) -> None:
    """Refuse numbers that only a call tells."""
    if any([isinstance(n, NumberProxy) for n in numbers]):
        raise CannotLower("an index with a number that the call tells has no loop nest")


@lowering(prims.transpose)
def transpose(build: Builder, wanted: Wanted) -> Elements:
    """The indices in the other order."""
    a, permutation = wanted.args
    place: list[Index] = [Index()] * len(permutation)
    for index, dim in zip(wanted.place, permutation, strict=True):
        place[dim] = index
    return (yield a, tuple(place))


@lowering(prims.broadcast_in_dim)
def broadcast_in_dim(build: Builder, wanted: Wanted) -> Elements:
    """The indices of the dimensions that are there, and 0 where they are repeated."""
    a, _, dims = wanted.args
    place = [Index() if is_one(size) else wanted.place[dim] for size, dim in zip(a.shape, dims, strict=True)]
    return (yield a, tuple(place))


@lowering(prims.squeeze)
def squeeze(build: Builder, wanted: Wanted) -> Elements:
    """0 for what was dropped."""
    a, dims = wanted.args
    rest = iter(wanted.place)
    return (yield a, tuple([Index() if dim in dims else next(rest) for dim in range(a.ndim)]))


@lowering(prims.slice)
def slice(build: Builder, wanted: Wanted) -> Elements:
    """A step and a start for each index."""
    a, starts, _, strides = wanted.args
    steps = (1,) * a.ndim if strides is None else strides
    known(*starts, *steps)
    return (yield a, tuple([i * step + start for i, step, start in zip(wanted.place, steps, starts, strict=True)]))


@lowering(prims.flip)
def flip(build: Builder, wanted: Wanted) -> Elements:
    """The indices counted from the other end."""
    a, dims = wanted.args
    known(*[a.shape[d] for d in dims])
    place = [i * -1 + (a.shape[d] - 1) if d in dims else i for d, i in enumerate(wanted.place)]
    return (yield a, tuple(place))


@lowering(prims.shallow_copy, prims.stride_order)
def same(build: Builder, wanted: Wanted) -> Elements:
    """The element itself; how outputs lie in memory is for those who make them."""
    return (yield wanted.args[0], wanted.place)


@lowering(prims.reshape, prims.view)
def reshape(build: Builder, wanted: Wanted) -> Elements:
    """The indices of the element with the same number, counted row by row."""
    return (yield wanted.args[0], reshaped(wanted.place, wanted.output.shape, wanted.args[0].shape, build))


def reshaped(place: Place, have: tuple[Any, ...], want: tuple[Any, ...], build: Builder) -> Place:
    """Return the place in a tensor of shape ``want`` that is ``place`` in one of shape ``have``.

    Sizes that are in both are matched from both ends, so that what lies between may be open.
    """
    if any([size.__class__ is int and size == 0 for size in (*have, *want)]):
        return (Index(),) * len(want)  # there is no element
    front: list[Index] = []
    back: list[Index] = []
    while have and want and are_one_number(have[0], want[0]):
        front.append(place[0])
        place, have, want = place[1:], have[1:], want[1:]
    while have and want and are_one_number(have[-1], want[-1]):
        back.insert(0, place[-1])
        place, have, want = place[:-1], have[:-1], want[:-1]
    if not all([is_one(s) for s in have]) or not all([is_one(s) for s in want]):
        known(*have, *want)
        middle = _grouped(place, have, want, build)
    else:
        middle = [Index()] * len(want)
    return (*front, *middle, *back)


def _grouped(place: Place, have: tuple[int, ...], want: tuple[int, ...], build: Builder) -> list[Index]:
    """Take the dimensions in the smallest groups of equal products."""
    found: list[Index] = []
    i = j = 0
    while j < len(want):
        first_i, first_j, product = i, j, want[j]
        have_product = 1
        j += 1
        while have_product != product:
            if have_product < product:
                have_product *= have[i]
                i += 1
            else:
                product *= want[j]
                j += 1
        group = row_major(place[first_i:i], have[first_i:i])
        found += from_row_major(group, want[first_j:j], build.extents)
    return found


@lowering(prims.cat)
def cat(build: Builder, wanted: Wanted) -> Elements:
    """A choice between the tensors; of those that do not have the place nothing is read."""
    tensors, dim = wanted.args
    known(*[t.shape[dim] for t in tensors])
    around = build.when
    start, chosen = 0, ""
    for tensor in tensors:
        size = tensor.shape[dim]
        if not size:
            continue
        here = tuple([i + -start if d == dim else i for d, i in enumerate(wanted.place)])
        inside = _within(build, wanted.place[dim], start, start + size, wanted.output.shape[dim])
        value = yield tensor, here, build.both(around, inside)
        chosen = build.compute("where", inside, value, chosen) if chosen else value
        start += size
    return chosen or (yield tensors[0], wanted.place)


def _within(build: Builder, index: Index, low: int, high: int, size: Any) -> str:
    """Write whether an index, of a dimension of ``size``, lies from ``low`` to before ``high``; ``""`` if it must."""
    found = ""
    at = build.position(index)
    if low > 0:
        found = build.compute("ge", at, build.constant(low, dtypes.int64), dtype=dtypes.bool8)
    if high < size:
        found = build.both(found, build.compute("lt", at, build.constant(high, dtypes.int64), dtype=dtypes.bool8))
    return found


@lowering(prims.pad)
def pad(build: Builder, wanted: Wanted) -> Elements:
    """A choice between the element and the number around it."""
    a, value, config = wanted.args
    known(*a.shape, *[n for triple in config for n in triple])
    if any([between for _, _, between in config]):
        raise CannotLower("padding between elements has no loop nest")
    around, inside = build.when, ""
    for index, size, (before, _, _), total in zip(wanted.place, a.shape, config, wanted.output.shape, strict=True):
        inside = build.both(inside, _within(build, index, before, before + size, total))
    place = tuple([i + -before for i, (before, _, _) in zip(wanted.place, config, strict=True)])
    element = yield a, place, build.both(around, inside)
    return build.compute("where", inside, element, build.constant(value, a.dtype)) if inside else element
