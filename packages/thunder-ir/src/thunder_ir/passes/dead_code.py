"""Dropping what nothing reads, and keeping what may fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from thunder_ir.passes.decorator import trace_pass
from thunder_ir.passes.traits import may_fail, stays
from thunder_ir.proxies import Proxy
from thunder_ir.symbols import BoundSymbol, OpTags
from thunder_ir.tensor_proxies import TensorProxy
from thunder_ir.trace import Trace


@trace_pass
def dead_code_elimination(trace: Trace) -> Trace:
    """Drop every bound symbol whose outputs are never read, unless it has an effect or draws random numbers.

    Example:
        >>> from thunder_ir import Namespace, Symbol, Tensor, trace_of
        >>> from thunder_ir.passes import dead_code_elimination
        >>> exp, tanh = (Symbol(n, "prims", meta=lambda a: a.like()) for n in ("exp", "tanh"))
        >>> def program(x):
        ...     exp(x)
        ...     return tanh(x)
        >>> len(dead_code_elimination(trace_of(program, Tensor((2,)))).bound_symbols)
        1
    """
    kept = _kept(trace)
    if len(kept) == len(trace.bound_symbols):
        return trace
    return trace.replace(bound_symbols=tuple(reversed(kept)))


@trace_pass
def keep_failures(trace: Trace, fails: Callable[[BoundSymbol], bool] = may_fail) -> Trace:
    """Say of every call whose outputs are never read, and which raises for some values, that it stays.

    What nothing reads is looked at alone, so that the pass costs next to nothing for programs without.

    Args:
        trace: the program.
        fails: whether a call may raise.

    Example:
        >>> from thunder_ir import Namespace, OpTags, Symbol, Tensor, trace_of
        >>> from thunder_ir.passes import dead_code_elimination, keep_failures
        >>> exp = Symbol("exp", "prims", meta=lambda a: a.like())
        >>> invert = Symbol("invert", "prims", meta=lambda a: a.like(), tags=frozenset({OpTags.MAY_FAIL}))
        >>> def program(x):
        ...     invert(x), exp(x)
        ...     return exp(x)
        >>> trace = dead_code_elimination(keep_failures(trace_of(program, Tensor((2,)))))
        >>> [bound.symbol.name for bound in trace.bound_symbols]
        ['invert', 'exp']
    """
    kept = {id(bound) for bound in _kept(trace)}
    failing = {id(bound) for bound in trace.bound_symbols if id(bound) not in kept and fails(bound)}
    if not failing:
        return trace
    tags = frozenset({OpTags.DONT_DCE, OpTags.DONT_FUSE})
    return trace.replace(
        bound_symbols=tuple([b.replace(tags=b.tags | tags) if id(b) in failing else b for b in trace.bound_symbols])
    )


def _kept(trace: Trace) -> list[BoundSymbol]:
    """Return, last first, the calls whose outputs are read or that stay anyhow."""
    read: set[str] = set()
    _add_names(read, trace.outputs)
    kept = []
    for bound in reversed(trace.bound_symbols):
        outputs = bound.outputs
        for p in outputs:
            if p.name in read:
                break
        else:
            if not stays(bound):
                continue
        kept.append(bound)
        _add_names(read, outputs)
        _add_names(read, bound.inputs)
    return kept


def _add_names(names: set[str], proxies: Iterable[Proxy]) -> None:
    """Add the names of values, and those of their symbolic dimensions."""
    for p in proxies:
        name = p.name
        if name in names:
            continue
        names.add(name)
        if p.__class__ is TensorProxy:
            for d in p.shape:
                if d.__class__ is not int:
                    names.add(d.name)  # type: ignore[union-attr]
