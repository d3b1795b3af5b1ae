"""The space of a nest: axes for the dimensions of a shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from thunder_ir import NumberProxy, Proxy, TensorProxy, is_unknown
from thunder_loops.index import Index
from thunder_loops.nest import Axis, Size
from thunder_loops.rules import CannotLower, Place


def size_of(dimension: Any) -> Size:
    """Return a size, or the name under which the call tells it."""
    if isinstance(dimension, NumberProxy):
        if is_unknown(dimension):
            raise CannotLower("a size that is known only when the program runs has no loop nest")
        return f"n_{dimension.name}"
    return int(dimension)


def symbolic_sizes(proxies: Iterable[Proxy]) -> list[NumberProxy]:
    """Return the sizes of tensors that the program does not fix."""
    shapes = [p.shape for p in proxies if isinstance(p, TensorProxy)]
    return [d for shape in shapes for d in shape if isinstance(d, NumberProxy)]


@dataclass(frozen=True, slots=True)
class Space:
    """Axes for the dimensions of a shape; those of size 1 have none.

    Args:
        axes: in the order of the dimensions.
        place: of the element at a point.
        of_dims: for each dimension, its axes.
        sizes: for each dimension, the sizes of its axes.
    """

    axes: tuple[Axis, ...]
    place: Place
    of_dims: tuple[tuple[str, ...], ...]
    sizes: tuple[tuple[Size, ...], ...]


Cuts = Mapping[int, tuple[int, ...]]
"""For dimensions that are cut into several axes, the sizes of these."""


def space_of(shape: tuple[Size, ...], cuts: Cuts) -> Space:
    """Return the space of a shape."""
    axes: list[Axis] = []
    place: list[Index] = []
    of_dims: list[tuple[str, ...]] = []
    sizes: list[tuple[Size, ...]] = []
    for dim, size in enumerate(shape):
        extents = () if size == 1 else cuts.get(dim, (size,))
        index = Index()
        names = []
        for extent in extents:
            axis = Axis(f"i{len(axes)}", extent)
            axes.append(axis)
            names.append(axis.name)
            index = (index * extent if isinstance(extent, int) else index) + Index.of(axis.name)
        place.append(index)
        of_dims.append(tuple(names))
        sizes.append(tuple(extents))
    return Space(tuple(axes), tuple(place), tuple(of_dims), tuple(sizes))


def cut(space: Space, axis: str, inner: int) -> tuple[int, tuple[int, ...]]:
    """Return the dimension of an axis, and the sizes of its axes once this one is split in two.

    Args:
        space: what the axis is of.
        axis: which one.
        inner: size of the inner one of the two.
    """
    dim = next(d for d, names in enumerate(space.of_dims) if axis in names)
    part = space.of_dims[dim].index(axis)
    sizes = [int(s) for s in space.sizes[dim]]
    sizes[part : part + 1] = [sizes[part] // inner, inner]
    return dim, tuple(sizes)
