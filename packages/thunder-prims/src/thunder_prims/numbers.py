"""Arithmetic of numbers that the program does not fix, such as sizes that change from call to call."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from thunder_ir import NumberProxy, OpTags, is_unknown, number_proxy, value_of
from thunder_ir.dtypes import Kind
from thunder_ir.number_proxies import Number
from thunder_ir.unknown import derived
from thunder_prims.checks import kind_of_number
from thunder_prims.prim import prim

__all__ = [
    "number_abs", "number_add", "number_floordiv", "number_math", "number_mod", "number_mul", "number_neg",
    "number_pow", "number_round", "number_sub", "number_truediv",
]  # fmt: skip

CONSTANT = OpTags.CONSTANT_FOR_DERIVATIVE


def _computed(name: str, function: Callable[..., Any], *numbers: Number) -> NumberProxy:
    for number in numbers:
        kind_of_number(name, number)
    if any(map(is_unknown, numbers)):
        unknown = derived(name.removeprefix("number_"), numbers)
        try:
            return number_proxy(function(*[value_of(number) for number in numbers]), unknown=unknown)
        except ArithmeticError:  # of values that stand in for those of the run
            return number_proxy(
                1 if all([kind_of_number(name, n) <= Kind.INTEGER for n in numbers]) else 1.0, unknown=unknown
            )
    return number_proxy(function(*[value_of(number) for number in numbers]))


@prim(CONSTANT, method="number_add")
def number_add(a: Number, b: Number) -> NumberProxy:
    """``a + b`` of numbers."""
    return _computed("number_add", operator.add, a, b)


@prim(CONSTANT, method="number_sub")
def number_sub(a: Number, b: Number) -> NumberProxy:
    """``a - b`` of numbers."""
    return _computed("number_sub", operator.sub, a, b)


@prim(CONSTANT, method="number_mul")
def number_mul(a: Number, b: Number) -> NumberProxy:
    """``a * b`` of numbers."""
    return _computed("number_mul", operator.mul, a, b)


@prim(CONSTANT, OpTags.DIVIDES, method="number_truediv")
def number_truediv(a: Number, b: Number) -> NumberProxy:
    """``a / b`` of numbers."""
    return _computed("number_truediv", operator.truediv, a, b)


@prim(CONSTANT, OpTags.DIVIDES, method="number_floordiv")
def number_floordiv(a: Number, b: Number) -> NumberProxy:
    """``a // b`` of numbers."""
    return _computed("number_floordiv", operator.floordiv, a, b)


@prim(CONSTANT, OpTags.DIVIDES, method="number_mod")
def number_mod(a: Number, b: Number) -> NumberProxy:
    """``a % b`` of numbers."""
    return _computed("number_mod", operator.mod, a, b)


@prim(CONSTANT, method="number_pow")
def number_pow(a: Number, b: Number) -> NumberProxy:
    """``a ** b`` of numbers."""
    return _computed("number_pow", operator.pow, a, b)


@prim(CONSTANT, method="number_neg")
def number_neg(a: Number) -> NumberProxy:
    """``-a`` of a number."""
    return _computed("number_neg", operator.neg, a)


@prim(CONSTANT, method="number_abs")
def number_abs(a: Number) -> NumberProxy:
    """``abs(a)`` of a number."""
    return _computed("number_abs", operator.abs, a)


@prim(CONSTANT)
def number_math(function: str, a: Number) -> NumberProxy:
    """The function of Python's ``math`` by this name, of a number for which it is a ``float``, or an ``int``."""
    return _computed("number_math", getattr(math, function), a)


@prim(CONSTANT)
def number_round(a: Number, digits: int | None = None) -> NumberProxy:
    """``round(a, digits)`` of a ``float``, which without digits is an ``int``."""
    return _computed("number_round", lambda number: round(number, digits), a)
