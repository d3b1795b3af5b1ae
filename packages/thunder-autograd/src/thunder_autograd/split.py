"""A joint program cut in two: a forward program that saves, and a backward program that takes what was saved."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from thunder_autograd.joint import RuleOf, grad_transform_on_trace, has_origin
from thunder_autograd.owned import Copy, with_copies
from thunder_autograd.partition import Decision, InRegions, choose
from thunder_autograd.programs import Joint, differentiable_outputs, live_calls, sizes_of
from thunder_autograd.replay import Draws, Replay
from thunder_autograd.traits import Traits
from thunder_ir import BoundSymbol, NumberProxy, OpTags, Provenance, Proxy, TensorProxy, Trace, flat_proxies
from thunder_ir.passes import equal_integers

Partition = Literal["min-cut", "fused", "save-all"]


@dataclass(frozen=True, slots=True)
class Split:
    """Forward and backward program; unpacks into the two.

    Args:
        forward: from the inputs to ``(outputs, saved)``; ``saved`` is a flat tuple, tensors first.
        backward: from ``saved`` and the cotangents to the gradients, a tuple with one per input, ``None`` where zero.
        differentiable: for each value in the outputs, whether the backward program takes its cotangent.
        decisions: for each value that the backward program needs, whether it is saved or computed again, and why.
        joint: what was cut.
        program: what was differentiated, where it is known.
        draws: whether the forward program draws random numbers.
    """

    forward: Trace
    backward: Trace
    differentiable: tuple[bool, ...]
    decisions: tuple[Decision, ...]
    joint: Trace
    program: Trace | None = None
    draws: bool = False

    def __iter__(self) -> Iterator[Trace]:
        return iter((self.forward, self.backward))

    @property
    def saved(self) -> tuple[Proxy, ...]:
        """What the forward program hands to the backward program."""
        return self.forward.output[1]  # type: ignore[no-any-return]

    @property
    def saved_bytes(self) -> int:
        """Bytes kept for the backward program beyond the inputs; outputs that it reads are counted."""
        return sum([d.bytes for d in self.decisions if d.saved])

    def table(self) -> str:
        """Return the decisions as text, the largest first."""
        rows = [f"{'bytes':>14}  {'what':<10} {'value':<12} why"]
        for d in sorted(self.decisions, key=lambda d: (-d.bytes, d.name)):
            rows.append(f"{d.bytes:>14,}  {'saved' if d.saved else 'recomputed':<10} {d.name:<12} {d.why}")
        return "\n".join(rows)


def forward_and_backward(
    trace: Trace,
    *,
    rule_of: RuleOf | None = None,
    wanted: Collection[str] | None = None,
    runs_whole: Callable[[BoundSymbol], bool] | None = None,
    partition: Partition = "min-cut",
    memory_budget: float | int | None = None,
    replay: Replay | None = None,
    copy: Copy | None = None,
    in_regions: InRegions | None = None,
) -> Split:
    """Return the forward and the backward program of a program.

    Args:
        trace: the program.
        rule_of, wanted, runs_whole: see :func:`thunder_autograd.grad_transform_on_trace`.
        partition, memory_budget, replay, copy, in_regions: see :func:`split_into_forward_and_backward`.

    Returns:
        The two programs, as ``forward, backward = ...`` or with more about them.
    """
    whole = _outside_of(in_regions, runs_whole or has_origin) if in_regions is not None else runs_whole
    joint = equal_integers(grad_transform_on_trace(trace, rule_of=rule_of, wanted=wanted, runs_whole=whole))
    split = split_into_forward_and_backward(
        joint, partition=partition, memory_budget=memory_budget, replay=replay, copy=copy, in_regions=in_regions
    )
    return replace(split, program=trace)


def _outside_of(in_regions: InRegions, runs_whole: Callable[[BoundSymbol], bool]) -> Callable[[BoundSymbol], bool]:
    """Return whether a composite runs whole: a region computes its parts, and what is read of them is at hand there."""

    def outside(bound: BoundSymbol) -> bool:
        return runs_whole(bound) and in_regions(bound) is None

    return outside


def split_into_forward_and_backward(
    joint: Trace,
    *,
    partition: Partition = "min-cut",
    memory_budget: float | int | None = None,
    replay: Replay | None = None,
    copy: Copy | None = None,
    in_regions: InRegions | None = None,
) -> Split:
    """Cut a joint program into a forward and a backward program.

    Args:
        joint: what :func:`thunder_autograd.grad_transform_on_trace` returns.
        partition: ``"min-cut"`` computes cheap values again in the backward program where that saves memory
            and takes little time; ``"fused"`` whatever time it would take, for compilers that fuse it with what reads
            it; ``"save-all"`` saves whatever the pullbacks read, except in regions tagged ``RECOMPUTE``.
        memory_budget: how much may be saved: a ``float`` from 0 to 1 is a fraction of what ``"save-all"`` saves, an
            ``int`` above 1 is in bytes. Less budget never saves more. A small one lets matmuls be computed again.
        replay: how random numbers are drawn again, in regions tagged ``RECOMPUTE`` and where a budget asks for it.
            What draws is computed once and its results saved if not given.
        copy: records the copying of a tensor. Where it is given, ``"min-cut"`` may save copies of small inputs, rather
            than what is computed from them.
        in_regions: where calls are fused into regions, what computing one once more within a region costs, in bytes of
            memory traffic that take as long; ``None`` for a call that stands alone. All do if not given.

    Returns:
        The two programs. Values computed again stand just before their first use in the backward program.
    """
    parts = Joint.of(joint)
    traits = Traits()
    repeats = Draws(traits, replay, parts.trace.names())
    cut, copies = parts, dict[str, BoundSymbol]()
    if copy is not None and partition == "min-cut" and memory_budget is None:
        cut, copies = with_copies(parts, traits, copy, repeats.builder.names)
    keep = choose(cut, traits, partition, memory_budget, repeats, in_regions)
    backward, saved, decisions = _emit(cut, traits, keep, repeats)
    saved.sort(key=lambda p: not isinstance(p, TensorProxy))
    name = joint.name.removesuffix("_joint")
    made = [copies[p.name] for p in saved if p.name in copies]
    read = [*flat_proxies(parts.outputs), *saved, *repeats.drawn]
    calls = repeats.with_readings(live_calls([*made, *parts.primal], read))
    tags = joint.tags
    forward = Trace(
        f"{name}_forward", parts.inputs, tuple(calls), (parts.outputs, tuple(saved)), joint.constraints, tags,
        Provenance("split_into_forward_and_backward"),
    )  # fmt: skip
    program = Trace(
        f"{name}_backward", (*saved, *parts.cotangents), tuple(backward), parts.gradients, (), tags,
        Provenance("split_into_forward_and_backward"),
    )  # fmt: skip
    draws = any([traits.draws(bound) for bound in calls])
    return Split(forward, program, differentiable_outputs(joint), tuple(decisions), joint, draws=draws)


def _emit(
    parts: Joint, traits: Traits, keep: Collection[str], draws: Draws
) -> tuple[list[BoundSymbol], list[Proxy], list[Decision]]:
    """Write the backward program: before each call, what it reads and is neither saved nor there yet."""
    emitter = _Emitter(parts, traits, keep, draws)
    for bound in parts.pulled:
        emitter.provide([*bound.inputs, *sizes_of(bound)])
        emitter.calls.append(bound)
    emitter.provide(flat_proxies(parts.gradients))
    return emitter.calls, list(emitter.saved.values()), emitter.decisions


class _Emitter:
    def __init__(self, parts: Joint, traits: Traits, keep: Collection[str], draws: Draws) -> None:
        self.traits, self.keep, self.draws, self.names = traits, keep, draws, draws.builder.names
        self.calls: list[BoundSymbol] = []
        self.saved: dict[str, Proxy] = {}
        self.decisions: list[Decision] = []
        self.free = {p.name for p in parts.inputs}
        self.outputs = {p.name for p in flat_proxies(parts.outputs)}
        self.there = {p.name for p in parts.cotangents} | {p.name for b in parts.pulled for p in b.outputs}
        self.producer = {p.name: (i, b) for i, b in enumerate(parts.primal) for p in b.outputs}

    def provide(self, proxies: list[Proxy]) -> None:
        """Make these values available, by saving them or by computing them again with all that they need."""
        needed: dict[int, BoundSymbol] = {}
        stack = list(proxies)
        while stack:
            proxy = stack.pop()
            name = proxy.name
            if name in self.there:
                continue
            self.there.add(name)
            index, bound = self.producer.get(name, (-1, None))
            number = isinstance(proxy, NumberProxy)  # so small that it is always saved, and before what it is a size of
            if bound is None or number or name in self.keep or self.draws.is_fixed(bound):
                self.save(proxy, bound)
                continue
            if index not in needed:
                needed[index] = bound
                self.decisions += [Decision.of(p, False, self.traits.of(bound), bound) for p in bound.outputs]
                stack.extend([*bound.inputs, *sizes_of(bound)])
        for index in sorted(needed):
            bound = needed[index]
            if self.draws.can_repeat(bound):
                states = self.draws.saved_for(bound)
                self.saved[states.name] = states
                self.calls += self.draws.again(bound, self.again(bound))
            else:
                self.calls.append(self.again(bound))

    def again(self, bound: BoundSymbol) -> BoundSymbol:
        """Return the call for the backward program; what was saved of its outputs is not defined a second time."""
        twice = {p.name: p.renamed(self.names.fresh(p.prefix)) for p in bound.outputs if p.name in self.saved}
        self.there.update([p.name for p in bound.outputs])
        bound = bound.substituted(twice, outputs=True) if twice else bound
        return bound.replace(tags=bound.tags - {OpTags.RECOMPUTE}) if bound.tags else bound

    def save(self, proxy: Proxy, bound: BoundSymbol | None) -> None:
        self.saved[proxy.name] = proxy
        if bound is not None:
            is_output = proxy.name in self.outputs
            self.decisions.append(Decision.of(proxy, True, self.traits.of(bound), bound, is_output))
