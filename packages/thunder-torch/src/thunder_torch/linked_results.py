"""Results of one program that others of its results are computed from, as a loss is from the logits beside it.

The node of the program in the graph returns all of them; nodes above it, one for each step from results to what is
computed of them, give the graph the ways that eager's has. They pass on what comes to them, and the program's node runs
the backward program as a whole. Only where somebody looks at the gradient of such a result, as with a hook or
``torch.autograd.grad``, does it run in stages, one for each of these nodes.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from thunder_autograd import Split, Trait, Traits
from thunder_ir import OpTags, Trace
from thunder_ir.trees import flatten
from thunder_torch.own_nodes import give_own_node, has_own_node
from thunder_torch.result_hooks import let_be_hooked, skip_nothing

_APPLY = torch._C._FunctionBase.__dict__["apply"]
_will_run = torch._C._will_engine_execute_node
_task = torch._C._current_graph_task_id


@dataclass(frozen=True, slots=True)
class Links:
    """Which results of a program are computed from which.

    Args:
        levels: for each result how many steps it is from results that are computed from no other.
        sources: for each level the places of the results that others are computed from, one level up or more.
        views: the places of results that view memory which others do, too. Autograd is to know that they do, so that
            it notices when somebody writes to one of them.
    """

    levels: tuple[int, ...]
    sources: tuple[tuple[int, ...], ...]
    views: frozenset[int]

    @property
    def watched(self) -> list[tuple[int, int]]:
        """Places and levels of the results that others are computed from."""
        return [(i, level) for level, places in enumerate(self.sources) for i in places]

    @classmethod
    def of(cls, split: Split, positions: Sequence[int]) -> Links:
        """Return the links between results of a program; ``positions`` are the places of the differentiable ones."""
        program = split.program
        if program is None or len(positions) < 2:
            return cls((0,), ((),), frozenset())
        leaves = flatten(program.output)[0]
        places = {leaves[i].name: i for i in positions}
        origins = _origins(program, places)
        levels = [0] * len(leaves)
        for place, found in origins.items():
            levels[place] = max([levels[i] + 1 for i in found], default=0)
        for i in positions:
            levels[i] = levels[places[leaves[i].name]]
        above = frozenset[int]().union(*origins.values())
        sources = tuple([tuple(sorted([i for i in above if levels[i] == n])) for n in range(max(levels))])
        return cls(tuple(levels), sources, _views(program, places) if sources else frozenset())


def _origins(program: Trace, places: Mapping[str, int]) -> dict[int, frozenset[int]]:
    """Return for the place of each result the places of those it is computed from, in the order of the program."""
    reached: dict[str, frozenset[int]] = {}
    found: dict[int, frozenset[int]] = {}
    for bound in program.bound_symbols:
        sources = frozenset[int]().union(*[reached.get(p.name, ()) for p in bound.inputs])
        for proxy in bound.outputs:
            flows = sources if getattr(proxy, "requires_grad", False) else frozenset()
            place = places.get(proxy.name)
            if place is not None:
                found[place] = flows
                flows |= {place}
            if flows:
                reached[proxy.name] = flows
    return found


def _views(program: Trace, places: Mapping[str, int]) -> frozenset[int]:
    """Return the places of results that view what other results are, or view, too."""
    traits, producers = Traits(), {p.name: bound for bound in program.bound_symbols for p in bound.outputs}
    members: dict[str, list[str]] = {}
    for name in places:
        first = name
        while (bound := producers.get(first)) is not None and bound.inputs:
            if not (bound.has_tag(OpTags.SHAPE_OP) or traits.of(bound) is Trait.VIEW):
                break
            first = bound.inputs[0].name
        members.setdefault(first, []).append(name)
    shared = [(first, names) for first, names in members.items() if len(names) > 1]
    return frozenset([places[name] for first, names in shared for name in names if name != first])


@dataclass(slots=True, eq=False)
class Pass:
    """One pass of autograd's engine over a program whose results somebody looks at.

    Args:
        asked: the places of results whose gradients somebody looks at.
        cotangents: those that arrived, by the place of the result.
        missing: for each stage of the backward program that ran, which of the cotangents for it there were not.
        stage: what ran last.
        handed: what it handed on.
    """

    asked: tuple[int, ...]
    cotangents: dict[int, Any] = field(default_factory=dict)
    missing: tuple[tuple[bool, ...], ...] = ()
    stage: Any = None
    handed: tuple[Any, ...] = ()


class Linked:
    """Connects the results of a program's node that are computed of one another.

    The program's node knows the results that others are computed from by weak references, in the order of
    ``links.watched``, and the hooks on them. Each of these has a node of its own.

    Args:
        links: which these are.
        positions: the places of the differentiable results.
        name: of the nodes.
        function: the program's.
        send: computes, given the program's context and a pass, what comes to the results in some places.
    """

    def __init__(
        self,
        links: Links,
        positions: Sequence[int],
        name: str,
        function: type[torch.autograd.Function],
        send: Callable[[Any, Pass, Sequence[int]], Sequence[Any]],
    ) -> None:
        self.links, self.positions, self.send, self.watched = links, positions, send, links.watched
        with torch.inference_mode(False), torch.enable_grad():
            self.probe = torch.zeros((), requires_grad=True)  # no gradient is ever asked of it
            self.probe_node = self.probe.view_as(self.probe).grad_fn.next_functions[0][0]  # type: ignore[union-attr]
        self.members = [
            tuple([i for i, at in enumerate(links.levels) if at == level]) for level in range(max(links.levels) + 1)
        ]
        self.functions = [function, *[self._function(level, name) for level in range(1, len(self.members))]]
        self.applies = [_APPLY.__get__(None, function) for function in self.functions[1:]]
        backward: Any = function._backward_cls
        backward.passes = MappingProxyType({})
        skip_nothing(function)

    def connected(self, apply: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``apply`` with these nodes around that of the program."""
        sources, probe = self.links.sources, self.probe
        watched, first = [i for i, _ in self.watched], sources[0][0]
        apart = [tuple([i for i in members if i in watched or i != members[0]]) for members in self.members]
        apart[0] = tuple([i for i in self.positions if self.links.levels[i] == 0 and (i in watched or i != 0)])
        steps = list(zip(self.applies, sources, self.members[1:], apart[1:], strict=True))

        def apply_linked(*inputs: Any) -> Any:
            raw = apply(*inputs)
            context = raw[first].grad_fn
            if context is None:
                return raw
            results = list(raw)
            give_own_node(results, apart[0])
            for apply_level, below, above, alone in steps:
                made = apply_level(probe, *[results[i] for i in below], *[raw[i] for i in above])
                for place, result in zip(above, made, strict=True):
                    results[place] = result
                give_own_node(results, alone)
            context.results = [weakref.ref(results[i]) for i in watched]
            context.hooks = [let_be_hooked(results[i]) for i in watched]
            return tuple(results)

        return apply_linked

    def _function(self, level: int, name: str) -> type[torch.autograd.Function]:
        sources, members = self.links.sources[level - 1], self.members[level]
        count, send, begun = len(sources), self.send, self._begun
        probe: Any = self.probe_node
        nothing, are_views = (None,) * (1 + count), [i in self.links.views for i in members]

        def forward(context: Any, probe: Tensor, *values: Tensor) -> tuple[Tensor, ...]:
            context.materialize_grads = False
            context.program = values[count].grad_fn
            pairs = zip(values[count:], are_views, strict=True)
            return tuple([value.view_as(value) if is_view else value.detach() for value, is_view in pairs])

        def backward(context: Any, *cotangents: Any) -> tuple[Any, ...]:
            program = context.program
            current = program.passes.get(_task()) if program.passes else None
            if current is None:
                current = begun(program, level, torch.is_grad_enabled() or not _will_run(probe))
            if current is None:
                return nothing + cotangents
            current.cotangents.update(zip(members, cotangents, strict=True))
            return (None, *send(program, current, sources), *[None for _ in cotangents])

        methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
        function = type(name, (torch.autograd.Function,), methods)
        skip_nothing(function)
        return function

    def _begun(self, program: Any, level: int, for_some: bool) -> Pass | None:
        """Begin a pass in stages, if somebody looks at the gradient of a result below a level.

        Args:
            program: its node.
            level: of the node that runs.
            for_some: whether gradients of some tensors only are computed, of which a result may be one, or they are to
                have gradients in turn.
        """
        asked = []
        for (place, at), reference, hooks in zip(self.watched, program.results, program.hooks, strict=True):
            if at >= level:
                break
            if hooks:  # they may outlive their result
                asked.append(place)
                continue
            result = reference()
            if result is not None and (for_some or result.retains_grad) and self._is_looked_at(program, result, at):
                asked.append(place)
        if not asked:
            return None
        task, passes = _task(), program.passes or {}
        program.passes, passes[task] = passes, (current := Pass(tuple(sorted(asked))))
        torch.autograd.Variable._execution_engine.queue_callback(lambda: passes.pop(task, None))
        return current

    def _is_looked_at(self, program: Any, result: Tensor, level: int) -> bool:
        """Whether a result is still what the program's node, or one above it, returned: a write in place gives it
        another node. One that was detached in place since keeps the gradient that it was to keep."""
        try:
            own = result.grad_fn
        except RuntimeError:  # somebody wrote to what it views
            return False
        if own is None:
            return result.retains_grad
        node: Any = own.next_functions[0][0] if has_own_node(own) else own
        if level == 0 or node is program:
            return node is program
        return type(node) is self.functions[level]._backward_cls and node.program is program  # type: ignore[attr-defined]


def cut(program: Trace, names: Sequence[str]) -> Trace:
    """Return a program that is given some of its values, the last inputs, for all that it computes of them."""
    values = {p.name: p for bound in program.bound_symbols for p in bound.outputs}
    fresh = program.names()
    given = {name: values[name].renamed(fresh.fresh("given")) for name in names}
    bound_symbols = [b.substituted(given) for b in program.bound_symbols]
    return program.replace(inputs=(*program.inputs, *given.values()), bound_symbols=tuple(bound_symbols))


__all__ = ["Linked", "Links", "Pass", "cut"]
