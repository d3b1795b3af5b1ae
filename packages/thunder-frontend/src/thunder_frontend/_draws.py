"""Numbers that a program draws from Python's and NumPy's generators: values of each call, drawn in their place."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from thunder_ir import NumberProxy, Trace, Unknown, number_proxy


def generators() -> list[Any]:
    """Return Python's own generator, and NumPy's if there is one."""
    numpys = sys.modules.get("numpy.random.mtrand")
    own = getattr(random.random, "__self__", None)
    return [g for g in (own, getattr(numpys, "_rand", None)) if g is not None]


def state_of(generator: Any) -> Any:
    """Return the state of a generator."""
    return generator.getstate() if isinstance(generator, random.Random) else generator.get_state()


def set_state_of(generator: Any, state: Any) -> None:
    """Set a generator to a state that it had."""
    if isinstance(generator, random.Random):
        generator.setstate(state)
    else:
        generator.set_state(state)


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """Draws a number when a program runs.

    Args:
        generator: one of :func:`generators`.
        function: the function of its class that draws.
        args, kwargs: what that is given.
        example: what it draws where it is asked now.
    """

    generator: Any
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    example: Any

    @property
    def __name__(self) -> str:
        return self.function.__name__

    def __repr__(self) -> str:
        return f"<draw of {self.function.__qualname__}>"

    def __call__(self) -> Any:
        return self.function(self.generator, *self.args, **self.kwargs)

    def metadata(self, values: tuple[Any, ...]) -> NumberProxy:
        """Return what stands for the number."""
        return number_proxy(self.example, unknown=Unknown(f"what {self.function.__qualname__} draws"))

    def connected(self, values: tuple[Any, ...]) -> tuple[set[str], tuple[bool, ...]]:
        """No derivative flows through it."""
        return set(), (False,)


def drawing(
    generator: object, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Draw | None:
    """Return what draws as a call does; ``None`` for one that returns no single number."""
    before = state_of(generator)
    try:
        example = function(generator, *args, **kwargs)
    finally:
        set_state_of(generator, before)
    return Draw(generator, function, args, kwargs, example) if type(example) in (int, float) else None


class DrawnFrom:
    """The generators of Python's and NumPy's that a program draws from.

    Args:
        trace: the program.
    """

    def __init__(self, trace: Trace) -> None:
        draws = [b.args[0] for b in trace.bound_symbols if b.args and isinstance(b.args[0], Draw)]
        self.generators = list({id(d.generator): d.generator for d in draws}.values())

    def states(self) -> list[Any]:
        """Return their states."""
        return [state_of(g) for g in self.generators]

    def set_states(self, states: Sequence[Any]) -> None:
        """Set them to states that they had."""
        for generator, state in zip(self.generators, states, strict=True):
            set_state_of(generator, state)


__all__ = ["Draw", "DrawnFrom", "drawing", "generators"]
