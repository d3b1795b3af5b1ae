"""Results of a graph, taken out of its memory: the next replay would overwrite them."""

from __future__ import annotations

from collections.abc import Sequence
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


@dataclass(frozen=True, slots=True, eq=False)
class Results:
    """Which memory the outputs of a graph share with its inputs and with each other.

    Args:
        places: one for each output.
        memories: the graph's own, each whole, as a tensor of one dimension.
    """

    places: tuple[Place, ...]
    memories: tuple[torch.Tensor, ...]

    @staticmethod
    def of(outputs: Sequence[torch.Tensor], inputs: Sequence[object]) -> Results | None:
        """Return how ``outputs`` lie; ``None`` where one sees memory as another dtype than its owner does."""
        owners = {_address(t): i for i, t in enumerate(inputs) if isinstance(t, torch.Tensor) and t.numel()}
        memories: list[torch.Tensor] = []
        places = []
        for output in outputs:
            owner = owners.get(_address(output)) if output.numel() else None
            if owner is None:
                memories.append(_whole(output))
                owner = -len(memories)
                if output.numel():
                    owners[_address(output)] = owner
            before = inputs[owner] if owner >= 0 else memories[-1 - owner]
            assert isinstance(before, torch.Tensor)
            if before.dtype is not output.dtype:
                return None
            offset = output.storage_offset() - before.storage_offset()
            places.append(Place(owner, int(offset), tuple(output.shape), output.stride()))
        return Results(tuple(places), tuple(memories))

    def taken_out(self, inputs: Sequence[object]) -> tuple[torch.Tensor, ...]:
        """Return the outputs, as copies of the graph's memory, and as views of the inputs of this call."""
        copies = [memory.clone() for memory in self.memories]
        found = []
        for place in self.places:
            owner = inputs[place.owner] if place.owner >= 0 else copies[-1 - place.owner]
            assert isinstance(owner, torch.Tensor)
            found.append(owner.as_strided(place.shape, place.strides, owner.storage_offset() + place.offset))
        return tuple(found)


def _address(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _whole(tensor: torch.Tensor) -> torch.Tensor:
    count = tensor.untyped_storage().nbytes() // tensor.element_size()
    return tensor.detach().as_strided((count,), (1,), 0)


__all__ = ["Place", "Results"]
