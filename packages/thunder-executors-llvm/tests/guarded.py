"""Memory between pages that nobody may touch: who reads or writes a byte outside of a buffer ends the process."""

from __future__ import annotations

import ctypes
import math
import mmap
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import torch

from thunder_executors_llvm import runner as running
from thunder_executors_llvm.runner import Runner

PAGE = mmap.PAGESIZE
NONE, BOTH, PRIVATE = 0, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS


class Guarded:
    """Buffers that touch a protected page with their last byte, or with their first one; gone at the end of a block.

    Args:
        at_end: which of the two.
    """

    def __init__(self, at_end: bool) -> None:
        self.at_end = at_end
        self.areas: list[tuple[int, int]] = []
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.mmap.restype = ctypes.c_void_p
        self.libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
        self.libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        self.libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]

    def __enter__(self) -> Guarded:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for start, size in self.areas:
            assert self.libc.munmap(start, size) == 0

    def empty(self, shape: Sequence[int], strides: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """Return a tensor that lies so in exactly as many bytes as it needs."""
        span = 1 + sum([(n - 1) * s for n, s in zip(shape, strides, strict=True)]) if math.prod(shape) else 0
        size = span * dtype.itemsize
        if not size:
            return torch.empty_strided(tuple(shape), tuple(strides), dtype=dtype)
        pages = -(-size // PAGE)
        start = self.libc.mmap(None, (pages + 2) * PAGE, BOTH, PRIVATE, -1, 0)
        assert start not in (None, ctypes.c_void_p(-1).value)
        self.areas.append((start, (pages + 2) * PAGE))
        for page in (start, start + (pages + 1) * PAGE):
            assert self.libc.mprotect(page, PAGE, NONE) == 0
        address = start + PAGE + (pages * PAGE - size if self.at_end else 0)
        flat = torch.frombuffer((ctypes.c_char * size).from_address(address), dtype=dtype)
        return flat.as_strided(tuple(shape), tuple(strides))

    def copy(self, values: torch.Tensor) -> torch.Tensor:
        """Return a tensor that holds the same, in the same layout."""
        made = self.empty(values.shape, values.stride(), values.dtype)
        if values.numel():
            span = 1 + sum([(n - 1) * s for n, s in zip(values.shape, values.stride(), strict=True)])
            made.as_strided((span,), (1,)).copy_(values.as_strided((span,), (1,)))
        return made


def is_same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors have equal bits."""
    first, second = (torch.empty(t.numel(), dtype=t.dtype).copy_(t.reshape(-1)).view(torch.uint8) for t in (a, b))
    return torch.equal(first, second)


def check_bounds(runner: Runner, inputs: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> None:
    """Run the kernels of a region once more with each of its buffers between protected pages.

    Args:
        runner: of the region, which was run on ``inputs`` before, and on no others.
        inputs: tensors.
        expected: what it gave.
    """
    for prepared in runner.prepared.values():
        for at_end in (False, True):
            with Guarded(at_end) as memory:
                held = [memory.copy(t) for t in inputs]
                held += [memory.empty(*made) for made in prepared.made]
                addresses = [t.data_ptr() for t in held]
                runner.run(prepared.checks, addresses)
                runner.run(prepared.steps, addresses)
                outputs = held[len(inputs) :][: len(expected)]
                assert all([is_same(*pair) for pair in zip(outputs, expected, strict=True)])
                del held, outputs


def check_threads(monkeypatch: Any, runner: Runner, inputs: Sequence[Any], expected: Sequence[torch.Tensor]) -> None:
    """Run a region by one, two and four threads, however small it is, and compare all bits.

    Args:
        monkeypatch: of pytest.
        runner: of the region.
        inputs: what it is called with.
        expected: what it gave.
    """
    monkeypatch.setattr(running, "GRAIN", 1)
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 4):
            torch.set_num_threads(threads)
            assert all([is_same(*pair) for pair in zip(runner(*inputs), expected, strict=True)]), f"{threads} threads"
    finally:
        torch.set_num_threads(before)
