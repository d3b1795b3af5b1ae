"""Backward programs in stages, between which user code sees, and may change, the gradients of results.

Where one result of a program is computed from another, as a loss from logits beside it, what comes to the gradient of
the logits from the loss is known in the midst of the backward program. Cut there, it hands that over, and goes on from
what it is given in its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from thunder_autograd.programs import ACCUMULATES, live_calls, totals_of
from thunder_autograd.split import Split
from thunder_autograd.traits import Traits
from thunder_autograd.variants import remaining_gradients, without_zeros
from thunder_ir import BoundSymbol, Provenance, Proxy, Trace, flat_proxies, substitute
from thunder_ir.passes import stays


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of a backward program.

    Args:
        program: from what was saved, what the stage before handed on and the cotangents that arrive with it, without
            those that are missing, to ``(sent, handed_on)``; the last one returns the gradients.
        sent: for each cotangent that user code sees next, whether something comes to it.
        handed_on: to the next stage.
        zero: names of the cotangents so far that are missing.
    """

    program: Trace
    sent: tuple[bool, ...]
    handed_on: tuple[Proxy, ...]
    zero: frozenset[str]


class Stages:
    """A backward program that is cut where the cotangents of some results are complete.

    Args:
        split: whose backward program.
        arrivals: for each cotangent, the stage with which it arrives: for a result that others are computed from, a
            later one than theirs.
        seen: the places of the cotangents that user code sees. They arrive with all that comes to them.
    """

    def __init__(self, split: Split, arrivals: Sequence[int], seen: Sequence[int]) -> None:
        backward, count = split.backward, len(split.saved)
        self.split, self.saved = split, backward.inputs[:count]
        self.cotangents = backward.inputs[count:]
        self.arrivals = {p.name: stage for p, stage in zip(self.cotangents, arrivals, strict=True)}
        self.last = max(arrivals)
        self.sent: dict[str, Any] = dict.fromkeys([self.cotangents[i].name for i in seen])
        self.known: dict[str, int] = dict(self.arrivals)
        given: dict[str, Any] = {}
        self.calls = list(self._apart(backward.bound_symbols, given))
        self.gradients = substitute(backward.output, given)
        self.at = self._placed()

    def stage(self, index: int, missing: Sequence[bool], before: Stage | None, needed: Sequence[bool]) -> Stage | None:
        """Return a stage.

        Args:
            index: which.
            missing: for each cotangent that arrives with it, whether there is none.
            before: the stage before.
            needed: for each gradient, whether it is wanted; the last stage asks.

        Returns:
            The stage; ``None`` where an operation mixes a zero with something else, so that zeros must be made.
        """
        arriving = [p for p in self.cotangents if self.arrivals[p.name] == index]
        absent = frozenset([p.name for p, lacks in zip(arriving, missing, strict=True) if lacks])
        absent |= before.zero if before is not None else frozenset()
        zero, depending = set(absent), {p.name for p in self.cotangents}
        alias: dict[str, Any] = {}
        kept = without_zeros(self.calls, depending, zero, alias)
        if kept is None:
            return None
        placed = dict(zip(map(id, self.calls), self.at, strict=True))
        mine = [b for place, b in kept if placed[place] == index]
        handed = before.handed_on if before is not None else ()
        inputs = (*self.saved, *handed, *[p for p in arriving if p.name not in absent])
        if index == self.last:
            present = [p.name not in absent for p in self.cotangents]
            output, made = remaining_gradients(self.split, self.gradients, present, needed, depending, zero, alias)
            return Stage(self._trace(inputs, [*mine, *made], output), (), (), absent)
        sends = [substitute(self.sent[name], alias) for name in self._seen_at(index + 1)]
        sends = [None if p is None or p.name in zero else p for p in sends]
        later = [b for place, b in kept if placed[place] > index]
        sent_later = [p for name, p in self.sent.items() if self.arrivals[name] > index + 1]
        outputs = flat_proxies(substitute((self.gradients, sent_later), alias))
        here = {p.name: p for b in mine for p in b.outputs} | {p.name: p for p in inputs[len(self.saved) :]}
        read = {p.name for b in later for p in b.inputs} | {p.name for p in outputs}
        hands = tuple([p for name, p in here.items() if name in read])
        found = tuple([p for p in sends if p is not None])
        return Stage(self._trace(inputs, mine, (found, hands)), tuple([p is not None for p in sends]), hands, absent)

    def _seen_at(self, index: int) -> list[str]:
        return [name for name in self.sent if self.arrivals[name] == index]

    def _trace(self, inputs: Sequence[Proxy], calls: Sequence[BoundSymbol], output: Any) -> Trace:
        backward = self.split.backward
        return backward.replace(
            inputs=tuple(inputs),
            bound_symbols=tuple(live_calls(calls, flat_proxies(output))),
            output=output,
            provenance=Provenance("stage"),
        )

    def _apart(self, calls: Iterable[BoundSymbol], given: dict[str, Any]) -> Iterator[BoundSymbol]:
        """Give the calls such that of each cotangent that user code sees, what comes to it before is summed apart.

        Args:
            calls: in order.
            given: gets what stands for sums of which only the other terms are added to the cotangent.
        """
        totals = totals_of(self.split.joint)
        sums = {name: name for name in self.sent if name in totals}  # by the name of each sum so far
        rest: dict[str, Any] = {p.name: p for p in self.cotangents}
        for call in calls:
            partial = next((p.name for p in call.inputs if p.name in sums), None) if ACCUMULATES in call.tags else None
            if partial is None:
                yield self._noted(call.substituted(given))
                continue
            name, (made,) = sums.pop(partial), call.outputs
            term = next(substitute(p, given) for p in call.inputs if p.name != partial)
            comes_before = self.known.get(term.name, 0) < self.arrivals[name]
            so_far = self.sent if comes_before else rest
            if so_far[name] is None:
                so_far[name] = term
            else:
                yield self._noted(call.substituted({**given, partial: so_far[name]}))
                so_far[name] = made
            if made.name == totals[name]:
                given[made.name] = rest[name]
            else:
                sums[made.name] = name

    def _noted(self, bound: BoundSymbol) -> BoundSymbol:
        """Note with which stage there is what a call computes, if it depends on a cotangent."""
        found = [self.known[p.name] for p in bound.inputs if p.name in self.known]
        self.known |= dict.fromkeys([p.name for p in bound.outputs if found], max(found, default=0))
        return bound

    def _placed(self) -> list[int]:
        """Return the stage of each call: the first that has what it depends on; of what depends on nothing, the first
        that reads it."""
        known, places = self.known, list[int | None]()
        for bound in self.calls:
            places.append(max([known[p.name] for p in bound.inputs if p.name in known], default=None))
        traits = Traits()
        apart = [b for b, place in zip(self.calls, places, strict=True) if place is None]
        at_once = any([stays(b) or traits.has_effects(b) for b in apart])
        first: dict[str, int] = {}
        for i in reversed(range(len(places))):
            bound, place = self.calls[i], places[i]
            if place is None:
                place = 0 if at_once else min([first.get(p.name, self.last) for p in bound.outputs], default=0)
                places[i] = place
            for p in bound.inputs:
                first[p.name] = min(first.get(p.name, self.last), place)
        return [place or 0 for place in places]


__all__ = ["Stage", "Stages"]
