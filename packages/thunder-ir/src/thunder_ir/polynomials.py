"""Symbolic integers as polynomials of each other: which comparisons come out the same whatever they are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import count
from typing import Any

_SERIAL = count()


class Atom:
    """A symbolic integer that is not computed of others by sums and products. It is known by its identity.

    Args:
        least: it is never less.
    """

    __slots__ = ("least", "serial")

    def __init__(self, least: float = -math.inf) -> None:
        self.least = least
        self.serial = next(_SERIAL)


Product = tuple[Atom, ...]
Polynomial = Mapping[Product, int]
"""How often each product of atoms counts; that of none is 1."""

Bounds = dict[Atom, tuple[float, float]]
"""Between which values atoms lie, as comparisons came out that the program is checked for."""


def polynomial_of(number: Any) -> Polynomial:
    """Return an integer as a polynomial: one that nothing is known of becomes an atom."""
    if isinstance(number, int):
        return {(): int(number)} if number else {}
    if number.polynomial is None:
        number.polynomial = {(Atom(),): 1}
    found: Polynomial = number.polynomial
    return found


def computed(operation: str, *numbers: Any) -> Polynomial | None:
    """Return what an operation on integers comes to; ``None`` if that is no polynomial of theirs.

    A quotient is one where the divisor is a product that divides each product of the dividend, and is not 0.
    """
    rule = _RULES.get(operation)
    return None if rule is None else rule(*[polynomial_of(number) for number in numbers])


def constant(polynomial: Polynomial) -> int | None:
    """Return the integer that a polynomial always is, or ``None``."""
    if not polynomial:
        return 0
    return polynomial.get(()) if len(polynomial) == 1 else None


def difference(a: Polynomial, b: Polynomial, times: int = -1) -> Polynomial:
    """Return ``a + times * b``."""
    found = dict(a)
    for product, number in b.items():
        found[product] = found.get(product, 0) + times * number
    return {product: number for product, number in found.items() if number}


def solved(polynomial: Polynomial) -> tuple[Atom, Polynomial] | None:
    """Return an atom, and what it is where a polynomial is 0; ``None`` where none can be told from the others.

    It is the youngest of those that stand alone, in one product only, whose factor divides all the others.
    """
    products = list(polynomial)
    for product in sorted([p for p in products if len(p) == 1], key=lambda p: -_serial(p[0])):
        (atom,), factor = product, polynomial[product]
        alone = sum([atom in other for other in products]) == 1
        if alone and all([number % factor == 0 for number in polynomial.values()]):
            return atom, {p: -number // factor for p, number in polynomial.items() if p is not product}
    return None


def with_atoms(polynomial: Polynomial, atoms: Mapping[Atom, Polynomial]) -> Polynomial:
    """Return a polynomial with others in the place of atoms."""
    if not any([atom in atoms for product in polynomial for atom in product]):
        return polynomial
    found: Polynomial = {}
    for product, number in polynomial.items():
        term: Polynomial = {(): number}
        for atom in product:
            term = _product(term, atoms.get(atom, {(atom,): 1}))
        found = difference(found, term, 1)
    return found


def _product(a: Polynomial, b: Polynomial) -> Polynomial:
    found: dict[Product, int] = {}
    for p, m in a.items():
        for q, n in b.items():
            product = tuple(sorted((*p, *q), key=_serial))
            found[product] = found.get(product, 0) + m * n
    return {product: number for product, number in found.items() if number}


def _quotient(a: Polynomial, b: Polynomial) -> Polynomial | None:
    if len(b) != 1:
        return None
    ((divisor, by),) = b.items()
    found: dict[Product, int] = {}
    for product, number in a.items():
        rest = list(product)
        for atom in divisor:
            if atom not in rest:
                return None
            rest.remove(atom)
        if number % by:
            return None
        found[tuple(rest)] = number // by
    return found


def _remainder(a: Polynomial, b: Polynomial) -> Polynomial | None:
    return None if _quotient(a, b) is None else {}


def _serial(atom: Atom) -> int:
    return atom.serial


_RULES: dict[str, Any] = {
    "add": lambda a, b: difference(a, b, 1),
    "sub": difference,
    "mul": _product,
    "floordiv": _quotient,
    "mod": _remainder,
    "neg": lambda a: difference({}, a),
}


def range_of(polynomial: Polynomial, bounds: Bounds) -> tuple[float, float]:
    """Return between which values a polynomial lies."""
    low: float = 0
    high: float = 0
    for product, number in polynomial.items():
        ends: tuple[float, float] = (number, number)
        for atom in product:
            corners = [0 if x == 0 or y == 0 else x * y for x in ends for y in bounds.get(atom, (atom.least, math.inf))]
            ends = (min(corners), max(corners))
        low, high = low + ends[0], high + ends[1]
    return low, high


def decided(relation: str, polynomial: Polynomial, bounds: Bounds) -> bool | None:
    """Return how a comparison of a polynomial with 0 comes out for all that the atoms may be; ``None`` if it depends.

    Args:
        relation: ``"eq"``, ``"ne"``, ``"lt"``, ``"le"``, ``"gt"`` or ``"ge"``.
        polynomial: what is compared.
        bounds: of its atoms.
    """
    if relation in _OPPOSITE:
        opposite = decided(_OPPOSITE[relation], polynomial, bounds)
        return None if opposite is None else not opposite
    low, high = range_of(polynomial, bounds)
    if relation == "eq":
        if low == high == 0:
            return True
        return False if low > 0 or high < 0 or _is_never_zero(polynomial) else None
    if relation == "lt":
        return True if high < 0 else False if low >= 0 else None
    return True if high <= 0 else False if low > 0 else None


_OPPOSITE = {"ne": "eq", "ge": "lt", "gt": "le"}


def _is_never_zero(polynomial: Polynomial) -> bool:
    """Whether what is added to multiples of a number is none of them."""
    divisor = math.gcd(*[number for product, number in polynomial.items() if product])
    return bool(divisor and polynomial.get((), 0) % divisor)


def narrowed(relation: str, holds: bool, polynomial: Polynomial, bounds: Bounds) -> None:
    """Note that a comparison of a polynomial with 0 came out so, where that bounds a single atom.

    Args:
        relation, polynomial: what was compared.
        holds: how it came out.
        bounds: changed.
    """
    if relation in _OPPOSITE:
        relation, holds = _OPPOSITE[relation], not holds
    factors = [(product, number) for product, number in polynomial.items() if product]
    if len(factors) != 1 or len(factors[0][0]) != 1:
        return
    ((atom,), number), added = factors[0], polynomial.get((), 0)
    low, high = bounds.get(atom, (atom.least, math.inf))
    below, above = -added // number, -(added // number)  # the integers next to where the comparison changes
    strict = (relation == "lt") == holds
    if relation == "eq":
        if below != above:  # it is never 0
            return
        if holds:
            low = high = below
        elif low == below:
            low += 1
        elif high == below:
            high -= 1
    elif (number > 0) == holds:
        high = min(high, above - 1 if strict else below)
    else:
        low = max(low, below + 1 if strict else above)
    bounds[atom] = (low, high)


def is_next_to_least(polynomial: Polynomial, bounds: Bounds) -> bool:
    """Whether a polynomial is 0 where its single atom is one more than the least that it may be.

    Args:
        polynomial: what is compared with 0.
        bounds: of its atom.
    """
    factors = [(product, number) for product, number in polynomial.items() if product]
    if len(factors) != 1 or len(factors[0][0]) != 1:
        return False
    ((atom,), number), added = factors[0], polynomial.get((), 0)
    return bounds.get(atom, (atom.least,))[0] * number + number + added == 0


__all__ = [
    "Atom", "Bounds", "Polynomial", "computed", "constant", "decided", "difference", "is_next_to_least", "narrowed",
    "polynomial_of", "range_of",
]  # fmt: skip
