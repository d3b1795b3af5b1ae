"""Computing each symbolic integer once, however it was arrived at."""

from __future__ import annotations

from typing import Any

from thunder_ir.builder import Constraint
from thunder_ir.number_proxies import IntegerProxy
from thunder_ir.passes.dataflow import leading_to
from thunder_ir.passes.decorator import trace_pass
from thunder_ir.passes.dimensions import follow_numbers
from thunder_ir.polynomials import Atom, Polynomial, difference, polynomial_of, solved, with_atoms
from thunder_ir.symbols import BoundSymbol, OpTags
from thunder_ir.trace import Trace
from thunder_ir.trees import substitute


@trace_pass
def equal_integers(trace: Trace) -> Trace:
    """Let the first of symbolic integers that are equal whatever the inputs are stand for all of them.

    Sizes are computed over and over: ``x.view(-1, 256)`` divides the number of elements by 256, where ``4 * n`` is
    at hand; and two inputs are of one size where the program was recorded for such alone. With one name for each,
    programs are shorter, and shapes that are equal look so to who fuses operations. An integer that the program
    returns stays, as do a division by one and what constraints that tell of such an equality are computed from.

    Example:
        >>> from thunder_ir import Tensor, number_proxy, trace_of
        >>> from thunder_ir.passes import dead_code_elimination, equal_integers
        >>> import thunder_prims as prims
        >>> def program(x):
        ...     return prims.reshape(x, (x.shape[1] * 4 * 256 // 256, 256))
        >>> trace = trace_of(program, Tensor((4, number_proxy(3), 256)))
        >>> print(dead_code_elimination(equal_integers(trace)))
        def program(x_1: "int", x: "float32[4, x_1, 256]"):
            i0 = prims.number_mul(x_1, 4)  # int
            t0 = prims.reshape(x, (i0, 256))  # float32[i0, 256]
            return t0
    """
    inputs = [p for p in trace.inputs if isinstance(p, IntegerProxy)]
    if not inputs:
        return trace
    equalities = _Equalities(trace.constraints)
    seen: dict[frozenset[Any], IntegerProxy] = {}
    replaced: dict[str, Any] = {}
    for number in inputs:
        first = seen.setdefault(equalities.key(number), number)
        if first is not number:
            replaced[number.name] = first
    relied_on, _ = leading_to(trace.bound_symbols, equalities.names)
    as_they_are = {id(b) for b in relied_on}
    returned = {p.name for p in trace.outputs if isinstance(p, IntegerProxy)}
    kept: list[BoundSymbol] = []
    for original in trace.bound_symbols:
        stays = id(original) in as_they_are
        bound = original if stays or not replaced else original.substituted(replaced)
        found = bound.outputs[0] if len(bound.outputs) == 1 else None
        if isinstance(found, IntegerProxy) and found.polynomial is not None and found.name not in returned:
            first = seen.setdefault(equalities.key(found), found)
            if first is not found and not _may_divide_by_zero(bound):
                replaced[found.name] = first
                if not stays:
                    continue
        kept.append(bound)
    if not replaced:
        return trace
    merged = trace.replace(bound_symbols=tuple(kept), output=substitute(trace.output, replaced))
    followed = follow_numbers(merged, replaced)
    pairs = zip(trace.constraints, followed.constraints, strict=True)
    used = set(map(id, equalities.used))  # constraints are not compared: that compares their numbers, which is recorded
    return followed.replace(constraints=tuple([old if id(old) in used else new for old, new in pairs]))


class _Equalities:
    """What constraints tell of integers that are equal.

    Args:
        constraints: of a trace.
    """

    def __init__(self, constraints: tuple[Constraint, ...]) -> None:
        self.used: list[Constraint] = []
        self._atoms: dict[Atom, Polynomial] = {}
        for constraint in constraints:
            sides = (constraint.left, constraint.right)
            if constraint.relation == "eq" and constraint.holds and all(map(_is_known, sides)):
                left, right = [with_atoms(polynomial_of(side), self._atoms) for side in sides]
                found = solved(difference(left, right))
                if found is not None:
                    atom, polynomial = found
                    of_it = {atom: polynomial}
                    self._atoms = {a: with_atoms(p, of_it) for a, p in self._atoms.items()} | of_it
                    self.used.append(constraint)
        self.names = [side.name for c in self.used for side in (c.left, c.right) if isinstance(side, IntegerProxy)]

    def key(self, number: Any) -> frozenset[Any]:
        """Return what numbers share that are equal."""
        return frozenset(with_atoms(polynomial_of(number), self._atoms).items())


def _is_known(number: Any) -> bool:
    return number.__class__ is int or (isinstance(number, IntegerProxy) and number.polynomial is not None)


def _may_divide_by_zero(bound: BoundSymbol) -> bool:
    return bound.has_tag(OpTags.DIVIDES) and isinstance(bound.args[1], IntegerProxy)
