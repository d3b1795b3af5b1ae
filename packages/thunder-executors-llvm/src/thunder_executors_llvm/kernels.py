"""Kernels in memory: one per plan and process, whoever asks for it; and on disk, for processes to come."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from thunder_executors_llvm.binding import LEAST, PASSES, Machine, compile_object, load_object, versions
from thunder_executors_llvm.disk import Disk, key_of
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


def in_memory(
    text: str,
    exports: Sequence[str],
    imports: Mapping[str, int],
    machine: Machine,
    disk: Disk | None,
    passes: Sequence[str] = PASSES,
) -> Mapping[str, int]:
    """Bring a module into memory, from disk or compiled now, and return the addresses of its exports.

    Args:
        text: of the module.
        exports: its functions that are wanted.
        imports: addresses of those that it calls.
        machine: what it runs on.
        disk: where its code may be, and is kept.
        passes: names of those that are done before instructions are chosen.
    """
    key = key_of(text, versions(), *passes, machine.triple, machine.cpu, machine.features)
    image = disk.read(key) if disk is not None else None
    if image is None:
        image = compile_object(text, machine, passes)
        if disk is not None:
            disk.write(key, image)
    return load_object(image, exports, imports)
