"""Kernels of regions that are compiled before a program runs; Triton compiles for a GPU that is not here."""

import os
import subprocess
import sys

COMPILES = """
import contextlib
import threading

import torch
import triton
from triton.backends.compiler import GPUTarget

import thunder_torch as ltorch
from thunder_executors import execution_traces
from thunder_executors_triton.fusion import ahead
from thunder_executors_triton.fusion.runner import Runner
from thunder_executors_triton.fusion_executor import TritonFusionExecutor
from thunder_executors_triton.kernels import tuning
from thunder_ir import Tensor, devices, trace_of


class Stub:
    "A driver without a device."

    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 0


triton.runtime.driver.set_active(Stub())
torch.cuda.device = lambda index: contextlib.nullcontext()
torch.cuda.current_device = lambda: 0
tuning._device = lambda index: "a stub"


def program(x, w):
    y = x.softmax(-1) * 2
    z = (y.transpose(0, 1) @ w).tanh() + 1
    return (z @ w.sum(0)).exp() * 3


cuda = devices.device("cuda:0")
examples = Tensor((64, 32), device=cuda), Tensor((64, 64), device=cuda)
executor = TritonFusionExecutor("mine", checks=False)
trace = execution_traces(trace_of(program, *examples, language=ltorch.torch_language), [executor, "torch"])[-1]
runners = [b.symbol.implementation for b in trace.bound_symbols if isinstance(b.symbol.implementation, Runner)]
threads, compile_one = set(), triton.compile


def counted(*args, **kwargs):
    threads.add(threading.get_ident())
    return compile_one(*args, **kwargs)


ahead.compile_together(trace)
launches = [launch for r in runners for plan in r.plans.values() for launch in plan.launches]
made = [kernel for launch in launches for kernel in launch.function.device_caches[0][0].values()]
assert len(runners) == 3 and len(launches) >= 3 and len(made) >= 3, (runners, launches, made)
assert all("cubin" in kernel.asm for kernel in made)
# tensors at addresses that are multiples of 16, as allocators give them, need no other kernel
for runner in runners:
    (key, plan), = runner.plans.items()
    values = {n: torch.empty_strided(*k[:2]) for n, k in zip(runner.names, key, strict=True)}
    values |= {m.name: torch.empty_strided(m.shape, m.strides, dtype=m.dtype) for m in plan.memory}
    for launch in plan.launches:
        given = [values[a] if isinstance(a, str) else a for a in launch.arguments]
        choice = launch.tile.choices[0]
        blocks, grid = launch._shape(choice)
        launch.function.warmup(*given, *blocks, grid=grid, num_warps=choice.warps, enable_fp_fusion=False)
after = [kernel for launch in launches for kernel in launch.function.device_caches[0][0].values()]
assert len(after) == len(made), (made, after)
print("compiled", len(made))
"""


def test_the_kernels_of_a_program_are_compiled_as_its_first_call_will_need_them(tmp_path):
    variables = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    variables |= {"TRITON_CACHE_DIR": str(tmp_path), "THUNDER_TRITON_TABLE": ""}
    done = subprocess.run([sys.executable, "-c", COMPILES], capture_output=True, text=True, env=variables, check=False)
    assert done.returncode == 0 and done.stdout.startswith("compiled"), done.stderr
