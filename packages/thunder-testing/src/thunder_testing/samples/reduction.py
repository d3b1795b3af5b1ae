"""Samples of the prims that reduce, scan, sort, read and write at indices, and multiply matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

import thunder_prims as prims
from thunder_testing.samples.sample import Sample, samples
from thunder_testing.samples.values import distinct, values

DIMS: tuple[tuple[int, ...], ...] = ((0,), (1,), (0, 2), (0, 1, 2))
SHAPE = (2, 3, 4)


def _reduced(dtypes: tuple[str, ...], *more: object, exact: bool = False) -> Callable[[], Iterator[Sample]]:
    def generate() -> Iterator[Sample]:
        for dtype in dtypes:
            for dims in DIMS:
                yield Sample((distinct(dtype, SHAPE), dims, *more), exact=exact)

    return generate


samples(prims.sum)(_reduced(("int64", "float32", "float64")))
samples(prims.prod)(_reduced(("int64", "float64")))
samples(prims.amax, prims.amin)(_reduced(("int64", "float32"), exact=True))
samples(prims.var, prims.std, prims.var_mean)(_reduced(("float32", "float64"), 1))


@samples(prims.argmax, prims.argmin)
def places() -> Iterator[Sample]:
    """Along each dimension, and of all elements."""
    for dtype in ("int64", "float32"):
        for dim in (0, 2, None):
            yield Sample((distinct(dtype, SHAPE), dim), exact=True)


@samples(prims.cumsum, prims.cumprod)
def running() -> Iterator[Sample]:
    """Along the first and the last dimension."""
    for dtype in ("int64", "float64"):
        for dim in (0, 2):
            yield Sample((values(dtype, SHAPE), dim))


@samples(prims.cummax, prims.cummin)
def running_extrema() -> Iterator[Sample]:
    """Along the first and the last dimension."""
    for dim in (0, 2):
        yield Sample((distinct("float64", SHAPE), dim), exact=True)


@samples(prims.sort, prims.argsort)
def sort() -> Iterator[Sample]:
    """In both directions, along the first and the last dimension."""
    for dim in (0, 2):
        for descending in (False, True):
            yield Sample((distinct("float32", SHAPE), dim, descending, True), exact=True)


@samples(prims.topk)
def topk() -> Iterator[Sample]:
    """The largest and the smallest, in order."""
    for largest in (True, False):
        yield Sample((distinct("float32", SHAPE), 2, 2, largest, True), exact=True)


@samples(prims.take)
def take() -> Iterator[Sample]:
    """Indices of no, one and two dimensions."""
    for indices in (np.array(1), np.array([1, 0, 1]), np.array([[0, 1], [1, 1]])):
        yield Sample((values("float32", SHAPE), indices, 1), exact=True)


@samples(prims.gather)
def gather() -> Iterator[Sample]:
    """Indices shorter than the tensor, and longer along the dimension."""
    yield Sample((values("float32", (3, 4)), np.array([[0, 2], [1, 1]]), 0), exact=True)
    yield Sample((values("float32", (2, 3)), np.array([[0, 2, 1, 0], [1, 1, 2, 0]]), 1), exact=True)


@samples(prims.take_along_axis)
def take_along_axis() -> Iterator[Sample]:
    """Along the last dimension."""
    yield Sample((values("float32", (2, 3)), np.array([[0, 2, 1, 0], [1, 1, 2, 0]]), 1), exact=True)


@samples(prims.scatter, prims.scatter_add)
def scatter() -> Iterator[Sample]:
    """Indices that do not repeat."""
    a, source = values("float64", (3, 4)), values("float64", (2, 4), seed=1)
    yield Sample((a, np.array([[0, 1, 2, 0], [2, 0, 1, 1]]), source, 0))


@samples(prims.index_add, prims.index_copy)
def index_write() -> Iterator[Sample]:
    """Slices along the last dimension."""
    yield Sample((values("float64", (2, 4)), np.array([3, 0]), values("float64", (2, 2), seed=1), 1))


@samples(prims.index)
def index() -> Iterator[Sample]:
    """Neighbouring dimensions, and others."""
    i = np.array([[0, 1], [1, 0]])
    for indices in ((i,), (i, i), (None, i), (i, None, i)):
        yield Sample((values("float32", SHAPE), indices), exact=True)


@samples(prims.index_put)
def index_put() -> Iterator[Sample]:
    """Adding where indices repeat, replacing where they do not."""
    a = values("float64", (3, 4))
    yield Sample((a, (np.array([0, 0, 2]),), values("float64", (3, 4), seed=1), True))
    yield Sample((a, (np.array([0, 2]), np.array([1, 3])), values("float64", (2,), seed=1), False))


@samples(prims.matmul)
def matmul() -> Iterator[Sample]:
    """Matrices, batches of them, columns times rows, and empty ones."""
    shapes = (((2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4)), ((2, 0), (0, 3)), ((0, 2), (2, 3)))
    for a, b in (*shapes, ((2, 1), (1, 3)), ((5, 2, 1), (5, 1, 3))):
        yield Sample((values("float64", a), values("float64", b, seed=1)))


@samples(prims.linear)
def linear() -> Iterator[Sample]:
    """With and without a bias."""
    a, weight = values("float64", (5, 2, 3)), values("float64", (4, 3), seed=1)
    yield Sample((a, weight, None))
    yield Sample((a, weight, values("float64", (4,), seed=2)))
