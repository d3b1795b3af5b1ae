"""Kernels touch no byte outside of their buffers: pages that nobody may touch lie right behind and before them."""

import subprocess
import sys

import pytest

from thunder_executors_llvm import executor

pytestmark = [
    pytest.mark.skipif(executor.missing() is not None, reason=f"the executor cannot run: {executor.missing()}"),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="protects pages by mprotect of Linux's C library"),
]

PROGRAM = """
import ctypes, mmap
import torch
import thunder_prims as prims
from thunder_executors import Region
from thunder_executors_llvm import executor
from thunder_ir import trace_of
from thunder_torch import proxy_of

PAGE = mmap.PAGESIZE
libc = ctypes.CDLL(None, use_errno=True)
kept = []

def guarded(values, at_end):
    size = values.numel() * values.element_size()
    pages = -(-size // PAGE) or 1
    area = mmap.mmap(-1, (pages + 2) * PAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(area))
    offset = PAGE + (pages * PAGE - size if at_end else 0)
    whole = torch.frombuffer(area, dtype=torch.uint8)
    part = whole[offset : offset + size].view(values.dtype).view(values.shape)
    part.copy_(values)
    for page in (start, start + (pages + 1) * PAGE):
        assert libc.mprotect(ctypes.c_void_p(page), PAGE, 0) == 0
    kept.append((area, whole))
    return part

def programs(x):
    rows = tuple(range(1, x.ndim))
    turned = prims.transpose(x, (1, 0))
    yield prims.add(prims.exp(prims.neg(x)), x)
    yield prims.exp(turned)
    yield prims.cat((prims.neg(x), x), 1)
    yield prims.pad(x, 0.0, ((1, 2, 0), (3, 1, 0)))
    yield prims.sum(prims.exp(x), (1,))
    yield prims.sum(prims.exp(x), (0,))
    yield prims.amax(x, (0, 1))
    yield prims.exp(prims.slice(x, (0, 1), tuple(x.shape), (1, 2)))

for dtype in (torch.float32, torch.float64, torch.bfloat16):
    for shape in ((1, 1), (1, 17), (5, 33), (64, 16), (3, 1000), (700, 3)):
        for at_end in (False, True):
            x = guarded(torch.randn(shape).to(dtype), at_end)
            trace = trace_of(lambda a: tuple(programs(a)), proxy_of(x, ""))
            runner = executor.runner(Region(trace.bound_symbols, trace.inputs, tuple(trace.outputs)), "guarded")
            made = runner(x)
            prepared = runner.prepared[next(iter(runner.prepared))]
            outputs = [guarded(torch.zeros(s, dtype=d), at_end) for s, _, d in prepared.made]
            if any(tuple(o.stride()) != tuple(st) for o, (_, st, _) in zip(outputs, prepared.made)):
                outputs = [guarded(torch.zeros(s, dtype=d).t(), at_end).t() if tuple(st) != tuple(o.stride()) else o
                           for o, (s, st, d) in zip(outputs, prepared.made)]
            runner.run(prepared.steps, [x.data_ptr(), *[o.data_ptr() for o in outputs]])
            for got, expected in zip(outputs, made):
                assert torch.equal(got, expected)
print("touched nothing else", flush=True)
import os
os._exit(0)  # the protected pages cannot be given back by Python
"""


def test_kernels_touch_nothing_outside_of_their_buffers():
    done = subprocess.run([sys.executable, "-c", PROGRAM], check=False, timeout=300, capture_output=True, text=True)
    assert done.returncode == 0 and "touched nothing else" in done.stdout, done.stderr[-2000:]
