"""Where arithmetic of symbolic numbers, which is Python's, comes out as that of NumPy's scalars."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from thunder_ir import NumberProxy

COMPARISONS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
EXACT = frozenset({operator.add, operator.sub, operator.mul, *COMPARISONS})
"""What Python computes of two numbers as NumPy does of a ``float64`` or an ``int64``."""
WHOLE = 2**53
"""Up to which integers are numbers of ``float64``, all of them."""
LOW, HIGH = -(2**63), 2**63 - 1
"""The numbers that an ``int64`` can be; NumPy goes on with the least behind the greatest."""


def exactly(function: Callable[..., Any], scalars: Sequence[Any], numbers: Sequence[Any]) -> Any:
    """Return what an operator gives of symbolic numbers, where that is what it gives of scalars; ``None`` elsewhere.

    The program is fixed to integers that do not overflow.

    Args:
        function: one of :data:`EXACT`.
        scalars: examples of the scalars among the operands.
        numbers: the operands, with symbolic numbers in the place of scalars; those are ``None`` which have none.
    """
    kind = type(scalars[0])
    if any([type(scalar) is not kind for scalar in scalars]) or kind.__name__ not in ("float64", "int64"):
        return None
    are_integers = kind.__name__ == "int64"
    if not all([_fits(n, int if are_integers else float) for n in numbers]):
        return None
    found = function(*numbers)
    return None if are_integers and function not in COMPARISONS and not LOW <= found <= HIGH else found


def _fits(number: object, kind: type) -> bool:
    """Whether NumPy takes a number for a scalar of a kind, without a change."""
    if isinstance(number, NumberProxy):
        return number.python_type is kind
    return type(number) is kind or type(number) is int and abs(number) <= WHOLE
