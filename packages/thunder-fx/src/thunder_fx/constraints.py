"""What a program demands of its symbolic numbers, as guards of PyTorch's symbols."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from math import copysign
from typing import Any

from thunder_executors import claim, resolve_executors
from thunder_ir import BoundSymbol, Constraint, NumberProxy, Trace, flat_proxies, substitute


def _same(left: Any, right: Any) -> bool:
    return bool(left == right) and copysign(1, left) == copysign(1, right)


RELATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "same": _same,
}  # fmt: skip


def demand(constraints: Sequence[Constraint], numbers: Mapping[str, Any]) -> None:
    """Let PyTorch's symbols meet what a program demands: each comparison becomes a guard of their ``ShapeEnv``.

    Args:
        constraints: how comparisons came out.
        numbers: the symbols of the program's numbers, by name.
    """
    wanted = [c for c in constraints if flat_proxies((c.left, c.right))]
    calls: dict[int, BoundSymbol] = {}
    for constraint in wanted:
        for number in flat_proxies((constraint.left, constraint.right)):
            _computing(number, numbers, calls)
    known: dict[str, Any] = dict(numbers)
    for bound in claim(Trace("numbers", (), tuple(calls.values()), ()), resolve_executors(["torch"])).bound_symbols:
        assert bound.symbol.implementation is not None
        (made,) = bound.outputs
        known[made.name] = bound.symbol.implementation(*substitute(bound.args, known))
    for constraint in wanted:
        left, right = substitute((constraint.left, constraint.right), known)
        if not isinstance(left, NumberProxy) and not isinstance(right, NumberProxy):
            bool(RELATIONS[constraint.relation](left, right))  # asking makes the guard


def _computing(number: Any, numbers: Mapping[str, Any], calls: dict[int, BoundSymbol]) -> None:
    """Add the calls that compute a number of those that are known."""
    definition = getattr(number, "definition", None)
    if number.name in numbers or definition is None or id(definition) in calls:
        return
    for read in definition.inputs:
        _computing(read, numbers, calls)
    calls[id(definition)] = definition


__all__ = ["RELATIONS", "demand"]
