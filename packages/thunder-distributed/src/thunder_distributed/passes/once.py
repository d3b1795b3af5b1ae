"""Gathering equal things once."""

from __future__ import annotations

from typing import Any

from thunder_distributed.passes.schedule import can_move, does, readers_of
from thunder_distributed.prim import Does
from thunder_ir import OpTags, Proxy, Trace
from thunder_ir.passes import trace_pass
from thunder_ir.trees import substitute


@trace_pass
def gather_once(trace: Trace) -> Trace:
    """Gather each tensor once over an axis, along a dimension, and let all readers have what came.

    So a weight that modules share, or that one module uses several times, is gathered once in a program, and what
    several layers gather of one input, too. Gathers that are made again for the backward pass are not merged with
    those that are not, and those that a user wrote not at all. Neither are gathers of what is no parameter that are
    results of the program, and read by nothing else: these stay tensors of their own.
    """
    if not can_move(trace):
        return trace
    readers = readers_of(trace.bound_symbols)
    results = {p.name for p in trace.outputs if p.name not in readers}
    first: dict[Any, Proxy] = {}
    replaced: dict[str, Any] = {}
    gone: set[int] = set()
    for bound in trace.bound_symbols:
        waits = readers.get(bound.output.name, []) if does(bound, Does.GATHER) else []
        if len(waits) != 1 or not does(waits[0], Does.WAIT) or bound.has_tag(OpTags.DONT_DCE):
            continue
        value, axis, dim, bucket = bound.args
        whole = waits[0].output
        known = first.setdefault((value.name, axis, dim, bound.has_tag(OpTags.RECOMPUTE)), whole)
        if known is not whole and (bucket is not None or not results >= {known.name, whole.name}):
            replaced[whole.name] = known
            gone.update([id(bound), id(waits[0])])
    if not gone:
        return trace
    kept = [bound.substituted(replaced) for bound in trace.bound_symbols if id(bound) not in gone]
    return trace.replace(bound_symbols=tuple(kept), output=substitute(trace.output, replaced))


__all__ = ["gather_once"]
