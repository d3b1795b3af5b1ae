"""Comparisons with numbers that only the run of the program tells: what they come out as is such a number, too."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from thunder_guards.kinds import NumPyScalar
from thunder_ir import NumberProxy, Unknown, UnknownNumberError, current_builder, is_unknown, number_proxy, value_of
from thunder_ir.unknown import SIGNS, described
from thunder_torch import opaque_call


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Compares two numbers when a program runs.

    Args:
        relation: ``"eq"``, ``"ne"``, ``"lt"``, ``"le"``, ``"gt"`` or ``"ge"``.
    """

    relation: str

    @property
    def __name__(self) -> str:
        return self.relation

    def __call__(self, left: object, right: object) -> bool:
        return bool(getattr(operator, self.relation)(left, right))

    def metadata(self, values: tuple[Any, ...]) -> NumberProxy:
        """Return what stands for the truth."""
        left, right = map(described, values)
        return number_proxy(True, unknown=Unknown(f"whether {left} {SIGNS[self.relation]} {right}"))


def compared(compare: Callable[[Any, Any], Any], left: object, right: object) -> Any:
    """Return the outcome of a comparison of a number that only the run tells; ``NotImplemented`` for others.

    With a number of NumPy's that is a boolean of NumPy's, which no program holds: Python is told it at once.
    """
    if not (is_unknown(left) or is_unknown(right)) or not (_is_number(left) and _is_number(right)):
        return NotImplemented
    builder = current_builder()
    oracle, builder.oracle = builder.oracle, None  # what it comes out as need not be told unless Python branches on it
    try:
        return compare(left, right)
    except UnknownNumberError:
        with torch._C.DisableTorchFunction():
            outcome = opaque_call(Comparison(compare.__name__), left, right)
    finally:
        builder.oracle = oracle
    if isinstance(left, NumPyScalar) or isinstance(right, NumPyScalar):
        kind = type(compare(value_of(left), value_of(right)))
        return kind(bool(outcome))
    return outcome


def _is_number(value: object) -> bool:
    return isinstance(value, (NumberProxy, int, float, NumPyScalar)) and not isinstance(value, complex)
