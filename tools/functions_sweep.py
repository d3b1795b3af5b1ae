"""Compare PyTorch's operations under transforms of ``torch.func`` inside of programs with what eager makes of them.

Usage: functions_sweep.py [start of a name ...]

The random generator is seeded before each call on both sides.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from opinfo import op_db
from opinfo_sweep import UNWRITTEN
from torch.func import grad, jvp, vmap
from torch.utils import _pytree as pytree

from thunder_frontend import jit

Function = Callable[[torch.Tensor], Any]


def tensors(tree: Any) -> tuple[torch.Tensor, ...]:
    """Return the tensors in a tree, in order."""
    return tuple([t for t in pytree.tree_leaves(tree) if isinstance(t, torch.Tensor)])


def programs(function: Function) -> dict[str, Function]:
    """Return programs that take a batch of two and transform ``function``."""

    def total(t: torch.Tensor) -> Any:
        found = [o.abs() if o.is_complex() else o for o in tensors(function(t))]
        return sum([o.sum() for o in found if o.is_floating_point()])

    return {
        "vmap": lambda batch: vmap(lambda t: tensors(function(t)))(batch),
        "vmap of grad": lambda batch: vmap(grad(total))(batch),
        "jvp": lambda batch: jvp(lambda t: tensors(function(t)), (batch[0],), (batch[1],)),
        "jvp of grad": lambda batch: jvp(grad(total), (batch[0],), (batch[1],)),
    }


def batches(op: Any) -> Iterator[tuple[Function, torch.Tensor]]:
    """Return an operation as a function of its first argument, with two examples of that."""
    for sample in list(op.sample_inputs("cpu", torch.float32))[:4]:
        first = sample.input
        if not isinstance(first, torch.Tensor) or first.layout is not torch.strided or not first.is_floating_point():
            continue
        if 0 < first.numel() < 500:
            other = first.flip(0) if first.ndim else first * 0.9
            yield (lambda t, s=sample: op(t, *s.args, **s.kwargs)), torch.stack([first, other])


def compared(op: Any) -> Iterator[tuple[str, str]]:
    """Compare an operation; return for each program what is wrong with it, nothing if it is right."""
    done = set()
    for function, batch in batches(op):
        for name, program in programs(function).items():
            if name in done:
                continue
            try:
                torch.manual_seed(0)
                expected = program(batch)
            except Exception:  # what PyTorch refuses is not compared
                continue
            done.add(name)
            try:
                torch.manual_seed(0)
                torch.testing.assert_close(jit(program)(batch), expected, equal_nan=True, rtol=1e-3, atol=1e-3)
                yield name, ""
            except Exception as error:  # counted, and printed
                yield name, f"{type(error).__name__}: {str(error).splitlines()[0]}"


def main(names: list[str]) -> int:
    """Compare all operations whose names start with one of ``names``."""
    warnings.simplefilter("ignore")
    right = wrong = 0
    for op in op_db:
        asked = not names or op.name.startswith(tuple(names))
        if torch.float32 not in op.dtypes or op.name in UNWRITTEN or not asked:
            continue
        for program, problem in compared(op):
            right, wrong = right + (not problem), wrong + bool(problem)
            if problem:
                print(f"{program} of {op.name} {op.variant_test_name}: {problem}")
    print(f"{right} of {right + wrong} right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
