"""Parts of joint programs: which calls depend on what, and what is read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from thunder_ir import BoundSymbol, Provenance, Proxy, TensorProxy, ThunderError, Trace, flat_proxies
from thunder_ir.passes import stays


class Marker(Enum):
    """Tags of calls that derivative passes make and know again."""

    ACCUMULATES = auto()
    ARRIVES = auto()
    DRAWS_APART = auto()
    COPIED = auto()


ACCUMULATES = Marker.ACCUMULATES  # adds two cotangents of one value
ARRIVES = Marker.ARRIVES  # returns all cotangents of a call: what is missing of them is zeros if any is there
DRAWS_APART = Marker.DRAWS_APART  # draws other random numbers than the call whose rule made it
COPIED = Marker.COPIED  # copies an input for the backward program


@dataclass(frozen=True, slots=True)
class TakesCotangents:
    """The tag of a joint trace.

    Args:
        flags: for each value that its program returns, whether there is a cotangent for it.
        zeros: inputs whose gradients have zeros among their terms, which nothing computes: the name of each, and which
            of the cotangents reach it.
        totals: results that others are computed from: the name of the cotangent of each, and of its sum with what comes
            from the others.
    """

    flags: tuple[bool, ...]
    zeros: tuple[tuple[str, tuple[int, ...]], ...] = ()
    totals: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Joint:
    """A joint trace taken apart.

    Args:
        trace: as :func:`thunder_autograd.grad_transform_on_trace` makes it.
        inputs: those of the program.
        cotangents: those of its differentiable outputs.
        outputs: of the program.
        gradients: one per input, ``None`` where there is none.
        primal: the calls that do not depend on cotangents, in order.
        pulled: those that do.
    """

    trace: Trace
    inputs: tuple[Proxy, ...]
    cotangents: tuple[Proxy, ...]
    outputs: Any
    gradients: tuple[Any, ...]
    primal: list[BoundSymbol]
    pulled: list[BoundSymbol]

    @classmethod
    def of(cls, trace: Trace) -> Joint:
        """Take a joint trace apart."""
        outputs, gradients = trace.output
        inputs, cotangents = trace.inputs[: len(gradients)], trace.inputs[len(gradients) :]
        depending = {p.name for p in cotangents}
        primal: list[BoundSymbol] = []
        pulled: list[BoundSymbol] = []
        for bound in trace.bound_symbols:
            if any([p.name in depending for p in bound.inputs]):
                pulled.append(bound)
                depending.update([p.name for p in bound.outputs])
            else:
                primal.append(bound)
        return cls(trace, inputs, cotangents, outputs, gradients, primal, pulled)

    def frontier(self) -> list[Proxy]:
        """Return the primal values that the backward part reads, each once, in the order of first reading."""
        depending = {p.name for p in self.cotangents}
        seen: dict[str, Proxy] = {}
        for bound in self.pulled:
            for proxy in bound.inputs:
                if proxy.name not in depending:
                    seen.setdefault(proxy.name, proxy)
            depending.update([p.name for p in bound.outputs])
        for proxy in flat_proxies(self.gradients):
            if proxy.name not in depending:
                seen.setdefault(proxy.name, proxy)
        return list(seen.values())


def sizes_of(bound: BoundSymbol) -> list[Proxy]:
    """Return the symbolic dimensions of what a call reads and returns: executors may write them into what runs it."""
    proxies = (*bound.inputs, *bound.outputs)
    shapes = [p.shape for p in proxies if isinstance(p, TensorProxy)]
    return [d for shape in shapes for d in shape if d.__class__ is not int and isinstance(d, Proxy) and d.name]


def dimensions(value: Proxy) -> list[Proxy]:
    """Return the symbolic dimensions of a tensor; nothing for other values."""
    return [d for d in value.shape if isinstance(d, Proxy) and d.name] if isinstance(value, TensorProxy) else []


def live_calls(bound_symbols: Iterable[BoundSymbol], read: Iterable[Proxy]) -> list[BoundSymbol]:
    """Return the calls on which the values in ``read`` depend, and those that stay in any case, in order."""
    live = {p.name for p in read}
    kept = []
    for bound in reversed(list(bound_symbols)):
        if any([p.name in live for p in bound.outputs]) or stays(bound):
            kept.append(bound)
            live.update([p.name for p in bound.inputs], [p.name for p in sizes_of(bound)])
    kept.reverse()
    return kept


def gradient_trace(joint: Trace) -> Trace:
    """Return the program of the gradients alone, from the inputs and cotangents of a joint trace.

    It is an ordinary program: its own joint trace gives second derivatives. It draws all random numbers that the joint
    program draws, in the same order.
    """
    gradients = joint.output[1]
    kept = live_calls(joint.bound_symbols, flat_proxies(gradients))
    return joint.replace(
        name=f"{joint.name.removesuffix('_joint')}_gradients",
        bound_symbols=tuple(kept),
        output=gradients,
        provenance=Provenance("gradient_trace"),
    )


def differentiable_outputs(joint: Trace) -> tuple[bool, ...]:
    """Tell for each value that the program of a joint trace returns whether the joint program takes its cotangent."""
    return _tag_of(joint).flags


def inputs_with_zeros(joint: Trace, present: Sequence[bool]) -> set[str]:
    """Return the names of the inputs of a joint trace that have a gradient of zeros, beside what there may be more.

    Args:
        joint: the trace.
        present: for each cotangent, whether there is one.
    """
    return {name for name, reached_by in _tag_of(joint).zeros if any([present[i] for i in reached_by])}


def totals_of(joint: Trace) -> dict[str, str]:
    """Return the names of sums of cotangents, by those of the cotangents of results that other results are computed of.

    Args:
        joint: a joint trace, or one of the programs that it was cut into.
    """
    return dict(_tag_of(joint).totals)


def _tag_of(joint: Trace) -> TakesCotangents:
    for tag in joint.tags:
        if isinstance(tag, TakesCotangents):
            return tag
    raise ThunderError(f"{joint.name} is no joint trace; grad_transform_on_trace makes one")
