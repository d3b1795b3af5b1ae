"""Functions of numbers that only the run of the program tells: what they return is such a number, too."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from thunder_ir import FloatProxy, IntegerProxy, NumberProxy, Unknown, current_builder, is_unknown, number_proxy
from thunder_ir.unknown import described
from thunder_torch import opaque_call
from thunder_tracing.bailouts import TAGS, EagerFallback

RESULTS: dict[Callable[..., Any], type[bool | int | float]] = {
    **dict.fromkeys((int, round, math.trunc, math.floor, math.ceil), int),
    **dict.fromkeys((math.isfinite, math.isinf, math.isnan, math.isclose), bool),
    **dict.fromkeys((math.exp, math.exp2, math.expm1, math.log, math.log1p, math.log2, math.log10), float),
    **dict.fromkeys((math.sqrt, math.cbrt, math.pow, math.hypot, math.fabs, math.copysign), float),
    **dict.fromkeys((math.sin, math.cos, math.tan, math.asin, math.acos, math.atan, math.atan2), float),
    **dict.fromkeys((math.sinh, math.cosh, math.tanh, math.asinh, math.acosh, math.atanh), float),
    **dict.fromkeys((math.degrees, math.radians, math.erf, math.erfc, math.gamma, math.lgamma), float),
    **dict.fromkeys((math.fmod, math.remainder, math.nextafter, math.ulp), float),
    **dict.fromkeys((math.gcd, math.lcm, math.isqrt, math.comb, math.perm, math.factorial), int),
}
"""What the functions return, where they return at all."""


@dataclass(frozen=True, slots=True, eq=False)
class OfNumbers:
    """Computes a function of numbers when a program runs; where that raises, the call begins anew as eager.

    Args:
        function: one of :data:`RESULTS`.
    """

    function: Callable[..., Any]

    @property
    def __name__(self) -> str:
        return self.function.__name__

    def __call__(self, *numbers: float) -> Any:
        try:
            return self.function(*numbers)
        except (ArithmeticError, ValueError, TypeError) as error:
            given = ", ".join(map(repr, numbers))
            raise EagerFallback(f"{self.__name__}() of {given} raises {type(error).__name__}") from error

    def metadata(self, values: tuple[Any, ...]) -> NumberProxy:
        """Return what stands for the result."""
        of = ", ".join([described(value) if is_unknown(value) else str(value) for value in values])
        return number_proxy(RESULTS[self.function](1), unknown=Unknown(f"{self.__name__}() of {of}"))


@dataclass(frozen=True, slots=True, eq=False)
class ItemOf:
    """Looks up one of the floating-point numbers in a list when a program runs.

    Args:
        item: the method of the list, or of a tuple, that returns an item.
    """

    item: Callable[[int], Any]
    __name__ = "item"

    def __call__(self, index: int) -> float:
        try:
            found = self.item(index)
        except IndexError as error:
            raise EagerFallback(f"there is no item {index} in a list") from error
        if type(found) is not float:
            raise EagerFallback(f"item {index} of a list is a {type(found).__name__}")
        return found

    def metadata(self, values: tuple[Any, ...]) -> NumberProxy:
        """Return what stands for the item."""
        return number_proxy(0.5, unknown=Unknown("an item of a list"))


def item_of_the_run(sequence: Sequence[Any], index: NumberProxy) -> Any:
    """Return an item of a list or a tuple of floating-point numbers, which is looked up when the program runs."""
    with torch._C.DisableTorchFunction(), current_builder().tagged(*TAGS):
        return opaque_call(ItemOf(sequence.__getitem__), index)


def of_the_run(function: Callable[..., Any], *numbers: object) -> Any:
    """Return what a function returns of numbers, some of which only the run of the program tells.

    ``NotImplemented`` for other functions, and where none of the numbers is such a one.
    """
    are_numbers = all([type(n) in (int, float, bool) or isinstance(n, (IntegerProxy, FloatProxy)) for n in numbers])
    if function not in RESULTS or not are_numbers or not any(map(is_unknown, numbers)):
        return NotImplemented
    with torch._C.DisableTorchFunction(), current_builder().tagged(*TAGS):
        return opaque_call(OfNumbers(function), *numbers)
