"""Freeing values as soon as nothing needs them."""

from __future__ import annotations

from typing import Any

from thunder_ir import BoundSymbol, OpTags, Symbol, Trace
from thunder_ir.passes import trace_pass


def _print_del(bound: BoundSymbol, context: Any) -> list[str]:
    return [f"del {', '.join([p.name for p in bound.args])}"]


def _nothing(*values: Any) -> None:
    return None


delete = Symbol(
    "del", "python", meta=_nothing, tags=frozenset({OpTags.FREES}), printer=_print_del, implementation=_nothing
)
"""Forget values: ``del t0, t1``."""


@trace_pass
def free_after_last_use(trace: Trace) -> Trace:
    """Forget every value right after it is read for the last time, unless the program returns it.

    Inputs are forgotten too: the caller decides by holding them whether they live on.

    Example:
        >>> from thunder_executors import free_after_last_use
        >>> from thunder_ir import Symbol, Tensor, trace_of
        >>> exp = Symbol("exp", "prims", meta=lambda a: a.like())
        >>> print(free_after_last_use(trace_of(lambda x: exp(exp(x)), Tensor((2,)))))
        def program(x: "float32[2]"):
            t0 = _prims_exp(x)  # float32[2]
            del x
            t1 = _prims_exp(t0)  # float32[2]
            del t0
            return t1
    """
    needed = {p.name for p in trace.outputs}
    backwards: list[BoundSymbol] = []
    for bound in reversed(trace.bound_symbols):
        if bound.symbol is delete:
            continue
        dead: dict[str, Any] = {}
        for proxy in bound.inputs:
            if proxy.name not in needed:
                dead.setdefault(proxy.name, proxy)
        for proxy in bound.outputs:
            if proxy.name not in needed:
                dead.setdefault(proxy.name, proxy)
        if dead:
            needed.update(dead)
            backwards.append(BoundSymbol(delete, tuple(dead.values()), {}, None, bound.location))
        backwards.append(bound)
    return trace.replace(bound_symbols=tuple(reversed(backwards)))
