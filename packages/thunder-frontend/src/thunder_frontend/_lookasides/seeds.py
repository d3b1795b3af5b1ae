"""Seeds and states of generators of random numbers that a program sets or asks for: each call does so, in its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import FunctionType
from typing import Any

import torch

from thunder_frontend._acquiring import Acquiring
from thunder_guards.errors import AcquisitionError
from thunder_interpreter import DECLINED
from thunder_ir import OpTags
from thunder_torch import opaque_call
from thunder_torch.convert import proxy_of

MANUAL_SEED = torch.random.manual_seed
"""What ``torch.manual_seed`` is, until user code imports ``torch._dynamo``, which puts a wrapper of it in its place."""

SEEDS = 2**64
"""How many seeds there are."""

TAGS = (OpTags.RANDOM, OpTags.DONT_DCE, OpTags.DONT_FUSE)


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """Sets the seed or the state of a generator.

    Args:
        function: ``torch.manual_seed``, say, or such a method of a generator.
    """

    function: Callable[[Any], Any]

    @property
    def __name__(self) -> str:
        return self.function.__name__

    def __call__(self, value: object) -> None:
        self.function(value)

    def metadata(self, values: tuple[Any, ...]) -> None:
        """Return what it returns."""


@dataclass(frozen=True, slots=True, eq=False)
class Asking:
    """Returns the state of a generator.

    Args:
        function: ``torch.get_rng_state``, or the method of a generator.
    """

    function: Callable[[], torch.Tensor]
    __name__ = "rng_state"

    def __call__(self) -> torch.Tensor:
        return self.function()

    def metadata(self, values: tuple[Any, ...]) -> Any:
        """Return a proxy of the state."""
        with torch._C.DisableTorchFunction():
            return proxy_of(self.function(), "")


class Seeds:
    """Records calls on generators.

    Args:
        calls: the acquisition.
    """

    def __init__(self, calls: Acquiring) -> None:
        self._calls = calls
        self._seeds: dict[torch.Generator, int | None] = {}
        """Of generators that the program has set, with what; ``None`` for a state, or what only the run tells."""

    def lookasides(self) -> dict[Any, Any]:
        """Return what is run in place of which functions."""
        functions = (MANUAL_SEED, torch.set_rng_state, torch.cuda.manual_seed, torch.cuda.manual_seed_all)
        methods = (torch.Generator.manual_seed, torch.Generator.set_state)
        return {
            **{function: partial(self._set_default, function) for function in functions},
            **{method: partial(self._set, method.__name__) for method in methods},
            torch.get_rng_state: lambda: self._ask(torch.get_rng_state),
            torch.Generator.get_state: lambda generator: self._ask(self._known(generator).get_state),
            torch.Generator.initial_seed: self._initial_seed,
        }

    def of_wrapper(self, function: object) -> Any:
        """Return what is run in place of a wrapper of ``torch.manual_seed``; ``None`` for anything else."""
        if type(function) is FunctionType and function.__dict__.get("__wrapped__") is MANUAL_SEED:
            return partial(self._set_default, MANUAL_SEED)
        return None

    def _set_default(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> torch.Generator:
        return self._sets(torch.default_generator, function, (*args, *kwargs.values()))

    def _set(self, name: str, generator: torch.Generator, *args: Any, **kwargs: Any) -> torch.Generator:
        return self._sets(generator, getattr(self._known(generator), name), (*args, *kwargs.values()))

    def _sets(
        self, generator: torch.Generator, function: Callable[..., Any], given: tuple[Any, ...]
    ) -> torch.Generator:
        """Record that a generator is set, and note to what."""
        self._record(Setting(function), *self._calls.values(given))
        if function not in (torch.cuda.manual_seed, torch.cuda.manual_seed_all):
            is_seed = function.__name__ == "manual_seed" and len(given) == 1 and type(given[0]) is int
            self._seeds[generator] = given[0] % SEEDS if is_seed else None
        return generator

    def _initial_seed(self, generator: torch.Generator) -> Any:
        if generator not in self._seeds:
            return DECLINED
        seed = self._seeds[generator]
        if seed is None:
            raise AcquisitionError(
                "the program asks a generator of random numbers for the seed of a state that it sets itself, "
                "which only its run could tell; ask before the call"
            )
        return seed

    def _ask(self, function: Callable[..., Any]) -> Any:
        return self._calls.wrap(self._record(Asking(function)))

    def _known(self, generator: torch.Generator) -> torch.Generator:
        self._calls.check_generator(generator)
        return generator

    def _record(self, call: Setting | Asking, *values: Any) -> Any:
        self._calls.changes += 1
        with torch._C.DisableTorchFunction(), self._calls.builder.tagged(*TAGS):
            return opaque_call(call, *values)
