"""Kernels in memory: one per plan and process, whoever asks for it; and on disk, for processes to come."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from thunder_executors_llvm.binding import LEAST
from thunder_executors_llvm.disk import Disk
from thunder_executors_llvm.loading import in_memory
from thunder_executors_llvm.render import NAME, Rendered, render
from thunder_executors_llvm.target import Target
from thunder_loops import LoopPlan


@dataclass(slots=True)
class Kernels:
    """The kernels that were compiled; safe under threads.

    Args:
        disk: where object code is kept; ``None``: nowhere.
        addresses: where they are, by plan and target.
    """

    disk: Disk | None = None
    addresses: dict[tuple[LoopPlan, Target], int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def address(self, plan: LoopPlan, target: Target) -> int:
        """Return where the kernel of a plan is, compiled now if it is new."""
        key = (plan, target)
        found = self.addresses.get(key)
        if found is None:
            with self._lock:
                found = self.addresses.get(key)
                if found is None:
                    found = self.addresses[key] = self._load(render(plan, target), target)
        return found

    def _load(self, rendered: Rendered, target: Target) -> int:
        return in_memory(rendered.text, [NAME], rendered.imports, target.machine, self.disk, LEAST)[NAME]
