"""Putting the decompositions of composites in their place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from thunder_ir.names import Names
from thunder_ir.passes.decorator import trace_pass
from thunder_ir.passes.pairing import pair_outputs
from thunder_ir.passes.rewriting import with_old_names
from thunder_ir.symbols import BoundSymbol
from thunder_ir.trace import Trace
from thunder_ir.trees import substitute


def _keeps_nothing(bound: BoundSymbol) -> bool:
    return False


@trace_pass
def expand(trace: Trace, keep: Callable[[BoundSymbol], bool] = _keeps_nothing) -> Trace:
    """Replace composites by their decompositions until only prims and what is to be kept are left.

    Args:
        trace: the program.
        keep: asked about each composite, the ones within decompositions included.

    Returns:
        The expanded trace; the values of composites keep their names.

    Example:
        >>> from thunder_ir import Symbol, Tensor, trace_of
        >>> from thunder_ir.passes import expand
        >>> exp = Symbol("exp", "prims", meta=lambda a: a.like())
        >>> twice = Symbol("twice", "mine", decomposition=lambda a: exp(exp(a)))
        >>> print(expand(trace_of(lambda x: twice(x), Tensor((2,)))))
        def program(x: "float32[2]"):
            t1 = _prims_exp(x)  # float32[2]
            t0 = _prims_exp(t1)  # float32[2]
            return t0
    """
    if all([bound.symbol.is_prim or keep(bound) for bound in trace.bound_symbols]):
        return trace
    expansion = _Expansion(trace.names(), keep)
    for bound in trace.bound_symbols:
        expansion.add(bound)
    new = trace.replace(bound_symbols=tuple(expansion.done), output=substitute(trace.output, expansion.replaced))
    return with_old_names(new, expansion.replaced, expansion.defined)


class _Expansion:
    """The state of :func:`expand`: what is done, what the outputs of expanded composites are now."""

    __slots__ = ("defined", "done", "keep", "names", "replaced")

    def __init__(self, names: Names, keep: Callable[[BoundSymbol], bool]) -> None:
        self.names = names
        self.keep = keep
        self.done: list[BoundSymbol] = []
        self.replaced: dict[str, Any] = {}
        self.defined: set[str] = set()

    def add(self, bound: BoundSymbol, inner: bool = False) -> None:
        if self.replaced:
            bound = bound.substituted(self.replaced)
        if inner:
            self.defined.update([p.name for p in bound.outputs])
        if bound.symbol.is_prim or self.keep(bound):
            self.done.append(bound)
            return
        calls, output = bound.decomposed(self.names)
        for call in calls:
            self.add(call, inner=True)
        pair_outputs(bound.output, substitute(output, self.replaced), self.replaced)
