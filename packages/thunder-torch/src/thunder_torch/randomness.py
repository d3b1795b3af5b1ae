"""Random numbers: which operations draw them, and how to draw the same ones again.

Operations that draw are executed by PyTorch's own functions in program order, so that under the same seed a program
draws what eager execution draws. Nothing draws twice: what must be run again, for a derivative, is run as a pair of
:class:`Drawn`, which also returns the generators' states before, and :class:`Replayed`, which takes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from thunder_ir import TensorProxy, Trace, dtypes
from thunder_torch.names import is_tagged, last_name, name_of
from thunder_torch.torch_versions import OpOverload, OpOverloadPacket
from thunder_torch.traits import Trait, has_trait


def is_random(function: Callable[..., Any]) -> bool:
    """Whether a callable may draw random numbers; where PyTorch has an operator for it, its tag says."""
    if is_tagged(function, torch.Tag.nondeterministic_seeded):
        return True
    return not isinstance(function, (OpOverload, OpOverloadPacket)) and has_trait(function, Trait.DRAWS)


def draws(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a call may draw random numbers: attention does for the sake of its dropout alone.

    Example:
        >>> import torch.nn.functional as F
        >>> from thunder_torch.randomness import draws
        >>> [draws(F.scaled_dot_product_attention, ("q", "k", "v"), {"dropout_p": p}) for p in (0.0, 0.5)]
        [False, True]
    """
    if last_name(function) == "scaled_dot_product_attention":
        return bool(kwargs.get("dropout_p") or (len(args) > 4 and args[4]))
    return is_random(function)


def _generator_of(call: Any) -> torch.Generator | None:
    """Return the generator that a call is given by its caller."""
    return next(_generators_in(call), None)


def _devices(values: tuple[Any, ...]) -> tuple[str, ...]:
    """Return the devices whose generators a call on these values may draw from: always the CPU, and its tensors'."""
    names = {str(v.device) for v in values if isinstance(v, (torch.Tensor, TensorProxy))}
    return ("cpu", *sorted(n for n in names if n.startswith("cuda")))


@dataclass(frozen=True)
class Generators:
    """The generators from which a program draws.

    Args:
        devices: whose default generators.
        given: others, which the program's calls are given.
    """

    devices: tuple[str, ...]
    given: tuple[torch.Generator, ...]

    @classmethod
    def of(cls, trace: Trace) -> Generators:
        """Return those of all devices and calls in a trace."""
        values = [p for bound in trace.bound_symbols for p in (*bound.inputs, *bound.outputs)]
        given = [g for bound in trace.bound_symbols for g in _generators_in((bound.args, bound.kwargs))]
        return cls(_devices(tuple(values)), tuple({id(g): g for g in given}.values()))

    @classmethod
    def of_call(cls, call: Any, values: tuple[Any, ...]) -> Generators:
        """Return the one that a call is given by its caller, else those of the devices of its values."""
        given = _generator_of(call)
        return cls(_devices(values), ()) if given is None else cls((), (given,))

    @classmethod
    def given_to(cls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Generators:
        """Return those among arguments."""
        return cls((), tuple(_generators_in((args, kwargs))))

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.devices) + len(self.given)

    def states(self) -> tuple[tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]]:
        """Return their states."""
        return generator_states(self.devices), tuple([g.get_state() for g in self.given])

    def set_states(self, states: tuple[tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]]) -> None:
        """Set them to states that they had."""
        set_generator_states(self.devices, states[0])
        for generator, state in zip(self.given, states[1], strict=True):
            generator.set_state(state)

    def unchanged(self) -> AbstractContextManager[None]:
        """Set them back after a ``with`` block."""
        return self.replaying(self.states())

    @contextmanager
    def replaying(self, states: tuple[tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]]) -> Iterator[None]:
        """Set them to ``states`` within a ``with`` block, and back after it."""
        before = self.states()
        self.set_states(states)
        try:
            yield
        finally:
            self.set_states(before)


def _generators_in(value: Any) -> Iterator[torch.Generator]:
    if isinstance(value, torch.Generator):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _generators_in(item)
    elif isinstance(value, dict):
        yield from _generators_in(list(value.values()))
    elif hasattr(value, "call"):
        yield from _generators_in(value.call)
    elif hasattr(value, "function") and hasattr(value, "kwargs"):
        yield from _generators_in((value.args, value.kwargs))


def generator_states(devices: tuple[str, ...]) -> tuple[torch.Tensor, ...]:
    """Return the states of the default generators of ``devices``."""
    return tuple([torch.get_rng_state() if d == "cpu" else torch.cuda.get_rng_state(d) for d in devices])


def set_generator_states(devices: tuple[str, ...], states: tuple[torch.Tensor, ...]) -> None:
    """Set the default generators of ``devices`` to states that they had."""
    for device, state in zip(devices, states, strict=True):
        if device == "cpu":
            torch.set_rng_state(state)
        else:
            torch.cuda.set_rng_state(state, device)


@dataclass(frozen=True, eq=False)
class Drawn:
    """A call that draws random numbers, returning also the states that the generators had before it.

    Args:
        call: what runs.
    """

    call: Callable[..., Any]

    @property
    def __name__(self) -> str:
        return name_of(self.call)

    def __call__(self, *values: Any) -> tuple[Any, tuple[torch.Tensor, ...]]:
        of_devices, of_given = Generators.of_call(self.call, values).states()
        return self.call(*values), (*of_devices, *of_given)

    def metadata(self, values: tuple[Any, ...]) -> Any:
        """Return proxies for the output and the states."""
        generator = _generator_of(self.call)
        states = (generator.get_state(),) if generator is not None else _state_examples(_devices(values))
        output = self.call.metadata(values)  # type: ignore[attr-defined]
        return output, tuple([TensorProxy(tuple(s.shape), dtypes.uint8, strides=(1,)) for s in states])


def _state_examples(devices: tuple[str, ...]) -> tuple[torch.Tensor, ...]:
    """Return tensors of the sizes that generator states have, without asking a device."""
    return tuple([torch.get_rng_state() if d == "cpu" else torch.empty(16, dtype=torch.uint8) for d in devices])


@dataclass(frozen=True, eq=False)
class Replayed:
    """A call that draws the very numbers which it drew when the states were taken; generators are left as they were.

    Args:
        call: what runs; its values are followed by the states.
    """

    call: Callable[..., Any]

    @property
    def __name__(self) -> str:
        return f"replayed {name_of(self.call)}"

    def __call__(self, *values: Any) -> Any:
        generators = Generators.of_call(self.call, values)  # the states, which are on the CPU, add no device
        arguments, states = values[: -generators.count], values[-generators.count :]
        if isinstance(states[0], FakeTensor):  # nothing is drawn
            return self.call(*arguments)
        devices = len(generators.devices)
        with generators.replaying((states[:devices], states[devices:])):
            return self.call(*arguments)

    def metadata(self, values: tuple[Any, ...]) -> Any:
        """Return proxies for what the call returns."""
        arguments = values[: -Generators.of_call(self.call, values).count]
        return self.call.metadata(arguments)  # type: ignore[attr-defined]
