"""Running a region: its kernels one after the other, on the tensors of a call."""

from __future__ import annotations

import hashlib
import linecache
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
import triton
import triton.language as tl

from thunder_executors_triton.fusion import mathematics
from thunder_executors_triton.fusion.render import Kernel
from thunder_executors_triton.fusion.tiles import Tile, tile_of
from thunder_executors_triton.kernels.choices import Choice
from thunder_executors_triton.kernels.tuning import choices_ahead, launch_tuned
from thunder_loops import Axis, Buffer, LoopProgram, sizes_of
from thunder_torch.convert import to_torch_dtype
from thunder_torch.fake_modes import fake_outputs
from thunder_torch.profiling import shown

ALIGNED = 16
"""Bytes: a compiled kernel may rely on tensors that begin at a multiple of them."""

MOST = 64
"""Plans that a region keeps; all are made again if there are more."""

WIDE = 2**31
"""Elements from which on places are counted in 64 bits."""


@cache
def compiled(name: str, text: str) -> Any:
    """Return Triton's function of a text, which stands where Triton looks for it."""
    filename = f"<thunder {name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    functions = {n: getattr(mathematics, n) for n in ("first_greatest", "greatest", "quotient", "root", "tangent")}
    scope: dict[str, Any] = {"triton": triton, "tl": tl, "__name__": "thunder.generated", **functions}
    exec(compile(text, filename, "exec"), scope)
    return scope[name]


def function_of(kernel: Kernel, looped: bool = False) -> tuple[str, Any]:
    """Return a kernel as Triton's function, and its name: that of its text, so that equal kernels are compiled once."""
    head, text = f"def {kernel.name}(", kernel.looped if looped else kernel.text
    name = f"triton_{hashlib.sha256(text.replace(head, '', 1).encode()).hexdigest()[:12]}"
    return name, compiled(name, text.replace(head, f"def {name}(", 1))


@dataclass(frozen=True, slots=True)
class Memory:
    """What is allocated for a buffer."""

    name: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype


