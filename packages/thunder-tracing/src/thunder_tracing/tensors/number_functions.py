"""Functions of Python's ``math`` of numbers that a program does not fix: of steps, learning rates and losses."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

from thunder_ir import FloatProxy, IntegerProxy, is_unknown
from thunder_prims import number_math, number_round

LARGEST = sys.float_info.max
TINY = math.ulp(0.0)

EXACT = 2.0**53
"""Floats up to here tell all integers apart."""

DOMAINS: dict[Callable[[Any], float], tuple[float, float]] = {
    **dict.fromkeys((math.trunc, math.floor, math.ceil), (-EXACT, EXACT)),
    math.sqrt: (0, math.inf),
    **dict.fromkeys((math.log, math.log2, math.log10), (TINY, math.inf)),
    math.log1p: (math.nextafter(-1, 0), math.inf),
    **dict.fromkeys((math.exp, math.expm1, math.sinh, math.cosh), (-700, 700)),
    **dict.fromkeys((math.cos, math.sin, math.tan), (-LARGEST, LARGEST)),
    **dict.fromkeys((math.acos, math.asin), (-1, 1)),
    **dict.fromkeys((math.atan, math.tanh, math.erf, math.degrees, math.radians), (-math.inf, math.inf)),
}
"""Between which numbers the functions raise for none."""


def computed(function: Callable[[Any], float], number: object) -> Any:
    """Return what a function makes of a symbolic number; ``NotImplemented`` for other numbers, and outside its domain.

    That the number is within the domain becomes a constraint of the program, which thus does not raise.
    """
    if not isinstance(number, (IntegerProxy, FloatProxy)) or is_unknown(number):
        return NotImplemented
    return number_math(function.__name__, number) if _fits(number, *DOMAINS[function]) else NotImplemented


def to_nearest(number: FloatProxy, digits: int | None = None) -> Any:
    """Return a symbolic number rounded to even, or to some digits; ``NotImplemented`` if it is large."""
    return number_round(number, digits) if _fits(number, -EXACT, EXACT) else NotImplemented


def _fits(number: IntegerProxy | FloatProxy, low: float, high: float) -> bool:
    return bool((low == -math.inf or number >= low) and (high == math.inf or number <= high))
