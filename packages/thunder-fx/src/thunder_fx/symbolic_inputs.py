"""Which numbers among the inputs of a graph are symbolic, and which inputs one program serves."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import GraphModule

from thunder_tracing import SymbolicNumbers

FIXED = (0, 1)
"""Sizes that broadcast or leave nothing to compute: programs for them are their own, as PyTorch's are."""


@dataclass(frozen=True, slots=True)
class SymbolicInputs:
    """The inputs of a graph that dynamo makes symbolic.

    Args:
        sizes: for an input that is a tensor, its symbolic dimensions.
        integers: the inputs that are integers.
    """

    sizes: Mapping[int, frozenset[int]] = field(default_factory=dict)
    integers: frozenset[int] = frozenset()

    @classmethod
    def of(cls, module: GraphModule) -> SymbolicInputs:
        """Return those of a graph whose placeholders have fake values: sizes and numbers that are symbols."""
        sizes, integers = {}, set()
        for i, node in enumerate(module.graph.find_nodes(op="placeholder")):
            value = node.meta.get("example_value", node.meta.get("val"))
            if isinstance(value, torch.SymInt):
                integers.add(i)
            elif isinstance(value, torch.Tensor):
                sizes[i] = frozenset([d for d, size in enumerate(value.shape) if isinstance(size, torch.SymInt)])
        return cls({i: dims for i, dims in sizes.items() if dims}, frozenset(integers))

    @classmethod
    def of_tensors(cls, args: Sequence[Any]) -> SymbolicInputs:
        """Return all dimensions of the tensors among some inputs."""
        return cls({i: frozenset(range(v.dim())) for i, v in enumerate(args) if isinstance(v, torch.Tensor)})

    def numbers(self, args: Sequence[Any]) -> SymbolicNumbers | None:
        """Return what a program for these inputs makes dynamic, ``None`` if nothing.

        Sizes of tensors that are not contiguous are fixed, those that are 0 or 1, and all where an input is nested.
        """
        if any([isinstance(a, (tuple, list)) for a in args]):
            return None
        sizes = {i: dims for i in self.sizes if (dims := self._dims(i, args[i]))}
        integers = frozenset([i for i in self.integers if _is_symbolic(args[i])])
        return SymbolicNumbers(sizes, integers) if sizes or integers else None

    def kind_of(self, args: Sequence[Any]) -> Hashable:
        """Return what inputs have in common for which there is one program, if its constraints hold."""
        kinds: list[Hashable] = [torch.is_grad_enabled()]
        nested = any([isinstance(a, (tuple, list)) for a in args])
        for i, value in enumerate(args):
            dims = frozenset() if nested else self._dims(i, value)
            if dims:
                shape = tuple([None if d in dims else size for d, size in enumerate(value.shape)])
                kinds.append((shape, value.dtype, value.device, value.requires_grad))
            else:
                kinds.append("open" if not nested and i in self.integers and _is_symbolic(value) else _kind(value))
        return tuple(kinds)

    def _dims(self, place: int, value: Any) -> frozenset[int]:
        dims = self.sizes.get(place)
        if not dims or not isinstance(value, torch.Tensor) or not value.is_contiguous():
            return frozenset()
        return frozenset([d for d in dims if value.shape[d] not in FIXED])


def kind_of(args: Sequence[Any]) -> Hashable:
    """Return what a program is compiled for in which nothing is symbolic: metadata of tensors, numbers themselves."""
    return SymbolicInputs().kind_of(args)


def _is_symbolic(value: Any) -> bool:
    return type(value) is int and value not in FIXED


def _kind(value: Any) -> Hashable:
    if isinstance(value, torch.Tensor):
        return tuple(value.shape), value.stride(), value.dtype, value.device, value.requires_grad
    if isinstance(value, (tuple, list)):
        return tuple([_kind(v) for v in value])
    return type(value), value


__all__ = ["SymbolicInputs", "kind_of"]
