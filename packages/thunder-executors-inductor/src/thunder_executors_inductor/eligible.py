"""Which calls of a program go into regions for Inductor, by the traits of their operations."""

from __future__ import annotations

from enum import Enum
from typing import Any

import thunder_prims as prims
from thunder_executors import Declined
from thunder_ir import BoundSymbol, NumberProxy, OpTags, Symbol, TensorProxy, Trace, flat_proxies
from thunder_ir.passes import expand

PRODUCTS = (prims.linear, prims.matmul)

FUSED = frozenset({OpTags.ELEMENTWISE, OpTags.SHAPE_OP, OpTags.REDUCTION, OpTags.CREATION, OpTags.CAST})
"""What Inductor writes loops for."""

NEVER = frozenset({OpTags.DONT_FUSE, OpTags.DEVICE_SYNC, OpTags.DONT_DCE, OpTags.IN_PLACE, OpTags.COLLECTIVE})
"""What stays outside of regions: effects, and what waits."""


class Takes(Enum):
    """What goes into regions."""

    LOOPS = "loops"
    """What Inductor writes loops for."""
    PRODUCTS = "products"
    """Products of matrices between them, too: Inductor calls the same kernels of libraries."""
    WHOLE = "whole"
    """All that Inductor runs or hands on: convolutions and attention, too."""


def eligible(bound: BoundSymbol, takes: Takes) -> bool | Declined:
    """Whether a call may be in a region.

    Random numbers stay outside of regions, as Inductor would draw others, and so does what raises for some values on a
    CPU: a loop that several threads run ends the process there.

    Args:
        bound: the call.
        takes: what is wanted.
    """
    outputs = flat_proxies(bound.output)
    if not outputs or not all([isinstance(p, TensorProxy) and not p.dtype.is_complex for p in outputs]):
        return Declined("it takes calls that return real tensors")
    for p in bound.inputs:
        if not isinstance(p, TensorProxy) and (not isinstance(p, NumberProxy) or p.python_type is not int):
            return Declined(f"{p.name} is neither a tensor nor an integer")
        if isinstance(p, NumberProxy) and p.unknown is not None:
            return Declined(f"{p.name} is known only when the program runs")
    if any([getattr(d, "unknown", None) is not None for p in (*bound.inputs, *outputs) for d in _shape(p)]):
        return Declined("a size is known only when the program runs")
    cpu = any([isinstance(p, TensorProxy) and p.device.type == "cpu" for p in outputs])
    return _all_eligible(bound, takes, cpu)


def _shape(proxy: Any) -> tuple[Any, ...]:
    return proxy.shape if isinstance(proxy, TensorProxy) else ()


def _all_eligible(bound: BoundSymbol, takes: Takes, cpu: bool) -> bool | Declined:
    symbol = bound.symbol
    tags = symbol.tags | bound.tags
    if found := tags & NEVER:
        return Declined(f"{symbol.id} is {', '.join(sorted(t.name for t in found))}")
    if OpTags.RANDOM in tags:
        return Declined(f"{symbol.id} draws random numbers, and Inductor would draw others")
    if cpu and OpTags.MAY_FAIL in tags:
        return Declined(f"{symbol.id} raises for some values, which ends the process in a loop of several threads")
    if OpTags.MATMUL in tags and takes is not Takes.WHOLE and not (takes is Takes.PRODUCTS and is_product(bound)):
        return Declined(f"{symbol.id} is left to the kernels of libraries")
    if symbol.is_prim:
        known = OpTags.MATMUL in tags or tags & FUSED or _is_number_arithmetic(symbol, bound)
        return True if takes is Takes.WHOLE or known else _unknown(symbol)
    for sub in bound.subsymbols:
        answer = _all_eligible(sub, takes, cpu)
        if not answer:
            return answer
    return True


def is_product(bound: BoundSymbol) -> bool:
    """Whether a call is a product of matrices, with what else it does in loops: no convolution, and no attention."""
    prims = [b.symbol for b in expand(Trace("call", tuple(bound.inputs), (bound,), tuple(bound.outputs))).bound_symbols]
    products = [symbol for symbol in prims if OpTags.MATMUL in symbol.tags]
    return len(products) == 1 and products[0] in PRODUCTS


def _is_number_arithmetic(symbol: Symbol, bound: BoundSymbol) -> bool:
    return all([isinstance(p, NumberProxy) for p in bound.outputs])


def _unknown(symbol: Symbol) -> Declined:
    return Declined(f"Inductor writes no loops for {symbol.id}")


def computes(bound: BoundSymbol) -> bool:
    """Whether a call computes anything: views are free without Inductor."""
    return not bound.has_tag(OpTags.VIEW) and OpTags.SHAPE_OP not in bound.symbol.tags


__all__ = ["FUSED", "NEVER", "Takes", "computes", "eligible", "is_product"]
