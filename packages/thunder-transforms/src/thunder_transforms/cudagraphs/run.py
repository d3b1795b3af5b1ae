"""A run of calls that is recorded when it was run a few times, and replayed from then on."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from thunder_transforms.cudagraphs.memory import Loans, Results
from thunder_transforms.cudagraphs.recorder import CaptureError, Recorder, Recording

Function = Callable[..., Sequence[torch.Tensor]]
Key = tuple[Any, ...]
MOST_MOVES = 4
"""How often an input may be found at another address before it is copied to one that stays."""


@dataclass(slots=True, eq=False)
class Graph:
    """A recording, and what it reads.

    Args:
        recording: of the run.
        results: where its outputs lie.
        copies: of the inputs that do not stay where they are, by position, which it reads in place of them.
        queue: that it was recorded on.
        number: of what it lends.
    """

    recording: Recording
    results: Results
    copies: dict[int, torch.Tensor]
    queue: Hashable
    number: int


@dataclass(slots=True, eq=False)
class Seen:
    """What is known of inputs of one kind: their shapes, strides, dtypes, and numbers.

    Args:
        addresses: of each tensor, in the latest call.
        calls: how many there were.
        moves: of each tensor, how often it came with another address than before.
        copied: of each tensor, whether it is copied to memory that stays, as it moves.
        graphs: by the addresses of the inputs that are not copied.
    """

    addresses: tuple[int, ...]
    calls: int = 0
    moves: list[int] = field(default_factory=list)
    copied: list[bool] = field(default_factory=list)
    graphs: OrderedDict[Key, Graph] = field(default_factory=OrderedDict)


class GraphRun:
    """Runs calls as one graph.

    While one graph of a recorder is recorded or replayed, in whatever thread, others run their calls without one.
    Inputs that come with the same address call after call, as parameters do, are read where they are; the address is
    part of the graph's key. Others are copied to memory that stays. Results are copied out of the graph's memory, so
    that they are the caller's; those that are views of inputs are views of this call's. Results that only later runs of
    the program read, or its backward part, are lent: their memory is handed out, and another graph may read it where it
    is. While user code has some of it that a replay would overwrite, as where a program is called twice before its
    backward part, the calls run without a graph.

    Args:
        function: the run.
        recorder: what records it.
        warm_ups: calls of one kind of inputs before it is recorded.
        most: graphs that are kept; the one that was used longest ago goes first.
        lends: positions of results that are lent.
        loans: those of all graphs that share memory.
    """

    def __init__(
        self, function: Function, recorder: Recorder, warm_ups: int = 2, most: int = 16, lends: Collection[int] = (),
        loans: Loans | None = None,
    ) -> None:  # fmt: skip
        self.__name__ = getattr(function, "__name__", "run")
        self.function = function
        self.recorder = recorder
        self.warm_ups = warm_ups
        self.most = most
        self.lends = frozenset(lends)
        self.loans = Loans() if loans is None else loans
        self.reason = ""  # why it is recorded no more
        self.recorded = self.replayed = 0
        self._seen: dict[Key, Seen] = {}

    def __call__(self, *inputs: Any) -> tuple[torch.Tensor, ...]:
        """Return the outputs."""
        lock = self.recorder.lock  # of all graphs that share memory, which this one's replay overwrites
        if self.reason or not self._can_read(inputs):
            return tuple(self.function(*inputs))
        if not lock.acquire(blocking=False):  # by another thread, or by this one further out
            return tuple(self.function(*inputs))
        try:
            return self._run(inputs)
        finally:
            lock.release()

    def _can_read(self, inputs: tuple[Any, ...]) -> bool:
        """Whether a graph would read the inputs: what lies on another device is read once, while it is recorded."""
        wanted = self.recorder.device_type
        return all([not isinstance(value, torch.Tensor) or value.device.type == wanted for value in inputs])

    def _run(self, inputs: tuple[Any, ...]) -> tuple[torch.Tensor, ...]:
        addresses = tuple([t.data_ptr() for t in inputs if isinstance(t, torch.Tensor)])
        borrowed = tuple([self.loans.has(a) for a in addresses])
        queue = self.recorder.queue()
        key = (queue, borrowed, *[_kind(value) for value in inputs])
        seen = self._seen.get(key)
        if seen is None:
            if len(self._seen) >= self.most:
                for old in self._seen.pop(next(iter(self._seen))).graphs.values():
                    self.loans.drop(old.queue, old.number)
            seen = self._seen[key] = Seen(addresses, moves=[0] * len(addresses), copied=[False] * len(addresses))
        seen.moves = [
            m + (a != b and not stays)
            for m, a, b, stays in zip(seen.moves, addresses, seen.addresses, borrowed, strict=True)
        ]
        seen.addresses = addresses
        seen.calls += 1
        if seen.calls <= self.warm_ups:
            return tuple(self.recorder.warm_up(self.function, inputs))
        bound = 1 if seen.calls == self.warm_ups + 1 else MOST_MOVES
        seen.copied = [c or m >= bound for c, m in zip(seen.copied, seen.moves, strict=True)]
        place = tuple([None if c else a for a, c in zip(addresses, seen.copied, strict=True)])
        graph = seen.graphs.get(place)
        if graph is None:
            graph = self._recorded(inputs, seen.copied)
            if graph is None:
                return tuple(self.function(*inputs))
            self._keep(seen, place, graph)
        else:
            seen.graphs.move_to_end(place)
        if self.loans.are_read(queue, graph.number):
            return tuple(self.function(*inputs))
        return self._replay(graph, inputs)

    def _keep(self, seen: Seen, place: Key, graph: Graph) -> None:
        seen.graphs[place] = graph
        if sum([len(s.graphs) for s in self._seen.values()]) > self.most:
            _, oldest = next(s for s in self._seen.values() if s.graphs).graphs.popitem(last=False)
            self.loans.drop(oldest.queue, oldest.number)

    def _recorded(self, inputs: tuple[Any, ...], moving: list[bool]) -> Graph | None:
        tensors = [i for i, value in enumerate(inputs) if isinstance(value, torch.Tensor)]
        copied = [i for i, moves in zip(tensors, moving, strict=True) if moves]
        read = [_copy(value) if i in copied else value for i, value in enumerate(inputs)]
        try:
            recording = self.recorder.record(self.function, read)
        except CaptureError as error:
            self.reason = str(error)
            return None
        results = Results.of(recording.outputs, read, self.lends)
        if results is None:
            self.reason = "a result sees memory as another dtype than an input or another result does"
            return None
        self.recorded += 1
        queue = self.recorder.queue()
        copies = {i: read[i] for i in copied}  # of the others nothing is kept: what was lent is given back
        return Graph(recording, results, copies, queue, self.loans.add(queue, results))

    def _replay(self, graph: Graph, inputs: tuple[Any, ...]) -> tuple[torch.Tensor, ...]:
        for i, copy in graph.copies.items():
            _once(copy).copy_(_once(inputs[i]))
        graph.recording.replay()
        self.replayed += 1
        return graph.results.taken_out(inputs)


def _kind(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return (tuple(value.shape), value.stride(), value.dtype, value.device)
    return (type(value), value)


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)
    _once(made).copy_(_once(tensor.detach()))
    return made


def _once(tensor: torch.Tensor) -> torch.Tensor:
    """Return a view with each element of an expanded tensor once: memory is written to through it."""
    for dim, stride in enumerate(tensor.stride()):
        if stride == 0 and tensor.shape[dim] > 1:
            tensor = tensor.narrow(dim, 0, 1)
    return tensor


__all__ = ["Graph", "GraphRun", "Seen"]
