"""Graphs of which a node cannot be recorded: programs before and after it, and PyTorch in between."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.passes.split_module import split_module

from thunder_fx.compiled import CompiledGraph
from thunder_fx.errors import NodeError
from thunder_fx.graphs import enters_level, leaves_level


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A part of a graph, and who runs it.

    Args:
        nodes: how many calls it has.
        compiled: the program; ``None`` where PyTorch runs it as it is.
        reason: why that is, with the node and the user's line; empty for a program.
    """

    nodes: int
    compiled: CompiledGraph | None
    reason: str = ""


class Specialised:
    """A graph that is compiled for each kind of inputs when that first comes, in parts where the whole cannot be.

    Args:
        module: the graph.
        executors: in order of priority; ``None`` for the defaults.
        splits: whether what cannot be recorded is run by PyTorch; else it raises.
    """

    def __init__(self, module: GraphModule, executors: Sequence[Any] | None = None, splits: bool = True) -> None:
        self.module = module
        self.executors = executors
        self.splits = splits
        self._parts: list[Part | Specialised] = []
        self._made: dict[Hashable, Callable[..., Any]] = {}
        self._lock = threading.RLock()

    @property
    def parts(self) -> list[Part]:
        """What it was compiled to, in the order in which it runs."""
        return [part for p in self._parts for part in ([p] if isinstance(p, Part) else p.parts)]

    def __call__(self, *args: Any) -> Any:
        """Run the graph; compile it first if inputs of this kind come for the first time."""
        made = self._made.get(kind_of(args))
        return (made or self.compiled(args))(*args)

    def compiled(self, args: Sequence[Any]) -> Callable[..., Any]:
        """Return what runs the graph for inputs of this kind.

        Raises:
            NodeError: a node cannot be recorded, and nothing is split off.
        """
        with self._lock:
            kind = kind_of(args)
            if kind not in self._made:
                self._made[kind] = self._compile(args)
            return self._made[kind]

    def _compile(self, args: Sequence[Any]) -> Callable[..., Any]:
        try:
            made = CompiledGraph(self.module, args, self.executors)
        except NodeError as error:
            node = error.node
            if not self.splits or node is None or node.graph is not self.module.graph:
                raise
            return self._split(node, str(error))
        self._parts.append(Part(_calls(self.module), made))
        return made

    def _split(self, node: Node, reason: str) -> Callable[..., Any]:
        """Return the graph in parts: what comes before the node, the node, and what comes after it."""
        places = {n: i for i, n in enumerate(self.module.graph.nodes)}
        first, last = places[node], places[end_of(node)]

        def part_of(other: Node) -> int:
            return 0 if places[other] < first else 1 if places[other] <= last else 2

        whole: Any = split_module(self.module, None, part_of, keep_original_order=True)  # type: ignore[arg-type]
        for name, part in list(whole.named_children()):
            if name == "submod_1":
                self._parts.append(Part(last - first + 1, None, reason))
            elif name in ("submod_0", "submod_2"):
                compiled = Specialised(part, self.executors)
                self._parts.append(compiled)
                setattr(whole, name, _Callable(compiled))
        return whole  # type: ignore[no-any-return]


class _Callable(torch.nn.Module):
    """A part of a graph as a module, for the graph of the parts to call."""

    def __init__(self, part: Specialised) -> None:
        super().__init__()
        self.part = part

    def forward(self, *args: Any) -> Any:
        """Run the part."""
        return self.part(*args)


def end_of(node: Node) -> Node:
    """Return the last node that goes with one: where that begins a level of ``torch.func``, the one that ends it."""
    depth, here = 0, node
    while True:
        depth += enters_level(here.target) - leaves_level(here.target)
        if depth <= 0 or here.next.op == "output":
            return here
        here = here.next


def kind_of(args: Sequence[Any]) -> Hashable:
    """Return what a program is compiled for: metadata of tensors, numbers themselves, and whether gradients are on."""
    return (torch.is_grad_enabled(), *[_kind(a) for a in args])


def _kind(value: Any) -> Hashable:
    if isinstance(value, torch.Tensor):
        return tuple(value.shape), value.stride(), value.dtype, value.device, value.requires_grad
    if isinstance(value, (tuple, list)):
        return tuple([_kind(v) for v in value])
    return type(value), value


def _calls(module: GraphModule) -> int:
    return len([n for n in module.graph.nodes if n.op.startswith("call_")])


__all__ = ["Part", "Specialised", "kind_of"]
