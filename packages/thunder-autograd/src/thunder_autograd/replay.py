"""Drawing random numbers a second time: from the states that the generators had before they were first drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from thunder_autograd.traits import Trait, Traits
from thunder_ir import BoundSymbol, Builder, Names, OpTags, Proxy, recording


@dataclass(frozen=True, slots=True)
class Replay:
    """How calls that draw random numbers are made again.

    Args:
        generators: the generators that a call draws from, as the other two take them; ``None`` if that is not known.
        states: records the reading of their states: ``generators -> states``.
        exchange: records the setting of them, ``(generators, states) -> the states before``; it has an effect.
    """

    generators: Callable[[BoundSymbol], Any]
    states: Callable[[Any], Proxy]
    exchange: Callable[[Any, Proxy], Proxy]


class Draws:
    """Which calls of a program that draw random numbers can be made again, and how.

    Args:
        traits: tells what draws.
        replay: ``None`` where nothing can.
        names: of the values that are recorded for it.
    """

    def __init__(self, traits: Traits, replay: Replay | None, names: Names) -> None:
        self.traits, self.replay = traits, replay
        self.builder = Builder(names)
        self.before: dict[int, BoundSymbol] = {}
        """For each call that is made again, by identity: the reading of the states before it."""
        self.drawn: list[Proxy] = []
        """What these calls return. They are made in the forward program even if it is read in the backward one only."""

    def is_fixed(self, bound: BoundSymbol) -> bool:
        """Whether a call can be made once only."""
        return self.traits.of(bound) is Trait.FIXED and not self.can_repeat(bound)

    def can_repeat(self, bound: BoundSymbol) -> bool:
        """Whether a call draws random numbers that can be drawn again, and has no other effect."""
        return (
            self.replay is not None
            and self.traits.draws(bound)
            and not self.traits.has_effects(bound)
            and not bound.has_tag(OpTags.DONT_RECOMPUTE)
            and not bound.has_tag(OpTags.DEVICE_SYNC)
            and self.replay.generators(bound) is not None
        )

    def saved_for(self, bound: BoundSymbol) -> Proxy:
        """Return the states to save for making a call again."""
        reading = self.before.get(id(bound))
        if reading is None:
            assert self.replay is not None
            self.drawn += bound.outputs
            reading = self.before[id(bound)] = self._recorded(self.replay.states, self.replay.generators(bound))
        return reading.outputs[0]

    def again(self, bound: BoundSymbol, repeated: BoundSymbol) -> list[BoundSymbol]:
        """Return the calls that draw the same numbers and leave the generators as they were.

        Args:
            bound: the call of the forward program.
            repeated: the call of the backward program.
        """
        assert self.replay is not None
        generators = self.replay.generators(bound)
        there = self._recorded(self.replay.exchange, generators, self.saved_for(bound))
        back = self._recorded(self.replay.exchange, generators, there.outputs[0])
        return [there, repeated, back]

    def with_readings(self, calls: list[BoundSymbol]) -> list[BoundSymbol]:
        """Return the calls of the forward program, the states read before each that is made again."""
        if not self.before:
            return calls
        return [c for call in calls for c in ([self.before[id(call)], call] if id(call) in self.before else [call])]

    def _recorded(self, function: Callable[..., Any], *args: Any) -> BoundSymbol:
        self.builder.bound_symbols = []
        with recording(self.builder):
            function(*args)
        (bound,) = self.builder.bound_symbols
        return bound