class Launch:
    """A launch of one kernel on tensors of known sizes and strides.

    Args:
        kernel: what is launched.
        tile: how.
        arguments: what it takes, in order: numbers, and names of tensors.
        points: of its space.
    """

    def __init__(self, kernel: Kernel, tile: Tile, arguments: list[Any], points: int) -> None:
        self.name, self.function = function_of(kernel, tile.looped)
        self.tile = tile
        self.arguments = arguments
        self.points = points
        self.rows = bool(kernel.reduced)
        self.ready: Callable[..., None] | None = None
        self.rest: tuple[Any, ...] = ()

    def __call__(self, values: dict[str, Any]) -> None:
        given = [values[a] if isinstance(a, str) else a for a in self.arguments]
        if self.ready is not None:
            self.ready(*given, *self.rest)
            return
        like = next(a for a in given if isinstance(a, torch.Tensor))
        launch_tuned(self.name, self._size, like, self.tile.choices, lambda c: self._launch(given, c))

    def compile(self, values: dict[str, Any], device: int) -> None:
        """Compile what a launch will need.

        Args:
            values: as for a launch; a tensor's dtype in its place.
            device: index of the GPU.
        """
        given = [values[a] if isinstance(a, str) else a for a in self.arguments]
        dtype = next(a for a in given if isinstance(a, torch.dtype))
        for choice in choices_ahead(self.name, self._size, dtype, device, self.tile.choices):
            blocks, grid = self._shape(choice)
            self.function.warmup(*given, *blocks, grid=grid, num_warps=choice.warps, enable_fp_fusion=False)

    @property
    def _size(self) -> int:
        return self.tile.elements if self.rows else self.points

    def _shape(self, choice: Choice) -> tuple[tuple[int, ...], tuple[int, int, int]]:
        """Return the sizes of a program's block, and how many programs there are."""
        blocks = (self.tile.points, self.tile.elements) if self.rows else (choice.block,)
        return blocks, (-(-self.points // blocks[0]), 1, 1)

    def _launch(self, given: list[Any], choice: Choice) -> None:
        """Launch it by way of Triton, which compiles what is new to it."""
        blocks, grid = self._shape(choice)
        made = self.function[grid](*given, *blocks, num_warps=choice.warps, enable_fp_fusion=False)
        named = [v for a, v in zip(self.arguments, given, strict=True) if isinstance(a, str)]
        # a kernel is special for numbers that are 1 or divisible, and the next call's may be others
        if made is not None and all([isinstance(v, torch.Tensor) for v in named]):
            self.ready, self.rest = made[grid], blocks


@dataclass(frozen=True, slots=True)
class Plan:
    """How a region runs on tensors of known sizes and strides.

    Args:
        memory: what is allocated.
        checks: names of what is written where an index leads out of its tensor.
        checking: launches that write these.
        launches: those that come then.
    """

    memory: tuple[Memory, ...]
    checks: tuple[str, ...]
    checking: tuple[Launch, ...]
    launches: tuple[Launch, ...]


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
        self.kernels = tuple(kernels)
        self.eager = eager
        self.plans: dict[Any, Plan | None] = {}
        self.names = [b.name for b in program.inputs]
        self.outputs = [b.name for b in program.outputs]
        self.__name__ = program.name

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """Return the outputs."""
        return shown(self.__name__, self.compute, *inputs)

    def compute(self, *inputs: Any) -> tuple[Any, ...]:
        """Return the outputs, whoever watches."""
        key = tuple(
            [(t.shape, t.stride(), t.data_ptr() % ALIGNED) if isinstance(t, torch.Tensor) else None for t in inputs]
        )
        try:
            plan = self.plans[key]
        except KeyError:
            plan = self.plan(key, inputs)
        if plan is None:
            return tuple(self.eager(*inputs))
        if self.device.type == "cpu" or self.device.index in (None, torch.cuda.current_device()):
            return self._run(plan, inputs)
        with torch.cuda.device(self.device):
            return self._run(plan, inputs)

    def _run(self, plan: Plan, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        device, values = self.device, dict(zip(self.names, inputs, strict=True))
        for m in plan.memory:
            values[m.name] = torch.empty_strided(m.shape, m.strides, dtype=m.dtype, device=device)
        for name in plan.checks:
            values[name] = torch.zeros((), dtype=torch.bool, device=device)
        for launch in plan.checking:
            launch(values)
        for name in plan.checks:
            if device.type == "cpu" and values[name]:
                return tuple(self.eager(*inputs))  # which raises
            # an assertion of the device, as in PyTorch's own kernels that read at indices: nobody waits for it
            torch._assert_async(~values[name])
        for launch in plan.launches:
            launch(values)
        return tuple([values[name] for name in self.outputs])

    def ahead(self, inputs: Sequence[Any]) -> list[tuple[Launch, dict[str, Any]]]:
        """Return the launches that a call with fake tensors for inputs will make, and what each is compiled for."""
        key = tuple([(t.shape, t.stride(), 0) if isinstance(t, torch.Tensor) else None for t in inputs])
        plan = self.plans[key] if key in self.plans else self.plan(key, inputs)
        if plan is None:
            return []
        values = {n: t.dtype if isinstance(t, torch.Tensor) else t for n, t in zip(self.names, inputs, strict=True)}
        values |= {m.name: m.dtype for m in plan.memory} | dict.fromkeys(plan.checks, torch.bool)
        return [(launch, values) for launch in (*plan.checking, *plan.launches) if launch.ready is None]

    def plan(self, key: Any, inputs: Sequence[Any]) -> Plan | None:
        """Make and keep how the region runs on tensors like these; ``None`` where PyTorch runs it."""
        if len(self.plans) >= MOST:
            self.plans.clear()
        found = self.plans[key] = self._planned(inputs)
        return found

    def _planned(self, inputs: Sequence[Any]) -> Plan | None:
        program, sizes = self.program, sizes_of(self.program, *inputs)
        spaces = [(extent(k.free, sizes), extent(k.reduced, sizes)) for k in self.kernels]
        tiles = [tile_of(k, *space) if space[1] else None for k, space in zip(self.kernels, spaces, strict=True)]
        if None in tiles:
            return None
        memory = [
            Memory(b.name, b.shape_for(sizes), strides, to_torch_dtype(b.dtype))
            for b, strides in zip(program.outputs, self.output_strides(inputs), strict=True)
        ]
        memory += [_dense(b, sizes) for b in program.temporaries]
        lies = {m.name: (m.shape, m.strides) for m in memory} | {b.name: ((), ()) for b in program.checks}
        lies |= {n: (t.shape, t.stride()) for n, t in zip(self.names, inputs, strict=True) if hasattr(t, "stride")}
        wide = max(math.prod(s) for s in [*spaces, *[(reach(*each),) for each in lies.values()]]) >= WIDE
        launches = [
            [Launch(k, tile, _arguments(k, lies, sizes, points, wide), points)] if tile is not None and points else []
            for k, tile, (points, _) in zip(self.kernels, tiles, spaces, strict=True)
        ]
        parts = launches[: program.checking], launches[program.checking :]
        return Plan(tuple(memory), tuple([b.name for b in program.checks]), *[tuple(sum(p, [])) for p in parts])

    def output_strides(self, inputs: Sequence[Any]) -> list[tuple[int, ...]]:
        """Return how the outputs lie in memory: as PyTorch has them for inputs that lie like these."""
        return [tuple(t.stride()) for t in fake_outputs(self.eager, inputs)]


def extent(axes: Sequence[Axis], sizes: dict[str, int]) -> int:
    """Return how many points axes have."""
    return math.prod([sizes[a.size] if isinstance(a.size, str) else a.size for a in axes])


def reach(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Return how far the last element of a tensor lies from its first."""
    return sum([(size - 1) * step for size, step in zip(shape, strides, strict=True) if size])


def _dense(buffer: Buffer, sizes: dict[str, int]) -> Memory:
    shape = buffer.shape_for(sizes)
    return Memory(buffer.name, shape, torch.empty(shape, device="meta").stride(), to_torch_dtype(buffer.dtype))


def _arguments(
    kernel: Kernel, lies: dict[str, tuple[Any, Any]], sizes: dict[str, int], points: int, wide: bool
) -> list[Any]:
    """Return what a kernel takes; numbers of the call, whose strides are not known, have none."""
    taken = [a for name in kernel.buffers for a in (name, *lies.get(name, ((), ()))[1])]
    return [*taken, *[sizes[name] for name in kernel.sizes], points, wide]
