"""Integers that a program makes of floats that it does not fix: what Python indexes with or branches on."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from thunder_ir import FloatProxy, IntegerProxy, is_unknown
from thunder_tracing.tensors.number_functions import computed, to_nearest
from thunder_tracing.tensors.run_numbers import of_the_run

ROUNDING: tuple[Callable[[Any], Any], ...] = (int, math.trunc, math.floor, math.ceil, round)
"""Functions of a float whose results are integers."""


def rounded(function: Callable[[Any], Any], number: object) -> Any:
    """Return the integer that a function makes of a symbolic number, or of one that only the run tells.

    ``NotImplemented`` for others, and for symbolic ones that are too large.
    """
    if isinstance(number, IntegerProxy):
        return number
    if not isinstance(number, FloatProxy):
        return NotImplemented
    if is_unknown(number):
        return of_the_run(function, number)
    if function is round:
        return to_nearest(number)
    return computed(math.trunc if function is int else function, number)
