"""Samples of the prims that move elements, and of those that make tensors."""

from __future__ import annotations

from collections.abc import Iterator

import thunder_prims as prims
from thunder_ir import devices, dtypes
from thunder_testing.samples.sample import Sample, samples
from thunder_testing.samples.values import values

A = ("float32", (2, 3, 4))


def _each(*parameters: tuple[object, ...]) -> list[Sample]:
    return [Sample((values(*A), *p), exact=True) for p in parameters]


@samples(prims.transpose)
def transpose() -> list[Sample]:
    """Permutations, the identity and that of no dimensions among them."""
    return [*_each(((2, 0, 1),), ((0, 1, 2),)), Sample((values("int64", ()), ()), exact=True)]


@samples(prims.reshape)
def reshape() -> list[Sample]:
    """To more, fewer and no dimensions, and of nothing."""
    empty = Sample((values("float32", (0, 3)), (3, 0, 2)), exact=True)
    return [*_each(((4, 6),), ((24,),), ((1, 2, 12, 1),)), Sample((values("int64", (1, 1)), ()), exact=True), empty]


@samples(prims.squeeze)
def squeeze() -> list[Sample]:
    """Some and none of the dimensions of length 1."""
    a = values("float32", (1, 3, 1))
    return [Sample((a, dims), exact=True) for dims in ((0,), (0, 2), ())]


@samples(prims.broadcast_in_dim)
def broadcast_in_dim() -> list[Sample]:
    """Dimensions in front, between and behind."""
    a, scalar = values("float32", (1, 3)), values("float32", ())
    return [
        Sample((a, (2, 3), (0, 1)), exact=True),
        Sample((a, (4, 1, 2, 3), (1, 3)), exact=True),
        Sample((a, (1, 3, 5), (0, 1)), exact=True),
        Sample((scalar, (2, 0), ()), exact=True),
    ]


@samples(prims.slice)
def slice_() -> list[Sample]:
    """Steps, and slices of nothing."""
    return _each(
        ((0, 1, 0), (2, 3, 4), (1, 1, 2)), ((1, 0, 1), (1, 3, 2), (1, 1, 1)), ((0, 0, 0), (2, 3, 4), (1, 1, 1))
    )


@samples(prims.pad)
def pad() -> list[Sample]:
    """Sizes that add, cut off and spread."""
    none = (0, 0, 0)
    return _each((1.5, ((1, 2, 0), none, none)), (0.0, (none, (-1, 1, 0), none)), (2.0, (none, none, (1, 0, 2))))


@samples(prims.cat)
def cat() -> list[Sample]:
    """Along the first and the last dimension, with an empty tensor."""
    a, b, none = values(*A), values("float32", (2, 3, 1), seed=1), values("float32", (0, 3, 4))
    return [Sample(((a, b), 2), exact=True), Sample(((a, none, a), 0), exact=True)]


@samples(prims.flip)
def flip() -> list[Sample]:
    """One dimension, several and none."""
    return _each(((0,),), ((0, 2),), ((),))


@samples(prims.unfold)
def unfold() -> list[Sample]:
    """Windows that overlap and that do not."""
    return _each((2, 2, 1), (2, 2, 2), (0, 2, 1))


@samples(prims.full)
def full() -> Iterator[Sample]:
    """Numbers of each kind."""
    for value, dtype in ((True, dtypes.bool8), (3, dtypes.int32), (2.5, dtypes.float64), (1, dtypes.float32)):
        yield Sample(((2, 3), value, dtype, devices.cpu), exact=True)


@samples(prims.iota)
def iota() -> Iterator[Sample]:
    """Forwards, backwards, in fractions, and of nothing."""
    for arguments in ((5, 0, 1, dtypes.int64), (4, 3, -2, dtypes.int32), (0, 0, 1, dtypes.int64)):
        yield Sample((*arguments, devices.cpu), exact=True)
    yield Sample((6, 0.5, 0.25, dtypes.float64, devices.cpu))


@samples(prims.tensor_from_sequence)
def tensor_from_sequence() -> list[Sample]:
    """Nested, and a single number."""
    return [
        Sample(([[1, 2], [3, 4]], dtypes.int64, devices.cpu), exact=True),
        Sample((2.5, dtypes.float64, devices.cpu)),
    ]
