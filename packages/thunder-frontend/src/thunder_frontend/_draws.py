"""What a program draws from Python's and NumPy's generators: values of each call, drawn in their place."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from thunder_ir import BoundSymbol, NumberProxy, Symbol, TensorProxy, Trace, Unknown, number_proxy
from thunder_torch.convert import proxy_of
from thunder_torch.randomness import Generators
from thunder_tracing.bailouts import Bailout
from thunder_tracing.derivatives.custom_functions import CustomRule
from thunder_tracing.tensors.array_calls import as_tensor
from thunder_tracing.tensors.recorded_arrays import EXAMPLES

OF_NUMPY = ("RandomState", "Generator")


def numpys_random() -> Any:
    """Return the module ``numpy.random`` if it is loaded, which NumPy does when it is asked for it, or ``None``."""
    return sys.modules.get("numpy.random")


def kinds() -> tuple[type, ...]:
    """Return the classes of generators: Python's own, and NumPy's if they are loaded."""
    numpys = numpys_random()
    return (random.Random, *[getattr(numpys, name) for name in OF_NUMPY if numpys is not None])


def generators() -> list[Any]:
    """Return Python's own generator, and NumPy's if there is one."""
    numpys = sys.modules.get("numpy.random.mtrand")
    own = getattr(random.random, "__self__", None)
    return [g for g in (own, getattr(numpys, "_rand", None)) if g is not None]


def state_of(generator: Any) -> Any:
    """Return the state of a generator."""
    if isinstance(generator, random.Random):
        return random.Random.getstate(generator)
    return generator.bit_generator.state if hasattr(generator, "bit_generator") else generator.get_state()


def set_state_of(generator: Any, state: Any) -> None:
    """Set a generator to a state that it had."""
    if isinstance(generator, random.Random):
        random.Random.setstate(generator, state)
    elif hasattr(generator, "bit_generator"):
        generator.bit_generator.state = state
    else:
        generator.set_state(state)


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """Draws a number, or an array, when a program runs; or sets the seed.

    Args:
        generator: one of :func:`kinds`.
        function: the function of its class that draws.
        args, kwargs: what that is given.
        example: what it may draw; ``None`` if it sets the seed.
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
        found = self.function(self.generator, *self.args, **self.kwargs)
        if type(found) is not type(self.example):
            raise Bailout  # the program is one for another type
        return found if found is None or type(found) in (int, float) else as_tensor(found)

    def metadata(self, values: tuple[Any, ...]) -> NumberProxy | TensorProxy | None:
        """Return what stands for what it draws."""
        if self.example is None:
            return None
        if type(self.example) not in (int, float):
            with torch._C.DisableTorchFunction():
                return proxy_of(as_tensor(self.example), "")
        return number_proxy(self.example, unknown=Unknown(f"what {self.function.__qualname__} draws"))


def examples_of(
    generator: object, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, ...]:
    """Return what a call may draw; the generator is as it was afterwards."""
    before = state_of(generator)
    try:
        with torch._C.DisableTorchFunction():
            return tuple([function(generator, *args, **kwargs) for _ in range(EXAMPLES)])
    finally:
        set_state_of(generator, before)


def opened(trace: Trace, rules: Mapping[Symbol, Any]) -> Trace:
    """Return a trace in which the calls that custom functions make stand beside theirs: to ask, and not to run.

    Args:
        trace: a program.
        rules: the derivatives that it brings along.
    """

    def calls(bound_symbols: Sequence[BoundSymbol]) -> Iterator[BoundSymbol]:
        for bound in bound_symbols:
            yield bound
            if isinstance(rules.get(bound.symbol), CustomRule):
                yield from calls(bound.subsymbols)

    return trace.replace(bound_symbols=tuple(calls(trace.bound_symbols)))


class DrawnFrom:
    """The generators that a program draws from: PyTorch's, Python's and NumPy's.

    Args:
        trace: the program.
    """

    def __init__(self, trace: Trace) -> None:
        draws = [b.args[0] for b in trace.bound_symbols if b.args and isinstance(b.args[0], Draw)]
        self._of_torch = Generators.of(trace)
        self._others = {id(d.generator): d.generator for d in draws}
        self._places = (*self._of_torch.devices, *map(id, self._of_torch.given), *self._others)

    def states(self) -> dict[Any, Any]:
        """Return their states, by what tells them apart."""
        devices, given = self._of_torch.states()
        others = map(state_of, self._others.values())
        return dict(zip(self._places, (*devices, *given, *others), strict=True))

    def set_states(self, states: Mapping[Any, Any]) -> None:
        """Set them to states that they had."""
        of_torch = self._of_torch
        self._of_torch.set_states(
            (tuple([states[d] for d in of_torch.devices]), tuple([states[id(g)] for g in of_torch.given]))
        )
        for place, generator in self._others.items():
            set_state_of(generator, states[place])
