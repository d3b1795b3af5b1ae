"""Running a region: in native code where that is the same as its Python text, else by that text."""

from __future__ import annotations

import weakref
from array import array
from collections.abc import Callable
from functools import cached_property
from typing import Any

import torch
from torch.autograd import forward_ad

from thunder_executors import Region, free_after_last_use
from thunder_ir import Trace
from thunder_native.machine_code import INPUTS
from thunder_native.program import Program, program_of
from thunder_native.runtime import address_of, capsule_of, point_to, runtime

FAILURES = 3
"""After so many failing calls a region is Python's: PyTorch notes its own stack for each, which takes milliseconds."""

RENEWALS = 4
"""How often a region is made again: that takes milliseconds, and layouts that change for ever are not worth it."""


class Runner:
    """Runs a region.

    Python runs it where PyTorch's dispatcher would do more than to call kernels, or is watched, for tensors that are
    more than memory of the CPU, and once more where a call failed, for the exception and the user's line: no call of a
    region writes to what it reads, so that changes nothing.

    Fused kernels whose inputs lie in memory as never before are called in Python, from native code; where they lie so
    again, the program is made once more.

    Args:
        region: its calls.
        name: of the region.
        program: the same in native code.
    """

    def __init__(self, region: Region, name: str, program: Program) -> None:
        self.region = region
        self.failures = 0
        self.renewals = 0
        self.__name__ = name
        self._capsule = capsule_of(address_of(program.head))
        self._heads: list[object] = []
        """What threads may still read, and what is read now."""
        self.use(program)

    @property
    def called_directly(self) -> Callable[..., tuple[Any, ...]]:
        """What programs call: a function in C, which needs no frame of Python's, and keeps this object."""
        return runtime().callable_of("run", self._capsule, self)

    @property
    def enter(self) -> Callable[..., Any]:
        """Native code alone: it returns a tuple, or an integer if it did not run, as :class:`Program` says."""
        return runtime().callable_of("enter", self._capsule, self)

    def use(self, program: Program) -> None:
        """Run a program from now on; threads that are in another one finish it."""
        self.program = program
        self._read(program.head, refused, program)
        this, made = weakref.ref(self), self.renewals

        def notice() -> None:
            runner = this()
            if runner is not None and runner.renewals == made < RENEWALS and runner.failures < FAILURES:
                runner.instead(renewed)

        for call in program.elsewhere:
            call.notice = notice

    def instead(self, fallback: Callable[..., tuple[Any, ...]]) -> None:
        """Have a function of Python called from the next call on; it gets this object and the arguments."""
        head = self.program.head[:]
        head[INPUTS] = -1  # as many are never given
        self._read(head, fallback, self.program)

    def _read(self, head: array[int], fallback: Callable[..., tuple[Any, ...]], program: Program) -> None:
        head[-3:] = array("q", [id(self), id(fallback), id(failed)])
        self._heads += [head, program]
        point_to(self._capsule, address_of(head))

    def renew(self) -> None:
        """Make native code again, of all that is known now."""
        self.renewals += 1
        self.use(program_of(self.region, runtime()))

    @cached_property
    def replays(self) -> Trace:
        """The region as a program, whose calls know the user's lines."""
        made: Trace = free_after_last_use(self.region.trace(self.__name__))
        return made

    @cached_property
    def python(self) -> Callable[..., Any]:
        """The region's Python text, compiled when it is first wanted."""
        return self.replays.python_callable()

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """Return the outputs."""
        return self.called_directly(*inputs)


def refused(runner: Runner, *inputs: Any) -> tuple[Any, ...]:
    """Run a region's text where native code refuses to run."""
    return tuple(runner.python(*inputs))


def failed(runner: Runner, *inputs: Any) -> tuple[Any, ...]:
    """Run a region's text where a call in native code failed; after some failures for good."""
    runner.failures += 1
    if runner.failures >= FAILURES:
        runner.instead(refused)
    return tuple(runner.python(*inputs))


def renewed(runner: Runner, *inputs: Any) -> tuple[Any, ...]:
    """Run a region whose native code is made again before."""
    runner.renew()
    return runner(*inputs)


def watched() -> bool:
    """Whether somebody has to see each call of PyTorch: a mode of dispatch or of functions, derivatives in forward
    mode, autocast, or a profiler."""
    return bool(
        torch._C._len_torch_dispatch_stack()
        or torch._C._len_torch_function_stack()
        or forward_ad._current_level >= 0
        or torch.is_autocast_enabled("cpu")
        or torch._C._autograd._profiler_enabled()
    )
