"""Kernels touch no byte outside of their buffers: pages that nobody may touch lie right behind and before them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from thunder_executors_llvm import executor

pytestmark = [
    pytest.mark.skipif(executor.missing() is not None, reason=f"the executor cannot run: {executor.missing()}"),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="protects pages by mprotect of Linux's C library"),
]

PROGRAM = """
import torch
from guarded import Guarded, check_bounds
import thunder_prims as prims
from thunder_executors import Region
from thunder_executors_llvm import executor
from thunder_ir import trace_of
from thunder_torch import proxy_of

def programs(x):
    turned = prims.transpose(x, (1, 0))
    yield prims.add(prims.exp(prims.neg(x)), x)
    yield prims.exp(turned)
    yield prims.cat((prims.neg(x), x), 1)
    yield prims.pad(x, 0.0, ((1, 2, 0), (3, 1, 0)))
    yield prims.sum(prims.exp(x), (1,))
    yield prims.sum(prims.exp(x), (0,))
    yield prims.amax(x, (0, 1))
    yield prims.exp(prims.slice(x, (0, 1), tuple(x.shape), (1, 2)))
    yield prims.max_pool(prims.reshape(x, (1, *x.shape)), (3,), (2,), (1,), (1,), True)[0]
    yield prims.avg_pool(prims.reshape(prims.neg(x), (1, 1, *x.shape)), (3, 3), (2, 3), (1, 1), False, False, None)

for dtype in (torch.float32, torch.float64, torch.bfloat16):
    for shape in ((1, 1), (1, 17), (5, 33), (64, 16), (3, 1000), (700, 3)):
        x = torch.randn(shape).to(dtype)
        trace = trace_of(lambda a: tuple(programs(a)), proxy_of(x, ""))
        runner = executor.runner(Region(trace.bound_symbols, trace.inputs, tuple(trace.outputs)), "guarded")
        made = runner(x)
        assert runner.prepared
        check_bounds(runner, [x], made)
print("touched nothing else", flush=True)
"""

TOUCHES = """
import ctypes
import torch
from guarded import Guarded
with Guarded({at_end}) as memory:
    x = memory.copy(torch.ones(1024))
    assert x.sum() == 1024
    print("within", flush=True)
    ctypes.string_at(x.data_ptr() + {byte}, 1)
"""

TESTS = Path(__file__).parent


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **environment}
    return subprocess.run(
        [sys.executable, *arguments],
        check=False,
        timeout=300,
        capture_output=True,
        text=True,
        cwd=TESTS,
        env=environment,
    )


@pytest.mark.parametrize("capability", ["avx2", "default", None])
def test_kernels_touch_nothing_outside_of_their_buffers(capability):
    done = run("-c", PROGRAM, **({"ATEN_CPU_CAPABILITY": capability} if capability else {}))
    assert done.returncode == 0 and "touched nothing else" in done.stdout, done.stderr[-2000:]


def test_random_programs_touch_nothing_else_either_and_give_the_same_by_any_number_of_threads():
    done = run(str(TESTS.parent / "tools" / "fuzz.py"), "60", "7000")
    assert done.returncode == 0 and "0 wrong" in done.stdout, done.stdout[-2000:] + done.stderr[-2000:]


@pytest.mark.parametrize(("at_end", "byte"), [(True, 4096), (False, -1)])
def test_who_touches_a_protected_page_does_not_get_away_with_it(at_end, byte):
    done = run("-c", TOUCHES.format(at_end=at_end, byte=byte))
    assert "within" in done.stdout and done.returncode == -signal.SIGSEGV
