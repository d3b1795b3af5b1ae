"""Index expressions: where in a buffer an access goes, as a sum of axes, values and their quotients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Quotient:
    """``index // divisor``."""

    index: Index
    divisor: int

    def __str__(self) -> str:
        return f"({self.index}) // {self.divisor}"


@dataclass(frozen=True, slots=True)
class Remainder:
    """``index % divisor``."""

    index: Index
    divisor: int

    def __str__(self) -> str:
        return f"({self.index}) % {self.divisor}"


Term = str | Quotient | Remainder
"""The name of an axis or of an integer value, or what is left of one by division."""

Extents = Mapping[str, int]
"""Sizes of those axes whose size is known."""


@dataclass(frozen=True, slots=True)
class Index:
    """A sum of integer multiples of terms, and a constant.

    Example:
        >>> from thunder_loops import Index
        >>> i, j = Index.of("i0"), Index.of("i1")
        >>> print(i * 4 + j + 3)
        4*i0 + i1 + 3
    """

    terms: tuple[tuple[Term, int], ...] = ()
    constant: int = 0

    @classmethod
    def of(cls, name: str) -> Index:
        """Return the index that an axis or a value is."""
        return cls(((name, 1),))

    def __add__(self, other: Index | int) -> Index:
        if isinstance(other, int):
            return Index(self.terms, self.constant + other)
        counts = dict(self.terms)
        for term, count in other.terms:
            counts[term] = counts.get(term, 0) + count
        return Index(tuple([(t, c) for t, c in counts.items() if c]), self.constant + other.constant)

    def __mul__(self, factor: int) -> Index:
        if factor == 0:
            return Index()
        return Index(tuple([(t, c * factor) for t, c in self.terms]), self.constant * factor)

    def __str__(self) -> str:
        parts = []
        for term, count in self.terms:
            text = term if isinstance(term, str) else f"({term})"
            parts.append(text if count == 1 else f"{count}*{text}")
        if self.constant or not parts:
            parts.append(str(self.constant))
        return " + ".join(parts)

    @property
    def names(self) -> frozenset[str]:
        """The axes and values that it depends on."""
        found: set[str] = set()
        for term, _ in self.terms:
            found |= {term} if isinstance(term, str) else term.index.names
        return frozenset(found)

    @property
    def is_affine(self) -> bool:
        """Whether nothing in it is divided."""
        return all([isinstance(term, str) for term, _ in self.terms])


def bounds(index: Index, extents: Extents) -> tuple[int, int] | None:
    """Return the least and the greatest value of an index; ``None`` where it is not known."""
    low = high = index.constant
    for term, count in index.terms:
        if isinstance(term, Remainder):
            top: int | None = term.divisor - 1
        elif isinstance(term, Quotient):
            inner = bounds(term.index, extents)
            top = inner[1] // term.divisor if inner is not None and inner[0] >= 0 else None
        else:
            size = extents.get(term)
            top = max(size - 1, 0) if size is not None else None
        if top is None:
            return None
        if count > 0:
            high += count * top
        else:
            low += count * top
    return low, high


def _divided(index: Index, divisor: int) -> tuple[Index, Index]:
    """Take apart what is a multiple of the divisor, divided by it, and the rest."""
    whole = [(t, c // divisor) for t, c in index.terms if c % divisor == 0]
    rest = [(t, c) for t, c in index.terms if c % divisor]
    return Index(tuple(whole), index.constant // divisor), Index(tuple(rest), index.constant % divisor)


def _stays_below(index: Index, divisor: int, extents: Extents) -> bool:
    found = bounds(index, extents)
    return found is not None and 0 <= found[0] and found[1] < divisor


def quotient(index: Index, divisor: int, extents: Extents) -> Index:
    """Return ``index // divisor``, simplified by what is known of the axes."""
    whole, rest = _divided(index, divisor)
    if _stays_below(rest, divisor, extents):
        return whole
    return whole + Index(((Quotient(rest, divisor), 1),))


def remainder(index: Index, divisor: int, extents: Extents) -> Index:
    """Return ``index % divisor``, simplified by what is known of the axes."""
    rest = _divided(index, divisor)[1]
    if _stays_below(rest, divisor, extents):
        return rest
    return Index(((Remainder(rest, divisor), 1),))


def splits(index: Index, extents: Extents) -> dict[str, int]:
    """Return axes that, split into two by that size of the inner one, would leave a division of ``index`` away."""
    found: dict[str, int] = {}
    for term, _ in index.terms:
        if isinstance(term, str):
            continue
        found.update(splits(term.index, extents))
        for name, count in term.index.terms:
            if isinstance(name, str) and name in extents and count > 0 and term.divisor % count == 0:
                inner = term.divisor // count
                if 1 < inner < extents[name] and extents[name] % inner == 0:
                    found[name] = inner
    return found


def row_major(indices: Sequence[Index], sizes: Sequence[int]) -> Index:
    """Return the place of an element in a tensor whose elements are counted row by row."""
    place = Index()
    for index, size in zip(indices, sizes, strict=True):
        place = place * size + index
    return place


def from_row_major(place: Index, sizes: Sequence[int], extents: Extents) -> list[Index]:
    """Return the index along each dimension of the element at a place; the inverse of :func:`row_major`."""
    found: list[Index] = []
    for position in range(len(sizes) - 1, 0, -1):
        found.append(remainder(place, sizes[position], extents))
        place = quotient(place, sizes[position], extents)
    if sizes:
        found.append(place)
    return found[::-1]
