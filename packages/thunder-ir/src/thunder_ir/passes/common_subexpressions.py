"""Computing equal things once."""

from __future__ import annotations

from typing import Any

from thunder_ir.keys import key_of
from thunder_ir.passes.dataflow import leading_to
from thunder_ir.passes.decorator import trace_pass
from thunder_ir.passes.dimensions import follow_numbers
from thunder_ir.passes.traits import is_repeatable, writes
from thunder_ir.symbols import BoundSymbol, OpTags
from thunder_ir.trace import Trace
from thunder_ir.trees import substitute


@trace_pass
def common_subexpressions(trace: Trace) -> Trace:
    """Merge calls of one symbol with equal arguments into the first of them.

    Never merged are calls that draw random numbers or have an effect, values one of which is written to later, calls
    with a write between them, and values that would make two outputs of the program share memory that did not.

    Example:
        >>> from thunder_ir import OpTags, Symbol, Tensor, trace_of
        >>> from thunder_ir.passes import common_subexpressions
        >>> exp = Symbol("exp", "prims", meta=lambda a: a.like(), tags=frozenset({OpTags.ELEMENTWISE}))
        >>> add = Symbol("add", "prims", meta=lambda a, b: a.like(), tags=frozenset({OpTags.ELEMENTWISE}))
        >>> print(common_subexpressions(trace_of(lambda x: add(exp(x), exp(x)), Tensor((2,)))))
        def program(x: "float32[2]"):
            t0 = _prims_exp(x)  # float32[2]
            t2 = _prims_add(t0, t0)  # float32[2]
            return t2
    """
    sharing = [b for b in trace.bound_symbols if _may_share(b)]
    _, written = leading_to(sharing, [b.args[0].name for b in sharing if writes(b)])
    _, escaping = leading_to(sharing, [p.name for p in trace.outputs])
    seen = _Seen()
    replaced: dict[str, Any] = {}
    kept = []
    for bound in trace.bound_symbols:
        if replaced:
            bound = bound.substituted(replaced)
        if writes(bound):
            seen.clear()  # what was computed before may read otherwise now
        first = seen.first(bound)
        if first is bound or not (_mergeable(first, bound, written, escaping) and seen.is_repeatable(first)):
            kept.append(bound)
        else:
            replaced.update({new.name: old for new, old in zip(bound.outputs, first.outputs, strict=True)})
            if not escaping.isdisjoint([p.name for p in bound.outputs]):  # so does now what takes their place
                escaping |= leading_to(sharing, [p.name for p in first.outputs])[1]
    if not replaced:
        return trace
    merged = trace.replace(bound_symbols=tuple(kept), output=substitute(trace.output, replaced))
    return follow_numbers(merged, replaced)


class _Seen:
    """The calls so far. What tells all calls apart is asked of those alone that read the same values."""

    def __init__(self) -> None:
        self._alike: dict[str, BoundSymbol | dict[str, BoundSymbol]] = {}
        self._repeatable: dict[int, bool] = {}

    def clear(self) -> None:
        self._alike.clear()

    def first(self, bound: BoundSymbol) -> BoundSymbol:
        """Return the first call of the same symbol with equal arguments: this one, if there was none."""
        rough = f"{id(bound.symbol)} {' '.join([p.name for p in bound.inputs])}"
        alike = self._alike.setdefault(rough, bound)
        if alike is bound:
            return bound
        if isinstance(alike, BoundSymbol):
            alike = self._alike[rough] = {_key(alike): alike}
        return alike.setdefault(_key(bound), bound)

    def is_repeatable(self, first: BoundSymbol) -> bool:
        """Whether a call may be made once for all that equal it: a model's blocks repeat some, and it is asked once."""
        answer = self._repeatable.get(id(first))
        if answer is None:
            answer = self._repeatable[id(first)] = is_repeatable(first)
        return answer


def _key(bound: BoundSymbol) -> str:
    tags = ",".join(sorted([key_of(tag) for tag in bound.tags])) if bound.tags else ""
    return f"{id(bound.symbol)}{key_of(bound.args)}{key_of(bound.kwargs) if bound.kwargs else ''}{tags}"


def _mergeable(first: BoundSymbol, second: BoundSymbol, written: set[str], escaping: set[str]) -> bool:
    old = [p.name for p in first.outputs]
    new = [p.name for p in second.outputs]
    if len(old) != len(new) or not written.isdisjoint(old) or not written.isdisjoint(new):
        return False
    return escaping.isdisjoint(old) or escaping.isdisjoint(new)


_NEW_MEMORY = frozenset({
    OpTags.ELEMENTWISE, OpTags.SHAPE_OP, OpTags.REDUCTION, OpTags.MATMUL, OpTags.CREATION, OpTags.RANDOM, OpTags.CAST,
})  # fmt: skip
"""Tags of what computes results of their own, unless it has one of those below, too."""
_SAME_MEMORY = frozenset({OpTags.VIEW, OpTags.IN_PLACE})


def _may_share(bound: BoundSymbol) -> bool:
    """Whether results of a call may share memory with its arguments: of what nothing is known they may."""
    tags = bound.symbol.tags | bound.tags if bound.tags else bound.symbol.tags
    return not _SAME_MEMORY.isdisjoint(tags) or _NEW_MEMORY.isdisjoint(tags)
