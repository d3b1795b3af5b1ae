"""Running a region: its kernels one after the other, on the tensors of a call."""

from __future__ import annotations

import itertools
import linecache
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from thunder_executors_triton.fusion import mathematics
from thunder_executors_triton.fusion.render import Kernel
from thunder_executors_triton.kernels.launch import block_of
from thunder_executors_triton.kernels.tuning import OF_ELEMENTS, Choice, launch_tuned, of_rows
from thunder_loops import Axis, LoopProgram, sizes_of
from thunder_torch.convert import to_torch_dtype
from thunder_torch.fake_modes import fake_outputs
from thunder_torch.profiling import shown

LONGEST = 16_384  # elements of a row that a program holds in registers
_NUMBERS = itertools.count()


def compiled(kernel: Kernel) -> Any:
    """Return the kernel as Triton's function; its text is where Triton looks for it."""
    filename = f"<thunder triton {kernel.name} {next(_NUMBERS)}>"
    linecache.cache[filename] = (len(kernel.text), None, kernel.text.splitlines(keepends=True), filename)
    functions = {
        name: getattr(mathematics, name) for name in ("first_greatest", "greatest", "quotient", "root", "tangent")
    }
    scope: dict[str, Any] = {"triton": triton, "tl": tl, "__name__": "thunder.generated", **functions}
    exec(compile(kernel.text, filename, "exec"), scope)
    return scope[kernel.name]


class Runner:
    """Runs a region.

    Args:
        program: its loop nests.
        kernels: one for each nest.
        eager: computes the outputs by PyTorch: what is too long for a row, or empty, and how outputs lie in memory.
        device: of the outputs.
    """

    def __init__(
        self, program: LoopProgram, kernels: Sequence[Kernel], eager: Callable[..., Any], device: torch.device
    ) -> None:
        self.program = program
        self.device = device
        self.kernels = [(kernel, compiled(kernel), kernel.digest) for kernel in kernels]
        self.eager = eager
        self.strides: dict[Any, list[tuple[int, ...]]] = {}
        self.__name__ = program.name

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """Return the outputs."""
        return shown(self.__name__, self.compute, *inputs)

    def compute(self, *inputs: Any) -> tuple[Any, ...]:
        """Return the outputs, whoever watches."""
        sizes = sizes_of(self.program, *inputs)
        if any(not 0 < extent(kernel.reduced, sizes) <= LONGEST for kernel, *_ in self.kernels if kernel.reduced):
            return tuple(self.eager(*inputs))
        device = self.device
        values = dict(zip([b.name for b in self.program.inputs], inputs, strict=True))
        for buffer, strides in zip(self.program.outputs, self.output_strides(inputs), strict=True):
            values[buffer.name] = torch.empty_strided(
                buffer.shape_for(sizes), strides, dtype=to_torch_dtype(buffer.dtype), device=device
            )
        for buffer in self.program.temporaries:
            values[buffer.name] = torch.empty(
                buffer.shape_for(sizes), dtype=to_torch_dtype(buffer.dtype), device=device
            )
        for buffer in self.program.checks:
            values[buffer.name] = torch.zeros((), dtype=torch.bool, device=device)
        first = self.program.checking
        for kernel, function, digest in self.kernels[:first]:
            launch(kernel, function, digest, values, sizes)
        for buffer in self.program.checks:
            if device.type == "cpu" and values[buffer.name]:
                return tuple(self.eager(*inputs))  # which raises
            # an assertion of the device, as in PyTorch's own kernels that read at indices: nobody waits for it
            torch._assert_async(~values[buffer.name])
        for kernel, function, digest in self.kernels[first:]:
            launch(kernel, function, digest, values, sizes)
        return tuple([values[b.name] for b in self.program.outputs])

    def output_strides(self, inputs: tuple[Any, ...]) -> list[tuple[int, ...]]:
        """Return how the outputs lie in memory: as PyTorch has them for inputs that lie like these."""
        key = tuple([(t.shape, t.stride()) if isinstance(t, torch.Tensor) else None for t in inputs])
        found = self.strides.get(key)
        if found is None:
            found = self.strides[key] = [tuple(t.stride()) for t in fake_outputs(self.eager, inputs)]
        return found


def launch(kernel: Kernel, function: Any, digest: str, values: dict[str, Any], sizes: dict[str, int]) -> None:
    """Launch one kernel on the tensors of a call."""
    total = extent(kernel.free, sizes)
    if not total:
        return
    arguments: list[Any] = []
    for name in kernel.buffers:
        value = values[name]
        arguments += [value, *(value.stride() if isinstance(value, torch.Tensor) else ())]
    arguments += [sizes[name] for name in kernel.sizes]
    row = extent(kernel.reduced, sizes) if kernel.reduced else 0
    choices = of_rows(block_of(row, LONGEST)) if row else OF_ELEMENTS

    def run(c: Choice) -> None:
        grid = total if row else -(-total // c.block)
        function[(grid,)](*arguments, total, BLOCK=c.block, num_warps=c.warps, enable_fp_fusion=False)

    like = next(a for a in arguments if isinstance(a, torch.Tensor))
    launch_tuned(digest, row or total, like, choices, run)


def extent(axes: Sequence[Axis], sizes: dict[str, int]) -> int:
    """Return how many points axes have."""
    return math.prod([sizes[a.size] if isinstance(a.size, str) else a.size for a in axes])
