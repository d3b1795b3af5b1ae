"""Running several regions at once: one call of native code deals the tasks of all of them out to threads."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import torch

from thunder_executors_llvm.runner import REMEMBERED, Overwriting, Prepared, Step, look_at
from thunder_executors_llvm.support import several_launcher
from thunder_torch.profiling import shown

try:
    from torch._C._dynamo.guards import TensorGuards
except ImportError:  # a PyTorch without it
    TensorGuards = None  # type: ignore[assignment, misc]


@dataclass(frozen=True, slots=True)
class Part:
    """One of the regions.

    Args:
        run: what runs it alone.
        reads: its inputs, by their positions among those of all.
    """

    run: Overwriting
    reads: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Round:
    """Kernels of several regions, none of which needs what another one writes.

    Args:
        jobs: four words for each, see :func:`several_launcher`.
        count: how many there are.
        pointers: picks the addresses of their buffers from those of all.
        tasks: how many there are in all.
        threads: that are worth it, at most.
    """

    jobs: array[int]
    count: int
    pointers: Callable[[Sequence[int]], tuple[int, ...]]
    tasks: int
    threads: int


@dataclass(frozen=True, slots=True)
class Together:
    """How inputs that lie in memory in a certain way are run.

    Args:
        lie_so: tells of tensors whether they are such ones.
        made: shape, strides and dtype of outputs and temporaries.
        outputs: picks what is returned from the inputs with these after them.
        rounds: what runs, in order.
        prepared: of each region alone, which has the numbers that kernels read.
    """

    lie_so: Callable[..., bool]
    made: tuple[tuple[tuple[int, ...], tuple[int, ...], torch.dtype], ...]
    outputs: Callable[[Sequence[Any]], tuple[Any, ...]]
    rounds: tuple[Round, ...]
    prepared: tuple[Prepared, ...]


class Several:
    """Runs regions that do not depend on each other, none of which checks indices.

    Args:
        name: of all of them.
        parts: the regions, which read tensors and no numbers.
    """

    def __init__(self, name: str, parts: Sequence[Part]) -> None:
        self.__name__ = name
        self.parts = tuple(parts)
        self.last: Together | None = None
        self.prepared: dict[Any, Together] = {}

    def __call__(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the outputs of all."""
        return shown(self.__name__, self.compute, tensors)

    def compute(self, tensors: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        """Return the outputs, those of one region after those of another."""
        found = self.last
        if found is None or not found.lie_so(*tensors):
            found = self.last = self.known(tensors)
        if found is None:
            return tuple([made for p in self.parts for made in p.run(*[tensors[at] for at in p.reads])])
        made = [torch.empty_strided(shape, strides, dtype=dtype) for shape, strides, dtype in found.made]
        addresses = [t.data_ptr() for t in tensors]
        addresses += [t.data_ptr() for t in made]
        launch, available = several_launcher(), torch.get_num_threads()
        for one in found.rounds:
            pointers = array("q", one.pointers(addresses))
            jobs, threads = one.jobs.buffer_info()[0], min(available, one.threads)
            launch(jobs, one.count, pointers.buffer_info()[0], one.tasks, threads)
        return found.outputs((*tensors, *made))

    def known(self, tensors: tuple[torch.Tensor, ...]) -> Together | None:
        """Return how tensors that lie like these are run; ``None`` where PyTorch runs one of the regions."""
        alone = [self.alone(part, tensors) for part in self.parts]
        prepared = tuple([one for one in alone if one is not None])
        if len(prepared) < len(alone):
            return None
        key = tuple(map(id, prepared))
        if key not in self.prepared:
            if len(self.prepared) >= REMEMBERED:
                self.prepared.pop(next(iter(self.prepared)), None)
            self.prepared[key] = together(self.parts, prepared, tensors)
        return self.prepared[key]

    def alone(self, part: Part, tensors: tuple[torch.Tensor, ...]) -> Prepared | None:
        """Return how one region runs on its inputs."""
        run, mine = part.run.runner, tuple([tensors[at] for at in part.reads])
        seen = look_at(mine, run.program.inputs)
        return run.known(seen.signature, mine, part.run.places) if seen is not None else None


def together(parts: Sequence[Part], prepared: tuple[Prepared, ...], tensors: Sequence[torch.Tensor]) -> Together:
    """Return how regions run at once that are prepared to run alone."""
    made: list[tuple[tuple[int, ...], tuple[int, ...], torch.dtype]] = []
    outputs: list[int] = []
    buffers: list[tuple[int, ...]] = []
    for part, one in zip(parts, prepared, strict=True):
        written = []
        for n, new in enumerate(one.made):
            if n in one.places:
                written.append(part.reads[one.places[n]])
            else:
                written.append(len(tensors) + len(made))
                made.append(new)
        outputs += written[: len(part.run.runner.program.outputs)]
        buffers.append((*part.reads, *written))
    rounds = []
    for n in range(max([len(one.steps) for one in prepared])):
        due = [(one.steps[n], mine) for one, mine in zip(prepared, buffers, strict=True) if n < len(one.steps)]
        rounds.append(at_once(due))
    return Together(checker(tensors), tuple(made), picker(outputs), tuple(rounds), prepared)


def at_once(steps: Sequence[tuple[Step, tuple[int, ...]]]) -> Round:
    """Return the round of steps, each with where the buffers of its region are among all."""
    jobs = array("q")
    places: list[int] = []
    for step, buffers in steps:
        jobs.extend((step.kernel, len(places), step.address, step.tasks))
        places += [buffers[b] for b in step.buffers]
    threads = 1 + sum([step.threads - 1 for step, _ in steps])
    return Round(jobs, len(steps), picker(places), sum([step.tasks for step, _ in steps]), threads)


def picker(places: Sequence[int]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """Return what takes items from a sequence."""
    return itemgetter(*places) if len(places) > 1 else lambda items: tuple([items[at] for at in places])


def checker(tensors: Sequence[torch.Tensor]) -> Callable[..., bool]:
    """Return what tells whether tensors are of the classes, dtypes, sizes and strides of these, and no other views.

    It is asked before anything else is found out, and may answer no.
    """
    if TensorGuards is None:
        return lambda *others: False
    shapes: Any = [list(t.shape) for t in tensors]
    strides: Any = [list(t.stride()) for t in tensors]
    same: Callable[..., bool] = TensorGuards(*tensors, dynamic_dims_sizes=shapes, dynamic_dims_strides=strides).check
    return same
