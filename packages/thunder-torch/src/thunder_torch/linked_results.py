"""Results of one program that others of its results are computed from, as a loss is from the logits beside it.

The node of the program in the graph returns all of them; nodes above it, one for each step from results to what is
computed of them, give the graph the ways that eager's has. They pass on what comes to them, and the program's node runs
the backward program as a whole. Only where user code looks at the gradient of such a result, as with a hook or
``torch.autograd.grad``, does it run in stages, one for each of these nodes.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from thunder_ir import Trace
from thunder_torch.links import Links
from thunder_torch.own_nodes import give_own_node, has_own_node
from thunder_torch.result_hooks import let_be_hooked, skip_nothing

_APPLY = torch._C._FunctionBase.__dict__["apply"]
_will_run = torch._C._will_engine_execute_node
_task = torch._C._current_graph_task_id


@dataclass(slots=True, eq=False)
class Pass:
    """One pass of autograd's engine over a program whose results user code looks at.

    Args:
        asked: the places of results whose gradients user code looks at.
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
    ``links.watched``, and the hooks on them. Each of these has a node of its own. A result that is made as a view of
    others has the node of that; the one of its level, which it would have, is passed to the next level, so that that
    one's comes first.

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
        levels = range(len(links.sources) + 1)
        self.members = [tuple([i for i, at in enumerate(links.levels) if at == level]) for level in levels]
        self.functions = [function, *[self._function(level, name) for level in levels[1:]]]
        self.applies = [_APPLY.__get__(None, function) for function in self.functions[1:]]
        backward: Any = function._backward_cls
        backward.passes = MappingProxyType({})
        skip_nothing(function)

    def connected(self, apply: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``apply`` with these nodes around that of the program."""
        sources, probe, made = self.links.sources, self.probe, self.links.made
        watched, first = [i for i, _ in self.watched], sources[0][0]
        apart = [tuple([i for i in members if i in watched or i != members[0]]) for members in self.members]
        apart[0] = tuple([i for i in self.positions if self.links.levels[i] == 0 and (i in watched or i != 0)])
        views = [[i for i in made if i in members] for members in self.members]  # in their order
        steps = list(zip(self.applies, sources, views, self.members[1:], apart[1:], views[1:], strict=False))

        def apply_linked(*inputs: Any) -> Any:
            raw = apply(*inputs)
            context = raw[first].grad_fn
            if context is None:
                return raw
            results, nodes = list(raw), list(raw)
            give_own_node(results, apart[0])
            for place in views[0]:
                results[place] = made[place].made(inputs, results)
            for apply_level, below, passed, above, alone, viewing in steps:
                given = [*[results[i] for i in below], *[nodes[i] for i in passed], *[raw[i] for i in above]]
                for place, result in zip(above, apply_level(probe, *given), strict=True):
                    results[place] = nodes[place] = result
                for place in viewing:
                    results[place] = made[place].made(inputs, results)
                give_own_node(results, alone)
            context.results = [weakref.ref(results[i]) for i in watched]
            context.versions = [results[i]._version if i in made else None for i in watched]
            context.hooks = [let_be_hooked(results[i]) for i in watched]
            return tuple(results)

        return apply_linked

    def _function(self, level: int, name: str) -> type[torch.autograd.Function]:
        sources, members = self.links.sources[level - 1], self.members[level]
        passed = [i for i in self.members[level - 1] if i in self.links.made]
        count, send, begun = len(sources) + len(passed), self.send, self._begun
        probe: Any = self.probe_node
        nothing, may_view = (None,) * (1 + count), [i in self.links.views for i in members]
        nothing_passed = (None,) * len(passed)

        def forward(context: Any, probe: Tensor, *values: Tensor) -> tuple[Tensor, ...]:
            context.materialize_grads = False
            context.program = values[count].grad_fn
            pairs = zip(values[count:], may_view, strict=True)  # reshape() views what is contiguous only
            return tuple([v.view_as(v) if may and v._is_view() else v.detach() for v, may in pairs])

        def backward(context: Any, *cotangents: Any) -> tuple[Any, ...]:
            program = context.program
            current = program.passes.get(_task()) if program.passes else None
            if current is None:
                current = begun(program, level, torch.is_grad_enabled() or not _will_run(probe))
            if current is None:
                return nothing + cotangents
            current.cotangents.update(zip(members, cotangents, strict=True))
            return (None, *send(program, current, sources), *nothing_passed, *[None for _ in cotangents])

        methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
        function = type(name, (torch.autograd.Function,), methods)
        skip_nothing(function)
        return function

    def _begun(self, program: Any, level: int, for_some: bool) -> Pass | None:
        """Begin a pass in stages, if user code looks at the gradient of a result below a level.

        Args:
            program: its node.
            level: of the node that runs.
            for_some: whether gradients of some tensors only are computed, of which a result may be one, or they are to
                have gradients in turn.
        """
        asked = []
        seen = zip(self.watched, program.results, program.versions, program.hooks, strict=True)
        for (place, at), reference, version, hooks in seen:
            if at >= level:
                break
            if hooks:  # they may outlive their result
                asked.append(place)
                continue
            result = reference()
            if result is not None and (for_some or result.retains_grad):
                if self._is_the_same(program, result, at) if version is None else result._version == version:
                    asked.append(place)
        if not asked:
            return None
        task, passes = _task(), program.passes or {}
        program.passes, passes[task] = passes, (current := Pass(tuple(sorted(asked))))
        torch.autograd.Variable._execution_engine.queue_callback(lambda: passes.pop(task, None))
        return current

    def _is_the_same(self, program: Any, result: Tensor, level: int) -> bool:
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
