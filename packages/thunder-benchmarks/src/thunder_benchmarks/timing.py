"""Calls side by side: they take turns, block by block, so that what else the machine does hits all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

Call = Callable[[], Any]

CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}
"""The processor's is that of all threads together."""

FRAMES = 8
"""By which each round is deeper in the stack than the one before: about 1 KiB."""

DEPTHS = 16
"""After how many rounds that begins again."""


def in_turns(
    calls: Mapping[str, Call],
    rounds: int,
    block: float,
    clock: Callable[[], float] = time.process_time,
    agreed: Callable[[int], int] = int,
) -> dict[str, list[float]]:
    """Return what each call takes, in microseconds: one figure for each block, each round deeper in the stack.

    CPython keeps its stack in chunks of 16 KiB, and maps one anew at each call that crosses the end of the last one:
    what a program calls often takes longer where it happens to lie there.

    Args:
        calls: by name.
        rounds: how many blocks of each.
        block: seconds that a block takes, about; 0 for one call.
        clock: tells seconds.
        agreed: takes how many calls make a block; where several processes measure at once, returns one number to all.
    """
    counts = {}
    for name, call in calls.items():
        for _ in range(3):
            call()
        start = clock()
        call()
        counts[name] = agreed(max(1, int(block / max(clock() - start, 1e-6))))
    found: dict[str, list[float]] = {name: [] for name in calls}

    def take(name: str, call: Call) -> None:
        start = clock()
        for _ in range(counts[name]):
            call()
        found[name].append(1e6 * (clock() - start) / counts[name])

    for n in range(rounds):
        for name, call in calls.items():
            _deeper(FRAMES * (n % DEPTHS), partial(take, name, call))
    return found


def _deeper(frames: int, call: Call) -> None:
    if frames:
        _deeper(frames - 1, call)
    else:
        call()


def microseconds(calls: Mapping[str, Call], rounds: int, block: float, **options: Any) -> dict[str, float]:
    """Return the least of what each call takes, in microseconds; arguments are those of :func:`in_turns`."""
    return {name: min(times) for name, times in in_turns(calls, rounds, block, **options).items()}
