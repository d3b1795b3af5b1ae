"""What saving a value and computing it again cost, in bytes of memory and bytes of memory traffic."""

from __future__ import annotations

import math

from thunder_autograd.traits import Trait, Traits, bytes_of, numel_of, traffic
from thunder_ir import BoundSymbol, OpTags, TensorProxy, value_of

FLOPS_PER_BYTE = 16.0  # how many operations of a matmul take as long as moving one byte
DRAWN_PASSES = 10  # random numbers take so much longer than what is read from memory
STATE = 5056  # bytes of the state of the CPU's generator, which is kept so that numbers can be drawn again
UNKNOWN_PASSES = 3  # an operation that no tag describes counts as so many passes over its data


def multiply_adds(bound: BoundSymbol) -> float:
    """Estimate the multiply-adds of a matmul-like call from the sizes of its two largest inputs and its output.

    Exact for a product of matrices, where the sizes are ``mk``, ``kn`` and ``mn``; leading dimensions that both inputs
    share count once.
    """
    tensors = sorted({p.name: p for p in bound.inputs if isinstance(p, TensorProxy)}.values(), key=numel_of)[-2:]
    outputs = [numel_of(p) for p in bound.outputs if isinstance(p, TensorProxy)]
    if len(tensors) < 2 or not outputs:
        return float(max([numel_of(t) for t in tensors], default=0))
    a, b = tensors
    batch = 1
    if a.ndim == b.ndim:
        for x, y in zip(a.shape[:-2], b.shape[:-2], strict=True):
            if x is not y and value_of(x) != value_of(y):
                break
            batch *= value_of(x)
    return math.sqrt(float(numel_of(a)) * numel_of(b) * max(outputs) / max(batch, 1))


def recomputation(bound: BoundSymbol, traits: Traits) -> float:
    """Return what computing a call once more costs, in bytes of memory traffic that take as long."""
    trait = traits.of(bound)
    if trait.may_view:
        return 0.0
    if trait is Trait.CHEAP:
        return traffic(bound) * traits.effort(bound)
    if trait is Trait.UNKNOWN:
        return float(UNKNOWN_PASSES * traffic(bound))
    if trait is Trait.HEAVY:
        return traffic(bound) + 2 * multiply_adds(bound) / FLOPS_PER_BYTE
    return math.inf


def drawing(bound: BoundSymbol) -> float:
    """Return what making a call that draws random numbers once more costs, in the same measure.

    Infinite where keeping the generator's state takes as much as keeping what is drawn.
    """
    if sum([bytes_of(p) for p in bound.outputs]) <= STATE:
        return math.inf
    if bound.has_tag(OpTags.MATMUL):
        return traffic(bound) + 2 * multiply_adds(bound) / FLOPS_PER_BYTE
    return float(DRAWN_PASSES * traffic(bound))
