"""What kernels may use of the machine: the width of its vectors, and functions to call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch

from thunder_executors_llvm.binding import Machine
from thunder_executors_llvm.compiler import host
from thunder_executors_llvm.library import address_of


@dataclass(frozen=True, slots=True)
class Target:
    """What kernels are written for.

    Args:
        machine: for the compiler.
        bits: width of a vector register.
        address: of a C function, by its name; ``None`` where there is none.
    """

    machine: Machine
    bits: int
    address: Callable[[str], int | None]

    @property
    def lanes(self) -> int:
        """Elements of ``float32`` in a register."""
        return self.bits // 32

    @property
    def converts_half(self) -> bool:
        """Whether there are instructions that convert ``float16``."""
        return not self.is_x86 or "f16c" in self.machine.has

    @property
    def is_x86(self) -> bool:
        """Whether this is a processor of Intel's or AMD's."""
        return self.machine.triple.startswith(("x86_64", "i386", "i686"))


WIDTHS = (("avx512f", 512), ("avx2", 256))
"""What a feature says of the width of registers; the first one that is there counts. Others have 128 bits."""


@cache
def here() -> Target:
    """Return the target of this process: vectors as wide as those of PyTorch's own kernels."""
    machine = host()
    allowed = {"AVX2": 256, "DEFAULT": 128}.get(torch.backends.cpu.get_cpu_capability(), 512)
    widths = [bits for feature, bits in WIDTHS if feature in machine.has and bits <= allowed]
    return Target(machine, widths[0] if widths else 128, address_of)
