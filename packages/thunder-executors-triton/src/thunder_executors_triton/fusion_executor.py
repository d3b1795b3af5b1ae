"""The fusion executor: regions of a program as kernels that are written for them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch

from thunder_executors import Declined, Finish, FusionExecutor, Region, to_callable
from thunder_executors_triton._version import __version__
from thunder_executors_triton.availability import missing
from thunder_executors_triton.executor import fits
from thunder_executors_triton.fusion.render import render
from thunder_ir import BoundSymbol, Proxy, TensorProxy, Trace, dtypes
from thunder_ir.passes import expand
from thunder_loops import POOLING, CannotLower, LoopProgram, lower, moves_only, parts_of
from thunder_torch.convert import to_torch_device

ACCUMULATE = {dtypes.float16: dtypes.float32, dtypes.bfloat16: dtypes.float32}
"""In which dtype elements are added up: GPUs are slow in double precision."""


class TritonFusionExecutor(FusionExecutor):
    """Runs regions as kernels of Triton, one for each loop nest."""

    def can_fuse(self, bound: BoundSymbol) -> bool | Declined:
        tensors = [p for p in (*bound.inputs, *bound.outputs) if isinstance(p, TensorProxy)]
        if not bound.outputs or not all(isinstance(p, TensorProxy) for p in bound.outputs):
            return Declined("its results are no tensors")
        answer = fits(*tensors)
        if not answer:
            return answer
        inputs = tuple({p.name: p for p in bound.inputs}.values())
        call = expand(Trace("call", inputs, (bound,), bound.outputs))
        if not POOLING.isdisjoint([b.symbol for b in call.bound_symbols]):
            return Declined("PyTorch has kernels for pooling")
        try:
            _rendered(lower(call, ACCUMULATE))
        except CannotLower as error:
            return Declined(str(error))
        return True

    def fuse(self, region: Region, name: str) -> list[BoundSymbol] | None:
        parts = parts_of(region)
        if not parts.outputs or sum(not moves_only(b) for b in parts.inside) < self.smallest_region:
            return None
        made = {p.name for b in parts.inside for p in b.outputs}
        inputs: dict[str, Proxy] = {p.name: p for b in parts.inside for p in b.inputs if p.name not in made}
        inner = Region(parts.inside, tuple(inputs.values()), parts.outputs)
        try:
            program = lower(expand(inner.trace(name)), ACCUMULATE)
            kernels = _rendered(program)
        except CannotLower:
            return None  # each call has its kernel, all of them together have none
        runner: Any = import_module("thunder_executors_triton.fusion.runner")
        device = next(to_torch_device(p.device) for p in parts.outputs if isinstance(p, TensorProxy))
        run = runner.Runner(program, kernels, to_callable(inner.trace(name), []), device)
        return [self.fused(inner, name, run), *parts.views]


def compile_together(trace: Trace) -> Trace:
    """Compile the kernels of a program's regions, in parallel; return the program as it is."""
    if sum([b.symbol.executor is fusion_executor for b in trace.bound_symbols]) > 1 and torch.cuda.is_available():
        ahead: Any = import_module("thunder_executors_triton.fusion.ahead")  # here: Triton takes a second to import
        ahead.compile_together(trace)
    return trace


def _rendered(program: LoopProgram) -> list[Any]:
    return [render(program, position) for position in range(len(program.nests))]


fusion_executor = TritonFusionExecutor(
    "triton_fusion",
    version=__version__,
    missing=missing,
    install="pip install 'thunder-executors-triton[triton]'",
    default=False,
    priority=5,
    checks=False,
)
fusion_executor.finishing.append(Finish(compile_together, fewest=2))
