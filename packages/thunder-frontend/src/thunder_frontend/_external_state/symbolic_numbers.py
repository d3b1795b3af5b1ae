"""What Python itself asks of numbers that a program makes dynamic: identity, division by zero, arrays of them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from thunder_guards.errors import AcquisitionError
from thunder_guards.kinds import is_array
from thunder_ir import NumberProxy, flat_proxies, is_unknown, value_of
from thunder_tracing.tensors.sizes import fixed

SMALL_INTEGERS = range(-5, 257)
"""Integers of which Python has one object each, as it has of both truths."""


def identical(a: object, b: object) -> bool:
    """Return whether two values are one object in eager, which fixes symbolic numbers where that depends on them."""
    if a is b or not (isinstance(a, NumberProxy) or isinstance(b, NumberProxy)):
        return a is b
    kinds = [v.python_type if isinstance(v, NumberProxy) else type(v) for v in (a, b)]
    return kinds in ([int, int], [bool, bool]) and fixed(a) == fixed(b) and fixed(a) in SMALL_INTEGERS


DIVISIONS = frozenset({
    divmod, operator.truediv, operator.floordiv, operator.mod, operator.itruediv, operator.ifloordiv, operator.imod,
})  # fmt: skip
POWERS = frozenset({pow, operator.pow, operator.ipow})


def compare_with_zero(fn: object, args: Sequence[Any]) -> None:
    """Let the program hold for symbolic numbers that are all zero, or all not, where Python raises for zero.

    Args:
        fn: what is called; can be looked up.
        args: with which operands.
    """
    if len(args) != 2:
        return
    left, right = args
    if fn in DIVISIONS:
        number = right
    elif fn in POWERS and isinstance(right, (int, float, NumberProxy)) and not is_unknown(right):
        number = left if value_of(right) < 0 else None
    else:
        return
    if isinstance(number, NumberProxy) and not is_unknown(number):
        _ = number != 0


def refuse_array(made: Any, given: Any) -> None:
    """Refuse an array of NumPy that is made of symbolic numbers, which would be one of objects.

    Args:
        made: what a call returned.
        given: its arguments.

    Raises:
        AcquisitionError: it is one; a program in which the numbers are not symbolic has an array of numbers.
    """
    if is_array(made) and made.dtype == object and any([isinstance(p, NumberProxy) for p in flat_proxies(given)]):
        raise AcquisitionError(
            "the program makes an array of NumPy of a number that is dynamic; make a tensor of it, or do not mark "
            "the dimension as dynamic"
        )


def refuse_number(fn: object, made: object) -> None:
    """Refuse what a function of NumPy's on arrays makes of a symbolic number, which it took for an object.

    Args:
        fn: what was called with such a number.
        made: what it returned.

    Raises:
        AcquisitionError: it is no number of NumPy's, as that of a program is in which the number is not symbolic.
    """
    is_plain = isinstance(made, NumberProxy) or type(made) in (bool, int, float)
    if is_plain and type(fn).__name__ == "_ArrayFunctionDispatcher":
        raise AcquisitionError(
            f"the program calls {getattr(fn, '__name__', 'a function')}() of NumPy with a number that is dynamic; make "
            "a tensor of it, or do not mark the dimension as dynamic"
        )
