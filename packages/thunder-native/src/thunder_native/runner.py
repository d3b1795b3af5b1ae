"""Running a region: in native code where that is the same as its Python text, else by that text."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import cached_property
from typing import Any

import torch
from torch.autograd import forward_ad

from thunder_executors import Region, free_after_last_use
from thunder_ir import Trace
from thunder_native.program import Program, program_of
from thunder_native.runtime import runtime

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
        self.outdated = False
        self.__name__ = name
        self.use(program)

    def use(self, program: Program) -> None:
        """Run a program from now on; threads that are in another one finish it."""
        self.program = program
        self.enter = program.enter
        this = weakref.ref(self)

        def notice() -> None:
            if (found := this()) is not None:
                found.outdated = found.renewals < RENEWALS

        for call in program.elsewhere:
            call.notice = notice

    def renew(self) -> None:
        """Make native code again, of all that is known now."""
        self.outdated = False
        self.renewals += 1
        if self.failures < FAILURES:
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
        made = self.enter(*inputs)
        if made.__class__ is int:
            if made >= 0:
                self.failures += 1
                if self.failures == FAILURES:
                    self.enter = refused
            return tuple(self.python(*inputs))
        outputs = tuple(torch._C._aoti.alloc_tensors_by_stealing_from_void_ptrs(made))
        if self.outdated:
            self.renew()
        return outputs


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


def refused(*inputs: Any) -> int:
    """Return what says that native code did not run."""
    return -1
