"""Running a region: memory for its outputs, and its kernels on that of its inputs."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import torch

from thunder_executors_llvm.kernels import Kernels
from thunder_executors_llvm.layouts import output_strides
from thunder_executors_llvm.support import KERNEL, Kernel, launcher
from thunder_executors_llvm.target import Target
from thunder_ir import Trace, dtypes
from thunder_loops import (
    GRAIN,
    Buffer,
    Launch,
    LoopPlan,
    LoopProgram,
    Schedule,
    may_overwrite,
    row_major_strides,
    schedule,
    sizes_of,
)
from thunder_torch.convert import to_torch_dtype
from thunder_torch.profiling import shown

PLAIN = frozenset({torch.Tensor, torch.nn.Parameter})
"""Classes of tensors that are nothing but memory."""

REMEMBERED = 256
"""Layouts of inputs for which a region knows how to run; beyond, those seen first are forgotten."""

_NOWHERE: Mapping[int, int] = MappingProxyType({})
_CODES = {dtypes.bool8: "b", dtypes.int64: "q", dtypes.float64: "d"}


@dataclass(frozen=True, slots=True)
class Step:
    """One kernel of a prepared call.

    Args:
        kernel: its address.
        alone: what runs it in this thread.
        buffers: positions of its buffers among those of the program.
        numbers: what it is told besides.
        address: of these.
        tasks: how many there are to do.
        threads: that are worth it, at most.
    """

    kernel: int
    alone: Kernel = field(repr=False)
    buffers: tuple[int, ...]
    numbers: array[int]
    address: int
    tasks: int
    threads: int


@dataclass(frozen=True, slots=True)
class Prepared:
    """How a region runs on inputs that lie in memory in a certain way.

    Args:
        made: shape, strides and dtype of each output and temporary, and last of each check.
        checks: the steps that come first, to write these.
        steps: those after them, in order.
        places: for numbers of outputs, those of inputs to whose memory they go.
        schedule: what the steps were made of, for readers.
    """

    made: tuple[tuple[tuple[int, ...], tuple[int, ...], torch.dtype], ...]
    checks: tuple[Step, ...]
    steps: tuple[Step, ...]
    places: Mapping[int, int]
    schedule: Schedule = field(repr=False)


class Runner:
    """Runs a region.

    Args:
        region: the first one of those that it runs, which compute the same.
        program: its loop nests.
        eager: computes its outputs by PyTorch, for tensors that are more than memory.
        keeps_rows: see :func:`keeps_rows`.
        kernels: where compiled ones are kept.
        target: what they are compiled for.
    """

    def __init__(
        self,
        region: Trace,
        program: LoopProgram,
        eager: Callable[..., Any],
        keeps_rows: frozenset[int] | None,
        kernels: Kernels,
        target: Target,
    ) -> None:
        self.region = region
        self.program = program
        self.eager = eager
        self.keeps_rows = keeps_rows
        self.kernels = kernels
        self.target = target
        self.prepared: dict[Any, Prepared] = {}
        self.reduces = any([nest.reduced for nest in program.nests])
        self.__name__ = program.name

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """Return the outputs."""
        return shown(self.__name__, self.compute, inputs, _NOWHERE)

    def compute(self, inputs: tuple[Any, ...], places: Mapping[int, int]) -> tuple[Any, ...]:
        """Return the outputs, some of them computed right into the memory of inputs.

        Args:
            inputs: tensors and numbers.
            places: for numbers of outputs, those of inputs that they may overwrite. What lies in memory such that an
                element is there twice, or is more than memory, is not overwritten.
        """
        found = look_at(inputs, self.program.inputs)
        prepared = self.known(found.signature, inputs, places) if found is not None else None
        if found is None or prepared is None:
            return tuple(self.eager(*inputs))
        addresses = found.addresses
        over = prepared.places
        outputs = [
            inputs[over[n]] if n in over else torch.empty_strided(shape, strides, dtype=dtype)
            for n, (shape, strides, dtype) in enumerate(prepared.made)
        ]
        addresses += [t.data_ptr() for t in outputs]
        if prepared.checks:
            self.run(prepared.checks, addresses)
            if any([t.item() for t in outputs[-len(self.program.checks) :]]):
                return tuple(self.eager(*inputs))  # which raises, or knows better
        self.run(prepared.steps, addresses)
        return tuple(outputs[: len(self.program.outputs)])

    def known(self, signature: Sequence[Any], inputs: tuple[Any, ...], places: Mapping[int, int]) -> Prepared | None:
        """Return how inputs that lie in memory in a certain way are run; ``None`` where PyTorch has to run them."""
        key = (*signature, *places.items()) if places else tuple(signature)
        prepared = self.prepared.get(key)
        if prepared is None:
            if self.reduces and any([0 in shape for shape in signature[::2]]):
                return None  # before a loop that is empty nothing may be read
            prepared = self.prepare(key, inputs, {o: i for o, i in places.items() if is_dense(inputs[i])})
        return prepared

    def run(self, steps: Sequence[Step], addresses: Sequence[int]) -> None:
        """Run kernels on buffers at these addresses."""
        available = torch.get_num_threads()
        for step in steps:
            pointers = array("q", [addresses[b] for b in step.buffers])
            place, _ = pointers.buffer_info()
            threads = min(available, step.threads)
            if threads == 1:  # nothing has to be dealt out, nor what does that to be compiled
                step.alone(place, step.address, 0, step.tasks)
            else:
                launcher()(step.kernel, place, step.address, step.tasks, threads)

    def prepare(self, key: Any, inputs: tuple[Any, ...], places: Mapping[int, int] = _NOWHERE) -> Prepared:
        """Plan, compile what is new, and remember how inputs that lie like these are run."""
        program = self.program
        sizes = sizes_of(self.program, *inputs)
        strides = {b.name: tuple(t.stride()) for b, t in zip(program.inputs, inputs, strict=True) if not b.is_number}
        strides |= {b.name: () for b in program.inputs if b.is_number}
        shapes = {b.name: b.shape_for(sizes) for b in (*program.outputs, *program.temporaries, *program.checks)}
        wanted = output_strides(self.keeps_rows, inputs, [shapes[b.name] for b in program.outputs], self.eager)
        strides |= {b.name: s for b, s in zip(program.outputs, wanted, strict=True)}
        strides |= {program.outputs[o].name: tuple(inputs[i].stride()) for o, i in places.items()}
        strides |= {b.name: row_major_strides(shapes[b.name]) for b in (*program.temporaries, *program.checks)}
        found = schedule(program, sizes, strides)
        shapes |= {b.name: b.shape_for(sizes) for b in found.partial}
        strides |= {b.name: row_major_strides(shapes[b.name]) for b in found.partial}
        self.kernels.make_ready([made for made, launch in found.steps if launch.tasks], self.target)
        between = (*program.temporaries, *found.partial, *program.checks)
        order = {b.name: n for n, b in enumerate((*program.inputs, *program.outputs, *between))}
        checks, steps = (
            tuple([self.step(made, launch, order) for made, launch in some if launch.tasks])
            for some in (found.steps[: found.checking], found.steps[found.checking :])
        )
        made = tuple([(shapes[b.name], strides[b.name], to_torch_dtype(b.dtype)) for b in (*program.outputs, *between)])
        prepared = Prepared(made, checks, steps, places, found)
        if len(self.prepared) >= REMEMBERED:
            self.prepared.pop(next(iter(self.prepared)), None)
        self.prepared[key] = prepared
        return prepared

    def step(self, made: LoopPlan, launch: Launch, order: dict[str, int]) -> Step:
        """Return the step that runs a plan."""
        numbers = array("q", [*launch.sizes, launch.block, *[n for walk in launch.walks for n in walk]])
        kernel = self.kernels.address(made, self.target)
        return Step(
            kernel,
            KERNEL(kernel),
            tuple([order[name] for name in launch.buffers]),
            numbers,
            numbers.buffer_info()[0],
            launch.tasks,
            min(launch.tasks, 1 + launch.elements // GRAIN),
        )


@dataclass(slots=True)
class Seen:
    """What inputs are.

    Args:
        signature: shape and strides of each tensor, one after the other.
        addresses: of the memory of each input.
        numbers: which hold the values of those that are numbers.
    """

    signature: list[Any]
    addresses: list[int]
    numbers: list[array[Any]]


def look_at(inputs: Sequence[Any], buffers: Sequence[Buffer]) -> Seen | None:
    """Return what inputs are; ``None`` where one is more than memory."""
    signature: list[Any] = []
    addresses: list[int] = []
    held: list[array[Any]] = []
    for value, buffer in zip(inputs, buffers, strict=True):
        if buffer.is_number:
            number = array(_CODES[buffer.dtype], [value])
            held.append(number)
            addresses.append(number.buffer_info()[0])
        elif value.__class__ not in PLAIN or value.is_neg():
            return None
        else:
            signature.append(value.shape)
            signature.append(value.stride())
            addresses.append(value.data_ptr())
    return Seen(signature, addresses, held)


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether each element of a tensor has a place in memory of its own, with none between them."""
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size != 1:
            if stride != expected:
                return False
            expected *= size
    return True


@dataclass(frozen=True, slots=True)
class Overwriting:
    """Runs a region whose outputs go to the memory of inputs.

    Args:
        runner: of the region.
        places: for numbers of outputs, those of inputs.
    """

    runner: Runner
    places: Mapping[int, int]

    @property
    def region(self) -> Trace:
        """See :class:`Runner`."""
        return self.runner.region

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """Return the outputs."""
        return shown(self.runner.__name__, self.runner.compute, inputs, self.places)

    def with_place(self, output: int, source: int) -> Overwriting | None:
        """Return what writes one more output to an input; ``None`` where something would be read after that."""
        program = self.runner.program
        names = program.outputs[output].name, program.inputs[source].name
        if source in self.places.values() or not may_overwrite(program, *names):
            return None
        return Overwriting(self.runner, MappingProxyType({**self.places, output: source}))
