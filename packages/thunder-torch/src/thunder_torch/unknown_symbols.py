"""Fake tensors, some of whose sizes are known only when the program runs, and what PyTorch says of them."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import (
    GuardOnDataDependentSymNode,
    PendingUnbackedSymbolNotFound,
)

from thunder_ir import IntegerProxy, NumberProxy, Unknown, is_unknown
from thunder_ir.unknown import Terms, bounds_of, product, terms_of, total
from thunder_prims.conversion import unknown_number
from thunder_torch.symbolic_sizes import Expressions, OpenSizes
from thunder_torch.unknown_sizes import TYPICAL, sum_of

UNDECIDED = (GuardOnDataDependentSymNode, PendingUnbackedSymbolNotFound)
"""What PyTorch raises where an operation has to know an unknown size."""


class UnknownSizes(OpenSizes):
    """One run of an operation on fake tensors whose symbolic and unknown sizes are symbols of PyTorch's.

    Args:
        operation: its name, for messages.
        least: what unknown sizes are taken to be at least. If that is more than is known of them, all sizes of results
            are to be checked when the program runs.
    """

    def __init__(self, operation: str, least: int = 0) -> None:
        super().__init__(values_decide=True)
        self.least = least
        self._operation = operation
        self._symbol_of: dict[Any, torch.SymInt] = {}
        self._proxy_of: dict[Any, NumberProxy] = {}
        self._program = Expressions(self._proxies)

    # --- the way in ------------------------------------------------------------------------------------------------

    def size(self, number: Any) -> Any:
        """Return a symbol, or an expression of symbols, for an integer."""
        if not is_unknown(number):
            return super().size(number)
        result: Any = 0
        for factors, count in terms_of(number):
            part: Any = count
            for factor in factors:
                part = part * (self._symbol(factor) if is_unknown(factor) else super().size(factor))
            result = result + part
        return result

    def _symbol(self, atom: IntegerProxy) -> torch.SymInt:
        key = atom.name or id(atom)
        known = self._symbol_of.get(key)
        if known is None:
            known = self._symbol_of[key] = self.env.create_unbacked_symint()
            low, high = bounds_of(atom)
            low = max(low, self.least) if low >= 0 else low
            if low > -math.inf:
                torch._check(known >= int(low))  # type: ignore[no-untyped-call]
            if high < math.inf:
                torch._check(known <= int(high))  # type: ignore[no-untyped-call]
            self._proxy_of[known.node.expr] = atom
        return known

    # --- the way out -----------------------------------------------------------------------------------------------

    def dimension(self, size: Any, place: int) -> Any:
        """Return a size of a result: a plain integer, or a proxy without a name.

        Args:
            size: as PyTorch says it.
            place: which dimension it is.
        """
        if isinstance(size, int):
            return sum_of(terms_of(size), f"a size of what {self._operation} returns", size) if self.least else size
        return self._number(size, int, f"dimension {place} of what {self._operation} returns", 0)

    def strides(self, strides: Any) -> tuple[Any, ...] | None:
        """Return the strides of a result; ``None`` where they are no sums of products of sizes."""
        found: list[Any] = []
        for stride in strides:
            terms = None if isinstance(stride, int) else self._terms(stride.node.expr)
            if isinstance(stride, int) or self._is_symbolic(stride.node.expr):
                found.append(stride if isinstance(stride, int) else self.computed(stride.node.expr))
            elif terms is None:
                return None
            else:
                found.append(sum_of(terms, f"a stride of what {self._operation} returns", 0))
        return tuple(found)

    def computed(self, expression: Any) -> Any:
        """Compute an expression of symbols in the program."""
        return self._program.computed(expression)

    def demand(self) -> None:
        """Make constraints of the program of what PyTorch found out of the sizes."""
        self._program.demand([guard.expr for guard in self.env.guards])

    def result(self, value: Any) -> NumberProxy:
        """Return a proxy for a number among the results."""
        if isinstance(value, torch.SymInt):
            number: NumberProxy = self._number(value, int, f"what {self._operation} returns", -math.inf)
            return number
        return unknown_number(float if isinstance(value, torch.SymFloat) else bool, f"what {self._operation} returns")

    def _number(self, value: torch.SymInt, kind: type, what: str, lower: float) -> Any:
        expression = value.node.expr
        if expression.is_Integer:
            return self.dimension(int(expression), 0)
        if self._is_symbolic(expression) and not self.least:
            return self.computed(expression)
        terms = self._terms(expression)
        if terms is None:
            return self._fresh(expression, what, lower)
        if len(terms) == 1 and terms[0][1] == 1 and len(terms[0][0]) == 1:
            (atom,) = terms[0][0]
            if is_unknown(atom) and not atom.name and atom.unknown.terms is None:
                return self._described(atom, what, lower)
        return sum_of(terms, what, lower)

    def _described(self, atom: IntegerProxy, what: str, lower: float) -> IntegerProxy:
        """A number that the operation makes is described by the place where it is first seen."""
        before = atom.unknown
        assert before is not None
        if not before.what:
            atom.unknown = Unknown(what, max(before.lower, lower), before.upper)
        return atom

    def _fresh(self, expression: Any, what: str, lower: float) -> IntegerProxy:
        known = self._proxy_of.get(expression)
        if known is None:
            known = self._proxy_of[expression] = IntegerProxy(TYPICAL, "", Unknown(what, lower))
        return known  # type: ignore[return-value]

    def _is_symbolic(self, expression: Any) -> bool:
        """Whether an expression has no unknown number in it."""
        return bool(expression.free_symbols <= self._proxies.keys())

    def _terms(self, expression: Any) -> Terms | None:
        """Return an expression of symbols as a sum of products; ``None`` if it is none."""
        if self._is_symbolic(expression):
            return terms_of(self.computed(expression))
        if expression.is_Symbol:
            known = self._proxy_of.get(expression)
            if known is None:
                bounds = self.env.var_to_range.get(expression)
                low, high = (-math.inf, math.inf) if bounds is None else map(_finite, (bounds.lower, bounds.upper))
                known = self._proxy_of[expression] = IntegerProxy(TYPICAL, "", Unknown("", low, high))
            return terms_of(known)
        parts = [self._terms(part) for part in expression.args] if expression.is_Add or expression.is_Mul else [None]
        if any([part is None for part in parts]):
            return None
        if expression.is_Add:
            return total(*[(1, part) for part in parts if part is not None])
        result: Terms = (((), 1),)
        for part in parts:
            assert part is not None
            result = product(result, part)
        return result


def _finite(bound: Any) -> float:
    """Return a bound of PyTorch's as a number; what it takes for infinite is so."""
    if bound.is_Integer and abs(int(bound)) < 2**62:
        return int(bound)
    return math.inf if bound > 0 else -math.inf
