"""The roof of a device: what it reaches in arithmetic and in memory, and how near to that a call comes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from thunder_examine.costs import Cost


@dataclass(frozen=True, slots=True)
class Roof:
    """What a device reaches.

    Args:
        operations: floating-point operations a second, of a large matrix product in float32.
        bytes: a second that a copy of a large tensor reads and writes.

    Example:
        >>> from thunder_examine import Cost, Roof
        >>> roof = Roof(operations=100e9, bytes=10e9)
        >>> roof.share(Cost(seconds=2e-3, bytes=10_000_000, operations=2_500_000))
        0.5
        >>> roof.bound_by_memory(Cost(None, bytes=4, operations=10))
        True
    """

    operations: float
    bytes: float

    def share(self, cost: Cost) -> float | None:
        """Return the time that the roof allows for a call as a share of what it took; ``None`` where that is not known.

        What lies in a cache is had faster than the roof says: the share may be more than one.
        """
        if not cost.seconds:
            return None
        return max(cost.operations / self.operations, cost.bytes / self.bytes) / cost.seconds

    def bound_by_memory(self, cost: Cost) -> bool:
        """Whether a call needs memory for longer than arithmetic."""
        return cost.bytes / self.bytes >= cost.operations / self.operations


def roof_of(device: torch.device, size: int = 512, elements: int = 1 << 23, runs: int = 5) -> Roof:
    """Measure what a device reaches, in less than a second.

    Args:
        device: where.
        size: of the square matrices.
        elements: of the copied tensor, float32.
        runs: of each; the fastest counts.
    """
    with torch.no_grad():
        a, b = torch.ones(2, size, size, device=device)
        source, target = torch.ones(2, elements, device=device)
        product = _fastest(lambda: torch.mm(a, b), device, runs)
        copy = _fastest(lambda: target.copy_(source), device, runs)
    return Roof(2 * size**3 / product, 2 * source.nbytes / copy)


def _fastest(call: Callable[[], Any], device: torch.device, runs: int) -> float:
    found = []
    for _ in range(runs + 1):
        start = time.perf_counter()
        call()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        found.append(time.perf_counter() - start)
    return min(found[1:])
