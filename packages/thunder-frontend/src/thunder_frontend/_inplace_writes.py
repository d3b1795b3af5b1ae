"""Programs that have no derivative write their results to the caller's tensors at once, where that is safe."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch

from thunder_autograd import Traits
from thunder_executors import compute_into_inputs
from thunder_guards.program import Program
from thunder_guards.templates import proxies_of
from thunder_ir import BoundSymbol, OpTags, TensorProxy, Trace, substitute
from thunder_ir.passes import depends_on_the_run, trace_pass
from thunder_torch import sized, symbol_of
from thunder_tracing.tensors.overwrites import WRITTEN, WRITTEN_UNSEEN

PASSES_ON = {symbol_of(torch.Tensor.detach): 0, WRITTEN: 1, WRITTEN_UNSEEN: 1}
"""Operations that pass on one of their arguments and concern derivatives alone, with the place of the argument."""


@trace_pass
def without_detaching(trace: Trace) -> Trace:
    """Drop calls of ``detach`` and its like on values that the program computes: they are no others than these.

    A value that is returned itself keeps the result apart from it.
    """
    inputs, returned = {p.name for p in trace.inputs}, {p.name for p in trace.outputs}
    for bound in reversed(trace.bound_symbols):
        if bound.symbol is sized and bound.outputs[0].name in returned:  # which is that very tensor
            returned.add(bound.args[0].name)
    known: dict[str, Any] = {}
    kept = []
    for bound in trace.bound_symbols:
        bound = bound.substituted(known) if known else bound
        if bound.symbol in PASSES_ON:
            value, made = bound.args[PASSES_ON[bound.symbol]], bound.output
            if value.name not in inputs and not (value.name in returned and made.name in returned):
                known[made.name] = value
                if made.name in returned:
                    returned.add(value.name)
                continue
        kept.append(bound)
    return trace.replace(bound_symbols=tuple(kept), output=substitute(trace.output, known)) if known else trace


@trace_pass
def failures_before_writes(trace: Trace) -> Trace:
    """Tag the calls that raise for some values: nothing is written to the caller's tensors before them."""
    traits, tag = Traits(), frozenset({OpTags.BEFORE_WRITES})

    def tagged(bound: BoundSymbol) -> BoundSymbol:
        fails = traits.may_fail(bound) or depends_on_the_run(bound)
        return bound.replace(tags=bound.tags | tag) if fails else bound

    return trace.replace(bound_symbols=tuple(map(tagged, trace.bound_symbols)))


def written_in_place(program: Program, trace: Trace) -> Trace:
    """Return a program that runs without derivative such that it computes what it writes to inputs right into them.

    Args:
        program: whose effects tell what is written.
        trace: of its computation, ready to run, with the outputs that the computation has.
    """
    targets: dict[str, TensorProxy] = {}
    computed = dict(zip([p.name for p in program.computation.outputs], trace.outputs, strict=True))
    if any([e.kind in ("metadata", "memory") for e in program.effects]):
        return trace
    uses = Counter([p.name for p in proxies_of([program.result, *[e.value for e in program.effects]])])
    several = {i.memory.name for i in program.inputs if i.memory is not None}
    for effect in program.effects:
        if effect.kind != "tensor" or not isinstance(effect.target, TensorProxy) or effect.target.name in several:
            continue
        if isinstance(effect.value, TensorProxy) and effect.key != "inference":
            value = computed.get(effect.value.name)
            if value is not None and uses[effect.value.name] == 1:
                targets[value.name] = effect.target
    return compute_into_inputs(trace, targets=targets) if targets else trace
