"""Integers that a program makes of floats that it does not fix: what Python indexes with or branches on."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from thunder_ir import FloatProxy, IntegerProxy, NumberProxy, Unknown, current_builder, is_unknown, number_proxy
from thunder_ir.unknown import described
from thunder_torch import opaque_call
from thunder_tracing.bailouts import TAGS, EagerFallback
from thunder_tracing.tensors.number_functions import computed, to_nearest

ROUNDING: tuple[Callable[[Any], Any], ...] = (int, math.trunc, math.floor, math.ceil, round)
"""Functions of a float whose results are integers."""


@dataclass(frozen=True, slots=True, eq=False)
class Rounding:
    """Makes an integer of a float when a program runs.

    Args:
        function: one of :data:`ROUNDING`.
    """

    function: Callable[[Any], int]

    @property
    def __name__(self) -> str:
        return self.function.__name__

    def __call__(self, number: float) -> int:
        if not math.isfinite(number):
            raise EagerFallback(f"{self.__name__}() of {number} raises")
        return self.function(number)

    def metadata(self, values: tuple[Any, ...]) -> NumberProxy:
        """Return what stands for the integer."""
        return number_proxy(1, unknown=Unknown(f"{self.__name__}() of {described(values[0])}"))


def rounded(function: Callable[[Any], Any], number: object) -> Any:
    """Return the integer that a function makes of a symbolic number, or of one that only the run tells.

    ``NotImplemented`` for others, and for symbolic ones that are too large.
    """
    if isinstance(number, IntegerProxy):
        return number
    if not isinstance(number, FloatProxy):
        return NotImplemented
    if not is_unknown(number):
        if function is round:
            return to_nearest(number)
        return computed(math.trunc if function is int else function, number)
    with torch._C.DisableTorchFunction(), current_builder().tagged(*TAGS):
        return opaque_call(Rounding(function), number)
