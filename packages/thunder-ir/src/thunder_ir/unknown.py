"""Numbers that are known only when the program runs, and what can be said of them before."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from thunder_ir.builder import find_builder
from thunder_ir.errors import UnknownNumberError

Terms = tuple[tuple[tuple[Any, ...], int], ...]
"""An integer as a sum of products: the factors of each, number proxies, and how often their product counts."""

SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


@dataclass(frozen=True, slots=True, eq=False)
class Unknown:
    """What is said of a number whose value is known only when the program runs.

    Args:
        what: where it comes from, ``"dimension 0 of what nonzero returns"``.
        lower, upper: the number is not less, and not more.
        terms: an integer as a sum of products of other ones; ``None`` where it is one of its own.
    """

    what: str
    lower: float = -math.inf
    upper: float = math.inf
    terms: Terms | None = None


def is_unknown(number: Any) -> bool:
    """Whether ``number`` stands for one that is known only when the program runs."""
    return getattr(number, "unknown", None) is not None


def terms_of(number: Any) -> Terms:
    """Return an integer, or what stands for one, as a sum of products."""
    if isinstance(number, int):
        return (((), int(number)),) if number else ()
    if is_unknown(number) and number.unknown.terms is not None:
        return number.unknown.terms  # type: ignore[no-any-return]
    return (((number,), 1),)


def total(*parts: tuple[int, Terms]) -> Terms:
    """Return the sum of multiples of sums of products, equal products taken together."""
    counts: dict[tuple[Any, ...], int] = {}
    products: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for times, terms in parts:
        for factors, count in terms:
            factors = tuple(sorted(factors, key=_key))
            key = tuple([_key(f) for f in factors])
            products[key] = factors
            counts[key] = counts.get(key, 0) + times * count
    return tuple([(products[key], count) for key, count in counts.items() if count])


def product(a: Terms, b: Terms) -> Terms:
    """Return the product of two sums of products."""
    return total(*[(m * n, (((*p, *q), 1),)) for p, m in a for q, n in b])


def quotient(a: Terms, b: Terms) -> Terms | None:
    """Return ``a / b`` where ``b`` is a single product that divides each of those in ``a``, else ``None``."""
    if len(b) != 1:
        return None
    divisor, by = b[0]
    result = []
    for factors, count in total((1, a)):
        rest = list(factors)
        for d in divisor:
            place = next((i for i, f in enumerate(rest) if _key(f) == _key(d)), None)
            if place is None:
                return None
            del rest[place]
        if count % by:
            return None
        result.append((tuple(rest), count // by))
    return tuple(result)


def _key(number: Any) -> tuple[str, int]:
    """By what a number is recognised: its name, or the very object while it has none."""
    return (number.name, 0) if number.name else ("", id(number))


def bounds_of(number: Any) -> tuple[float, float]:
    """Return between which values a number lies for sure."""
    if isinstance(number, (int, float)):
        return (number, number)
    if not is_unknown(number):
        return (-math.inf, math.inf)
    unknown = number.unknown
    if number.python_type is bool:
        return (0, 1)
    if unknown.terms is None:
        return (unknown.lower, unknown.upper)
    low, high = _bounds(unknown.terms)
    return (max(low, unknown.lower), min(high, unknown.upper))


def _bounds(terms: Terms) -> tuple[float, float]:
    low: float = 0
    high: float = 0
    for factors, count in terms:
        ends: tuple[float, float] = (1, 1)
        for factor in factors:
            ends = _between(ends, bounds_of(factor))
        ends = _between(ends, (count, count))
        low, high = low + ends[0], high + ends[1]
    return (low, high)


def _between(a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
    """The bounds of a product; nothing times anything is nothing."""
    corners = [0 if x == 0 or y == 0 else x * y for x in a for y in b]
    return (min(corners), max(corners))


def decided(relation: str, left: Any, right: Any) -> bool:
    """Return how a comparison comes out whatever the unknown numbers in it are.

    Args:
        relation: ``"eq"``, ``"ne"``, ``"lt"``, ``"le"``, ``"gt"`` or ``"ge"``.
        left, right: numbers or proxies of them.

    Raises:
        UnknownNumberError: it depends on them.
    """
    found = _decided(relation, left, right)
    if found is None:
        builder = find_builder()
        if builder is not None and builder.oracle is not None:
            return builder.oracle.compare(relation, left, right)
        raise UnknownNumberError(
            f"whether {described(left)} {SIGNS[relation]} {described(right)} is known only when the program runs"
        )
    return found


def surely_equal(a: Any, b: Any) -> bool:
    """Whether two shapes, or two sizes, are the same whatever the unknown numbers in them are."""
    try:
        return bool(a == b)
    except UnknownNumberError:
        return False


def _decided(relation: str, left: Any, right: Any) -> bool | None:
    if relation in ("ne", "ge", "gt"):
        opposite = _decided({"ne": "eq", "ge": "lt", "gt": "le"}[relation], left, right)
        return None if opposite is None else not opposite
    if _is_integer(left) and _is_integer(right):
        low, high = _bounds(total((1, terms_of(left)), (-1, terms_of(right))))
        own = (bounds_of(left), bounds_of(right))
        low, high = max(low, own[0][0] - own[1][1]), min(high, own[0][1] - own[1][0])
    elif isinstance(left, complex) or isinstance(right, complex):
        return None
    else:
        (a, b), (c, d) = bounds_of(left), bounds_of(right)
        low, high = a - d, b - c
    if relation == "eq":
        return True if low == high == 0 else False if low > 0 or high < 0 else None
    if relation == "lt":
        return True if high < 0 else False if low >= 0 else None
    return True if high <= 0 else False if low > 0 else None


def _is_integer(number: Any) -> bool:
    return issubclass(getattr(number, "python_type", number.__class__), int)


def described(number: Any) -> str:
    """Return how a message speaks of a number."""
    if not is_unknown(number):
        return getattr(number, "name", "") or repr(number)
    return f"{number.name} ({number.unknown.what})" if number.name else str(number.unknown.what)


def derived(operation: str, numbers: tuple[Any, ...]) -> Unknown:
    """Return what is known of the result of arithmetic with an unknown number.

    Args:
        operation: ``"add"``, ``"floordiv"`` …
        numbers: what it is given.

    Raises:
        UnknownNumberError: not even the type of the result is known.
    """
    what = next((n.unknown.what for n in numbers if is_unknown(n)), "a number")
    what = what if what.startswith("computed from ") else f"computed from {what}"
    if not all([_is_integer(n) for n in numbers]):
        return Unknown(what)
    rule = _EXACT.get(operation)
    if rule is not None:
        return rule(what, *numbers)
    if operation == "pow" and bounds_of(numbers[1])[0] < 0:
        raise UnknownNumberError(f"the type of a power of {described(numbers[1])} depends on its sign")
    return Unknown(what)


def _floordiv(what: str, a: Any, b: Any) -> Unknown:
    exact = quotient(terms_of(a), terms_of(b))
    if exact is not None:
        return Unknown(what, terms=exact)
    positive = bounds_of(a)[0] >= 0 and bounds_of(b)[0] >= 0
    return Unknown(what, 0 if positive else -math.inf, bounds_of(a)[1] if positive else math.inf)


def _mod(what: str, a: Any, b: Any) -> Unknown:
    if quotient(terms_of(a), terms_of(b)) is not None:
        return Unknown(what, 0, 0)
    low, high = bounds_of(b)
    return Unknown(what, 0, high - 1) if low > 0 else Unknown(what)


_EXACT: dict[str, Callable[..., Unknown]] = {
    "add": lambda what, a, b: Unknown(what, terms=total((1, terms_of(a)), (1, terms_of(b)))),
    "sub": lambda what, a, b: Unknown(what, terms=total((1, terms_of(a)), (-1, terms_of(b)))),
    "mul": lambda what, a, b: Unknown(what, terms=product(terms_of(a), terms_of(b))),
    "neg": lambda what, a: Unknown(what, terms=total((-1, terms_of(a)))),
    "floordiv": _floordiv,
    "mod": _mod,
}  # fmt: skip
