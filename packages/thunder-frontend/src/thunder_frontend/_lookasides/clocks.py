"""What is run in place of functions that read a clock: the program reads it on each call, in its place."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from thunder_frontend._acquiring import Acquiring
from thunder_ir import NumberProxy, OpTags, Unknown, number_proxy
from thunder_torch import opaque_call

CLOCKS = tuple([
    getattr(time, name + unit)
    for name in ("time", "perf_counter", "monotonic", "process_time", "thread_time")
    for unit in ("", "_ns")
])  # fmt: skip
TAGS = (OpTags.RANDOM, OpTags.DONT_FUSE, OpTags.DONT_RECOMPUTE)
"""No two readings are the same."""


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """Reads a clock when a program runs.

    Args:
        clock: a function of :mod:`time`.
        example: what it may return.
    """

    clock: Callable[[], float]
    example: float

    @property
    def __name__(self) -> str:
        return self.clock.__name__

    def __call__(self) -> float:
        return self.clock()

    def metadata(self, values: tuple[Any, ...]) -> NumberProxy:
        """Return what stands for what it returns."""
        return number_proxy(self.example, unknown=Unknown(f"what {self.clock.__name__}() returns"))


def clocks(acquisition: Acquiring) -> dict[Any, Any]:
    """Return what is run in place of which functions."""

    def read(clock: Callable[[], float]) -> Any:
        reading = Reading(clock, clock())
        acquisition.hand_out_number()
        acquisition.changes += 1
        with acquisition.builder.tagged(*TAGS), torch._C.DisableTorchFunction():
            return opaque_call(reading)

    return {clock: partial(read, clock) for clock in CLOCKS}
