"""What compiling cost, phase by phase."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


class Timer:
    """Adds up CPU seconds by phase."""

    __slots__ = ("seconds",)

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        start = time.process_time()
        try:
            yield
        finally:
            self.seconds[phase] = self.seconds.get(phase, 0.0) + time.process_time() - start


@dataclass(slots=True)
class CompileStats:
    """Counts and times of a compiled function.

    Args:
        calls: how often it was called so far as that is known: hits are counted when asked for.
        cache_misses: how many calls compiled a specialisation.
        phases: for each specialisation, CPU seconds by phase.
        reasons: for each miss after the first, why no specialisation served.
    """

    cache_misses: int = 0
    phases: list[dict[str, float]] = field(default_factory=list)
    reasons: list[list[str]] = field(default_factory=list)

    def __str__(self) -> str:
        rows = [f"{self.cache_misses} specialisations compiled"]
        for index, phases in enumerate(self.phases):
            times = ", ".join(f"{name} {seconds * 1e3:.1f} ms" for name, seconds in phases.items())
            rows.append(f"  {index}: {times}")
        return "\n".join(rows)
