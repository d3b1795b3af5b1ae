"""Results of a graph: copied out of its memory, which replays overwrite, or lent until one of those is due."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Place:
    """Where an output lies.

    Args:
        owner: the input whose memory it is; below zero for memory of the graph: ``-1 - k`` for the ``k``-th.
        offset: in elements, from where the owner begins.
        shape: of the output.
        strides: of it, in elements.
    """

    owner: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class Memory:
    """Memory of a graph.

    Args:
        tensor: all of it, as one dimension.
        lent: whether it is handed out as it is.
    """

    def __init__(self, tensor: torch.Tensor, lent: bool) -> None:
        self.tensor = tensor
        self.lent = lent
        self._storage = tensor.untyped_storage()
        self._owners = 0

    def count(self) -> None:
        """Remember how many tensors the graph itself has of it."""
        self._owners = self._users()

    @property
    def is_read(self) -> bool:
        """Whether there are other tensors of it: user code still has what was lent."""
        return self._users() > self._owners

    def _users(self) -> int:
        return torch._C._storage_Use_Count(self._storage._cdata)


@dataclass(frozen=True, slots=True, eq=False)
class Results:
    """Which memory the outputs of a graph share with its inputs and with each other.

    Args:
        places: one for each output.
        memories: the graph's own.
    """

    places: tuple[Place, ...]
    memories: tuple[Memory, ...]

    @staticmethod
    def of(outputs: Sequence[torch.Tensor], inputs: Sequence[object], lent: Collection[int] = ()) -> Results | None:
        """Return how ``outputs`` lie; ``None`` where one sees memory as another dtype than its owner does.

        Args:
            outputs: of the graph.
            inputs: of it.
            lent: positions of the outputs that are not kept beyond a call, as far as is known.
        """
        owners = {_address(t): i for i, t in enumerate(inputs) if isinstance(t, torch.Tensor) and t.numel()}
        wholes: list[torch.Tensor] = []
        places = []
        for output in outputs:
            owner = owners.get(_address(output)) if output.numel() else None
            if owner is None:
                wholes.append(_whole(output))
                owner = -len(wholes)
                if output.numel():
                    owners[_address(output)] = owner
            before = inputs[owner] if owner >= 0 else wholes[-1 - owner]
            assert isinstance(before, torch.Tensor)
            if before.dtype is not output.dtype:
                return None
            offset = output.storage_offset() - before.storage_offset()
            places.append(Place(owner, int(offset), tuple(output.shape), output.stride()))
        kept = {-1 - place.owner for i, place in enumerate(places) if i not in lent}
        return Results(tuple(places), tuple([Memory(w, i not in kept) for i, w in enumerate(wholes)]))

    @property
    def lent(self) -> list[Memory]:
        """The memories that are handed out as they are."""
        return [m for m in self.memories if m.lent]

    def taken_out(self, inputs: Sequence[object]) -> tuple[torch.Tensor, ...]:
        """Return the outputs: in copies of the graph's memory, in what is lent of it, in the inputs of this call."""
        wholes = [m.tensor if m.lent else m.tensor.clone() for m in self.memories]
        found = []
        for place in self.places:
            owner = inputs[place.owner] if place.owner >= 0 else wholes[-1 - place.owner]
            assert isinstance(owner, torch.Tensor)
            found.append(owner.as_strided(place.shape, place.strides, owner.storage_offset() + place.offset))
        return tuple(found)


class Loans:
    """What graphs lent, by what they are queued on.

    Graphs of one queue share memory, given out while they are recorded: one of them may work where the results of those
    lie that were recorded after it, and where its own do; not where those of earlier ones do, which were kept.
    """

    def __init__(self) -> None:
        self._results: dict[Hashable, dict[int, Results]] = {}
        self._addresses: set[int] = set()
        self._next = 0

    def add(self, queue: Hashable, results: Results) -> int:
        """Note what a graph lends that was just recorded; return its number."""
        number, self._next = self._next, self._next + 1
        self._results.setdefault(queue, {})[number] = results
        for memory in results.lent:
            memory.count()
        self._addresses |= _lent_addresses(results)
        return number

    def drop(self, queue: Hashable, number: int) -> None:
        """Forget a graph that is no longer kept; tensors of what it lent keep that memory themselves."""
        results = self._results[queue].pop(number)
        self._addresses -= _lent_addresses(results)

    def has(self, address: int) -> bool:
        """Whether a tensor that begins there was lent."""
        return address in self._addresses

    def are_read(self, queue: Hashable, number: int) -> bool:
        """Whether user code has what a replay of a graph would overwrite."""
        later = [results for n, results in self._results[queue].items() if n >= number]
        return any([memory.is_read for results in later for memory in results.lent])


def _lent_addresses(results: Results) -> set[int]:
    found = set()
    for place in results.places:
        if place.owner < 0 and results.memories[-1 - place.owner].lent:
            tensor = results.memories[-1 - place.owner].tensor
            found.add(tensor.data_ptr() + place.offset * tensor.element_size())
    return found - {0}  # where empty tensors are


def _address(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _whole(tensor: torch.Tensor) -> torch.Tensor:
    count = tensor.untyped_storage().nbytes() // tensor.element_size()
    return tensor.detach().as_strided((count,), (1,), 0)


__all__ = ["Loans", "Memory", "Place", "Results"]
