"""The pass :func:`thunder_prims.tidy` for programs of whose results other code knows where they lie in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from thunder_ir import BoundSymbol, OpTags, TensorProxy, Trace
from thunder_ir.passes import trace_pass
from thunder_prims.linalg import matmul
from thunder_prims.prim import Prim
from thunder_prims.reduction import sum
from thunder_prims.tidy import simplifies, tidy


@trace_pass
def tidy_apart(trace: Trace) -> Trace:
    """Tidy a program such that its results share memory with its inputs, and with one another, as before.

    What a result may be a view of is left as it is. A sum over dimensions of one element becomes a view where nothing
    else that is returned shares that memory.

    Args:
        trace: the program.

    Example:
        >>> from thunder_ir import Tensor, trace_of
        >>> import thunder_prims as prims
        >>> def program(a):
        ...     b = prims.exp(prims.reshape(prims.reshape(a, (3, 1)), (1, 3)))
        ...     return prims.sum(b, (0,)), prims.sum(b, (0,)), prims.sum(prims.reshape(a, (1, 3)), (0,))
        >>> print(prims.tidy_apart(trace_of(program, Tensor((3,)))))
        def program(a: "float32[3]"):
            t1 = prims.reshape(a, (1, 3))  # float32[1, 3]
            t2 = prims.exp(t1)  # float32[1, 3]
            t3 = prims.reshape(t2, (3,))  # float32[3]
            t4 = prims.sum(t2, (0,))  # float32[3]
            t5 = prims.reshape(a, (1, 3))  # float32[1, 3]
            t6 = prims.sum(t5, (0,))  # float32[3]
            return (t3, t4, t6)
    """
    if not any(map(simplifies, trace.bound_symbols)):
        return trace
    results = {p.name for p in trace.outputs}
    products = {b.output.name for b in trace.bound_symbols if b.symbol is matmul}  # new, however they are computed
    kept = _views_of(trace.bound_symbols, results) - _seen_once(trace) - products
    sums = {b.output.name for b in trace.bound_symbols if b.symbol is sum and b.output.name in results}
    made = tidy(trace, keep=kept - sums)
    shared = _sharing(trace, made, sums) if sums else set()
    return tidy(trace, keep=kept - (sums - shared)) if shared else made


def _viewed(bound: BoundSymbol) -> list[str]:
    """Return what results of a call may be views of: of anything that it reads if it is no prim."""
    if isinstance(bound.symbol, Prim) and not bound.has_tag(OpTags.VIEW):
        return []
    return [p.name for p in bound.inputs if isinstance(p, TensorProxy)]


def _views_of(bounds: Collection[BoundSymbol], names: set[str]) -> set[str]:
    """Return the names of values, and of those that they may be views of."""
    found = set(names)
    for bound in reversed(tuple(bounds)):
        if not found.isdisjoint([p.name for p in bound.outputs]):
            found.update(_viewed(bound))
    return found


def _roots(trace: Trace) -> dict[str, frozenset[str]]:
    """Return for each value that a call returns what it may be a view of in the end, and else itself."""
    roots: dict[str, frozenset[str]] = {}
    for bound in trace.bound_symbols:
        of_views = frozenset[str]().union(*[roots.get(name, frozenset((name,))) for name in _viewed(bound)])
        for made in bound.outputs:
            roots[made.name] = of_views or frozenset((made.name,))
    return roots


def _seen_once(trace: Trace) -> set[str]:
    """Return the views of memory that the program makes itself and of which one result alone is left in the end."""
    roots = _roots(trace)
    left = Counter([root for p in trace.outputs for root in roots.get(p.name, (p.name,))])
    left.update({p.name: 2 for p in trace.inputs})  # the caller has them, too
    views = [p.name for b in trace.bound_symbols if b.has_tag(OpTags.VIEW) for p in b.outputs]
    return {name for name in views if name not in roots[name] and all([left[root] == 1 for root in roots[name]])}


def _sharing(before: Trace, after: Trace, sums: Collection[str]) -> set[str]:
    """Return which results that were sums share memory with an input or with another result, but for the first."""
    roots = _roots(after)
    taken = {p.name for p in after.inputs}
    turned: dict[str, frozenset[str]] = {}
    for old, new in zip(before.outputs, after.outputs, strict=True):
        root = roots.get(new.name, frozenset((new.name,)))
        if old.name in sums:
            turned[old.name] = root
        else:
            taken |= root
    shared = set()
    for name, root in turned.items():
        if not taken.isdisjoint(root):
            shared.add(name)
        taken |= root
    return shared


__all__ = ["tidy_apart"]
