"""What compiling cost, phase by phase."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


class Timer:
    """Adds up CPU seconds by phase.

    Args:
        begins: is told of each phase that begins.
    """

    __slots__ = ("_begins", "seconds")

    def __init__(self, begins: Callable[[str], None]) -> None:
        self.seconds: dict[str, float] = {}
        self._begins = begins

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        self._begins(phase)
        start = time.process_time()
        try:
            yield
        finally:
            self.seconds[phase] = self.seconds.get(phase, 0.0) + time.process_time() - start


@dataclass(slots=True)
class CompileStats:
    """Counts and times of a compiled function.

    Args:
        count_calls: returns how often the function was called.
        compiled: the specialisations.
        cache_misses: how many calls compiled a specialisation.
        unserved: how many calls found no specialisation: those that compiled one, that failed, that ran as eager.
        phases: for each specialisation, CPU seconds by phase.
        reasons: for each miss after the first, why the newest specialisations did not serve.
    """

    count_calls: Callable[[], int] = field(repr=False)
    compiled: list[Any] = field(default_factory=list, repr=False)
    cache_misses: int = 0
    unserved: int = 0
    phases: list[dict[str, float]] = field(default_factory=list)
    reasons: list[list[str]] = field(default_factory=list)

    @property
    def calls(self) -> int:
        """How often the compiled function was called."""
        return self.count_calls()

    @property
    def cache_hits(self) -> int:
        """How many calls were served by a specialisation compiled earlier."""
        return self.calls - self.unserved

    @property
    def last_traces(self) -> list[Any]:
        """The stages of the computation of the specialisation compiled last; empty before the first call."""
        return self.compiled[-1].traces if self.compiled else []

    @property
    def last_backward_traces(self) -> list[Any]:
        """The stages of its backward program; empty without one."""
        return self.compiled[-1].backward_traces if self.compiled else []

    @property
    def last_prologue_traces(self) -> list[Any]:
        """Its prologue: the trace, and what is generated of it."""
        return self.compiled[-1].prologue_traces if self.compiled else []

    @property
    def last_interpreter_log(self) -> Any:
        """What the interpreter saw for it; ``None`` unless that was kept."""
        return self.compiled[-1].program.log if self.compiled else None

    def __str__(self) -> str:
        rows = [f"{self.calls} calls, {self.cache_misses} specialisations compiled"]
        for index, phases in enumerate(self.phases):
            times = ", ".join(f"{name} {seconds * 1e3:.1f} ms" for name, seconds in phases.items())
            rows.append(f"  {index}: {times}")
        return "\n".join(rows)
