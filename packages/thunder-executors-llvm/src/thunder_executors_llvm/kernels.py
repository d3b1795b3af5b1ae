"""Kernels in memory: one per plan and process, whoever asks for it; and on disk, for processes to come."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from thunder_executors_llvm.binding import LEAST
from thunder_executors_llvm.disk import Disk
from thunder_executors_llvm.loading import Function, functions_in_memory
from thunder_executors_llvm.render import module_of, render
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
        found = self.addresses.get((plan, target))
        if found is None:
            self.make_ready([plan], target)
            found = self.addresses[plan, target]
        return found

    def make_ready(self, plans: Sequence[LoopPlan], target: Target) -> None:
        """Compile the kernels of plans that are new, together: LLVM takes less time for one module than for several."""
        if all([(plan, target) in self.addresses for plan in plans]):
            return
        with self._lock:
            new = [plan for plan in dict.fromkeys(plans) if (plan, target) not in self.addresses]
            rendered = [render(plan, target) for plan in new]
            functions = [Function(each.text, each.imports) for each in rendered]

            def module(named: Mapping[int, str]) -> str:
                return module_of({name: rendered[number] for number, name in named.items()})

            found = functions_in_memory(functions, module, target.machine, self.disk, target.address, LEAST)
            self.addresses.update({(plan, target): address for plan, address in zip(new, found, strict=True)})
