"""Which tensors a collective may write to: what a call has made for it alone."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from thunder_distributed.passes.schedule import readers_of
from thunder_ir import BoundSymbol, OpTags, Proxy, Trace

MAY_BE_ITS_ARGUMENT = (OpTags.VIEW, OpTags.CAST, OpTags.SHAPE_OP)


def owned(trace: Trace, values: Iterable[Proxy]) -> set[str]:
    """Return the names of those values whose memory nothing else reads, or keeps.

    They are views, or nothing else, of what a product returns, a call that says so, or a kernel of PyTorch whose schema
    has no alias; each step of the way has one reader.
    """
    readers = readers_of(trace.bound_symbols)
    producer = {p.name: bound for bound in trace.bound_symbols for p in bound.outputs}
    outputs = {p.name for p in trace.outputs}

    def is_owned(name: str) -> bool:
        while len(readers.get(name, ())) == 1 and name not in outputs and name in producer:
            bound = producer[name]
            if _makes_memory(bound):
                return True
            if not any([bound.has_tag(tag) for tag in MAY_BE_ITS_ARGUMENT]):
                return False
            name = bound.inputs[0].name
        return False

    return {p.name for p in values if is_owned(p.name)}


def _makes_memory(bound: BoundSymbol) -> bool:
    """Whether what a call returns is new."""
    kernel = bound.symbol.implementation
    if isinstance(kernel, torch._ops.OpOverload):
        composite = torch._C.DispatchKey.CompositeImplicitAutograd  # may return its argument, whatever the schema says
        aliases = [r.alias_info for r in kernel._schema.returns]
        return not any(aliases) and not kernel.has_kernel_for_dispatch_key(composite)
    return bound.has_tag(OpTags.MATMUL) or bound.has_tag(OpTags.NEW_MEMORY)


__all__ = ["owned"]
