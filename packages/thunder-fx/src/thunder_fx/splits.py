"""Graphs of which a node cannot be recorded: programs before and after it, and PyTorch in between."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn
from torch.fx import GraphModule, Node
from torch.fx.passes.split_module import split_module

from thunder_fx.compiled import CompiledGraph
from thunder_fx.errors import NodeError
from thunder_fx.graphs import enters_level, leaves_level
from thunder_fx.symbolic_inputs import SymbolicInputs
from thunder_guards import MISSED, missed
from thunder_ir import ThunderError
from thunder_tracing import SymbolicNumbers


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
        self.fixed = ""
        """Why sizes that dynamo makes dynamic are fixed here, with a program for each; empty if they are not."""
        self._symbolic_inputs = SymbolicInputs.of(module)
        self._made: dict[Hashable, list[Callable[..., Any] | CompiledGraph]] = {}
        self._lock = threading.RLock()

    @property
    def parts(self) -> list[Part]:
        """What it was compiled to, in the order in which it runs."""
        return [part for p in self._parts for part in ([p] if isinstance(p, Part) else p.parts)]

    def __call__(self, *args: Any) -> Any:
        """Run the graph; compile it first if inputs of this kind come for the first time."""
        result = self._found(args)
        if result is not MISSED:
            return result
        with self._lock:
            made = self._compile(args)
            self._made.setdefault(self._symbolic_inputs.kind_of(args), []).append(made)
        result = _called(made, args)
        return self._left(args) if result is MISSED else result

    def _found(self, args: tuple[Any, ...]) -> Any:
        """Return what a call of what was compiled for inputs like these returns, if that is right for them."""
        for made in self._made.get(self._symbolic_inputs.kind_of(args), ()):
            result = _called(made, args)
            if result is not MISSED:
                return result
        return MISSED

    def _left(self, args: tuple[Any, ...]) -> Any:
        """Let PyTorch run the graph where no program is right for the call that it was made for."""
        self._parts.append(Part(_calls(self.module), None, "graphs in modes of PyTorch's functions"))
        self._made[self._symbolic_inputs.kind_of(args)].append(self.module)
        return self.module(*args)

    def _compile(self, args: Sequence[Any]) -> Callable[..., Any] | CompiledGraph:
        symbolic_numbers = self._symbolic_inputs.numbers(args)
        problem = ""
        if symbolic_numbers is not None:
            try:
                return self._program(args, symbolic_numbers)
            except (ThunderError, TypeError) as error:
                problem = str(error)
        try:
            made = self._program(args, None)
        except NodeError as error:
            node = error.node
            if not self.splits or node is None or node.graph is not self.module.graph:
                raise
            return self._split(node, str(error))
        except ThunderError as error:  # a program that has no derivative, say
            if not self.splits:
                raise
            self._parts.append(Part(_calls(self.module), None, str(error)))
            return self.module
        if symbolic_numbers is not None:
            self.fixed, self._symbolic_inputs = problem, SymbolicInputs()
            self._made.clear()
        return made

    def _program(self, args: Sequence[Any], symbolic_numbers: SymbolicNumbers | None) -> CompiledGraph:
        made = CompiledGraph(self.module, args, self.executors, symbolic_numbers)
        self._parts.append(Part(_calls(self.module), made))
        return made

    def _split(self, node: Node, reason: str) -> Callable[..., Any]:
        """Return the graph in parts: what comes before the node, the node, and what comes after it."""
        last_node = end_of(node)
        take_apart(node, last_node)
        places = {n: i for i, n in enumerate(self.module.graph.nodes)}
        first, last = places[node], places[end_of_parts(last_node)]

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


def _called(made: Callable[..., Any] | CompiledGraph, args: tuple[Any, ...]) -> Any:
    """Call what was compiled; return ``MISSED`` if it is not right for these inputs."""
    return made.call(args, missed) if isinstance(made, CompiledGraph) else made(*args)


class _Callable(nn.Module):
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


def take_apart(first: Node, last: Node) -> None:
    """Take tuples that nodes return apart behind the last of these, so that parts hand on tensors, and no tuples."""
    graph = first.graph
    nodes = list(graph.nodes)
    place = last
    for node in nodes[nodes.index(first) : nodes.index(last) + 1]:
        pending = [user for user in nodes if user in node.users and user.target is operator.getitem]
        while pending:
            user = pending.pop(0)
            if nodes.index(user) > nodes.index(last):
                place.append(user)
                place = user
            pending += [again for again in nodes if again in user.users and again.target is operator.getitem]


def end_of_parts(last: Node) -> Node:
    """Return the last of the nodes behind one that take apart what was returned."""
    here = last
    while here.next.target is operator.getitem:
        here = here.next
    return here


def _calls(module: GraphModule) -> int:
    return len([n for n in module.graph.nodes if n.op.startswith("call_")])


__all__ = ["Part", "Specialised"]
