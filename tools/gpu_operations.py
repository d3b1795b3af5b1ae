"""Parts of `tools/gpu.py`: single operations, by samples of ours and of PyTorch's own database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from gpu_machine import Check, Machine, NotHere

from thunder_executors import Executor, FusionExecutor, get_executor, to_callable
from thunder_ir import Symbol, device
from thunder_testing import check_conformance, sampled_symbols

FEW = 12
"""Operations that are enough for a rehearsal."""
FUSING = ("torch", "nvfuser", "triton_fusion")
UNSET = ("torch.ops.aten._flash_attention_forward", "torch.ops.aten._efficient_attention_forward")
"""Operations that return the state of random numbers of which none was drawn: what lay in memory."""
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
SAMPLES = 2


def conformance(machine: Machine) -> Iterator[Check]:
    """Every sample of every prim against the reference, by PyTorch's executor and by those that fuse."""
    symbols = sampled_symbols()[:: len(sampled_symbols()) // FEW if machine.rehearsed else 1]
    for name in FUSING:
        if name in machine.able():
            for symbol in symbols:
                yield Check(f"{name}: {symbol.id}", partial(_conforms, machine, name, symbol))


def _conforms(machine: Machine, name: str, symbol: Symbol) -> str:
    executors = [_alone(name), *([_alone("torch")] if name != "torch" else [])]
    count = check_conformance(
        symbol,
        compile=lambda trace: to_callable(trace, executors),
        to_device=lambda array: torch.from_numpy(np.array(array)).to(machine.device),
        to_numpy=lambda tensor: tensor.cpu().numpy(),
        device=device(str(machine.device)),
    )
    return f"{count} samples"


def _alone(name: str) -> Executor:
    """Return an executor that takes regions of one operation, too; this process is used for nothing else."""
    found = get_executor(name)
    assert found is not None
    if isinstance(found, FusionExecutor):
        found.smallest_region = 1
    return found


def opinfo(machine: Machine) -> Iterator[Check]:
    """PyTorch's samples of its operations, compiled with the default executors, against eager on the device."""
    try:
        sweeps = __import__("opinfo_sweep")
    except ImportError as error:  # PyTorch's database needs what its wheels do not bring
        reason = f"PyTorch's database of operations: {error}"
        yield Check("opinfo", partial(_not_here, reason))
        return
    options = sweeps.parsed(["--jit", "--samples", str(SAMPLES), "--device", str(machine.device)])
    sweep, operations = sweeps.Sweep(options), [op for op in sweeps.chosen([]) if sweeps.named(op) not in UNSET]
    for op in operations[:: len(operations) // FEW if machine.rehearsed else 1]:
        for dtype in DTYPES:
            claimed = op.dtypes if machine.rehearsed else op.dtypesIfCUDA
            if dtype in claimed:
                name = f"{sweeps.named(op)}, {str(dtype).removeprefix('torch.')}"
                yield Check(name, partial(_sampled, sweeps, sweep, op, dtype), limit=60.0)


def _not_here(reason: str) -> str:
    raise NotHere(reason)


def _sampled(sweeps: Any, sweep: Any, op: Any, dtype: torch.dtype) -> str:
    report = sweeps.Report(sweeps.named(op))
    sweep.of_dtype(op, dtype, report)
    counts: Counter[str] = report.counts
    told = ", ".join(f"{n} {outcome}" for outcome, n in counts.items()) or "no samples"
    assert not counts["wrong"] and not counts["raised"], f"{told}: {report.first}"
    return told
