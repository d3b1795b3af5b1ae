"""Functions of Python's ``math`` of numbers that a program does not fix: of steps, learning rates and losses."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, TypeAlias

from thunder_ir import FloatProxy, IntegerProxy, NumberProxy, is_unknown
from thunder_prims import number_math, number_round

Number: TypeAlias = float | NumberProxy
LARGEST = sys.float_info.max
TINY = math.ulp(0.0)

EXACT = 2.0**53
"""Floats up to here tell all integers apart."""

DOMAINS: dict[Callable[[Any], float], tuple[float, float]] = {
    **dict.fromkeys((math.trunc, math.floor, math.ceil), (-EXACT, EXACT)),
    math.sqrt: (0, math.inf),
    math.acosh: (1, math.inf),
    **dict.fromkeys((math.log, math.log2, math.log10), (TINY, math.inf)),
    math.log1p: (math.nextafter(-1, 0), math.inf),
    **dict.fromkeys((math.exp, math.exp2, math.expm1, math.sinh, math.cosh), (-700, 700)),
    **dict.fromkeys((math.cos, math.sin, math.tan), (-LARGEST, LARGEST)),
    **dict.fromkeys((math.acos, math.asin), (-1, 1)),
    math.atanh: (math.nextafter(-1, 0), math.nextafter(1, 0)),
    **dict.fromkeys((math.atan, math.tanh, math.asinh, math.cbrt, math.erf, math.erfc), (-math.inf, math.inf)),
    **dict.fromkeys((math.degrees, math.radians), (-math.inf, math.inf)),
}
"""Between which numbers the functions raise for none."""


def _power(base: Number, exponent: Number) -> Any:
    fits = base > 0 and exponent * _logarithm("log2", base) <= 1000
    return (base / 1) ** (exponent / 1) if fits else NotImplemented


def _quotient_of_logarithms(number: Number, base: Number) -> Any:
    fits = number > 0 and base > 0 and base != 1
    return _logarithm("log", number) / _logarithm("log", base) if fits else NotImplemented


def _logarithm(function: str, number: Number) -> Any:
    return number_math(function, number) if isinstance(number, NumberProxy) else getattr(math, function)(number)


BY_OPERATORS: dict[tuple[Callable[..., Any], int], Callable[..., Any]] = {
    (math.pow, 2): _power,
    (math.log, 2): _quotient_of_logarithms,
    (math.fabs, 1): lambda number: abs(number / 1),
    (math.isnan, 1): lambda number: not number >= -math.inf,
    (math.isinf, 1): lambda number: not (-LARGEST <= number <= LARGEST) and bool(number >= -math.inf),
    (math.isfinite, 1): lambda number: bool(-LARGEST <= number <= LARGEST),
}
"""What operators make of so many numbers as the functions do; ``NotImplemented`` where the functions may raise."""

FUNCTIONS = {*DOMAINS, *[function for function, _ in BY_OPERATORS]}


def computed(function: Callable[..., float], *numbers: Number) -> Any:
    """Return what a function makes of symbolic numbers; ``NotImplemented`` for other numbers, and outside its domain.

    That the numbers are within the domain becomes a constraint of the program, which thus does not raise.
    """
    kinds, plain = {type(n) for n in numbers}, {int, float}
    if kinds <= plain or not kinds <= {*plain, IntegerProxy, FloatProxy} or any(map(is_unknown, numbers)):
        return NotImplemented
    if (function, len(numbers)) in BY_OPERATORS:
        return BY_OPERATORS[function, len(numbers)](*numbers)
    if len(numbers) != 1 or function not in DOMAINS:
        return NotImplemented
    number = numbers[0]
    return number_math(function.__name__, number) if _fits(number, *DOMAINS[function]) else NotImplemented


def to_nearest(number: FloatProxy, digits: int | None = None) -> Any:
    """Return a symbolic number rounded to even, or to some digits; ``NotImplemented`` if it is large."""
    return number_round(number, digits) if _fits(number, -EXACT, EXACT) else NotImplemented


def _fits(number: Number, low: float, high: float) -> bool:
    return bool((low == -math.inf or number >= low) and (high == math.inf or number <= high))
