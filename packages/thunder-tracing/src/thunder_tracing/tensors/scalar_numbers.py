"""Where arithmetic of symbolic numbers, which is Python's, comes out as that of NumPy's scalars."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from thunder_ir import NumberProxy
from thunder_tracing.tensors.array_calls import numpy
from thunder_tracing.tensors.number_functions import computed

COMPARISONS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
EXACT = frozenset({operator.add, operator.sub, operator.mul, *COMPARISONS})
"""What Python computes of two numbers as NumPy does of a ``float64``, or of integers that stay in range."""
WHOLE = 2**53
"""Up to which integers are numbers of ``float64``, all of them."""


def can_be_exact(function: Callable[..., Any], scalars: Sequence[Any], numbers: Sequence[object]) -> bool:
    """Whether an operator gives the same of symbolic numbers as of scalars, unless integers leave their range.

    Args:
        function: an operator.
        scalars: examples of the scalars among the operands.
        numbers: the operands, with symbolic numbers in the place of scalars; those are ``None`` which have none.
    """
    kind = type(scalars[0])
    if function not in EXACT or any([type(scalar) is not kind for scalar in scalars]):
        return False
    if kind.__name__ == "float64":
        return all([_is_wide(number, float) for number in numbers])
    return issubclass(kind, numpy().integer) and all([_is_integer(number, kind) for number in numbers])


def _is_wide(number: object, kind: type) -> bool:
    if isinstance(number, NumberProxy):
        return number.python_type is kind
    return type(number) is kind or type(number) is int and abs(number) <= WHOLE


def _is_integer(number: object, kind: type) -> bool:
    if isinstance(number, NumberProxy):
        return number.python_type is int
    limits = numpy().iinfo(kind)
    return type(number) is int and bool(limits.min <= number <= limits.max)


def exactly(function: Callable[..., Any], numbers: Sequence[Any], result: type) -> Any:
    """Return what an operator gives of symbolic numbers; ``None`` where a scalar cannot be that: NumPy's wraps around.

    The program is fixed to whether it can.

    Args:
        function: an operator that can be exact.
        numbers: the operands.
        result: class of what it gives of scalars.
    """
    found = function(*numbers)
    if not issubclass(result, numpy().integer):
        return found
    limits = numpy().iinfo(result)
    return found if int(limits.min) <= found <= int(limits.max) else None


UFUNCS: dict[str, Callable[[Any], Any]] = {
    "sqrt": math.sqrt, "ceil": math.ceil, "floor": math.floor, "trunc": math.trunc, "absolute": math.fabs,
}  # fmt: skip
"""Functions that give the same of a positive number, by the name that NumPy has for them."""


def by_ufunc(ufunc: Any, number: NumberProxy, result: type) -> Any:
    """Return what a function of NumPy's gives of a symbolic number; ``None`` where Python's gives another.

    The program is fixed to whether it can.

    Args:
        ufunc: of NumPy.
        number: symbolic, and known when the program begins.
        result: class of what it gives.
    """
    function = UFUNCS.get(ufunc.__name__)
    if function is None or result not in (numpy().float64, numpy().int64) or not number > 0:
        return None
    made = computed(function, number)
    if made is NotImplemented:
        return None
    if result is numpy().int64:
        return made if made.python_type is int else None
    return made / 1 if made.python_type is int else made
