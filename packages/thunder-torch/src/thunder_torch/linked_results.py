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
from thunder_torch.result_hooks import notice_hooks

_APPLY = torch._C._FunctionBase.__dict__["apply"]
_will_run = torch._C._will_engine_execute_node
_task = torch._C._current_graph_task_id


@dataclass(frozen=True, slots=True)
class Links:
    """Which results of a program are computed from which.

    Args:
        levels: for each result how many steps it is from results that are computed from no other.
        sources: for each level the places of the results that others are computed from, one level up or more.
        sharing: results that others of the same memory are computed from, each with the places of these. They are of
            one level, since who writes to one writes to all.
    """

    levels: tuple[int, ...]
    sources: tuple[tuple[int, ...], ...]
    sharing: tuple[tuple[int, tuple[int, ...]], ...]

    @property
    def watched(self) -> list[tuple[int, int]]:
        """Places and levels of the results that others are computed from."""
        return [(i, level) for level, places in enumerate(self.sources) for i in places]

    @classmethod
    def of(cls, split: Split, positions: Sequence[int]) -> Links:
        """Return the links between results of a program; ``positions`` are the places of the differentiable ones."""
        program = split.program
        if program is None or len(positions) < 2:
            return cls((0,), ((),), ())
        leaves = flatten(program.output)[0]
        places = {leaves[i].name: i for i in positions}
        origins = _origins(program, places)
        memories = _memories(program)
        levels, sharing = [0] * len(leaves), dict[int, list[int]]()
        above: set[int] = set()
        for place, found in origins.items():
            memory = memories.get(leaves[place].name)
            apart = [i for i in found if memories.get(leaves[i].name) != memory]
            levels[place] = max([levels[i] + 1 for i in apart], default=0)
            above.update(apart)
            for i in set(found).difference(apart):
                sharing.setdefault(i, []).append(place)
        for i in positions:
            levels[i] = levels[places[leaves[i].name]]
        sources = tuple([tuple(sorted([i for i in above if levels[i] == n])) for n in range(max(levels))])
        return cls(tuple(levels), sources, tuple([(i, tuple(others)) for i, others in sorted(sharing.items())]))


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


def _memories(program: Trace) -> dict[str, str]:
    """Return for each value that may share memory with others the name of the first of these."""
    traits, found = Traits(), dict[str, str]()
    for bound in program.bound_symbols:
        viewed = next(iter(bound.inputs), None)
        shares = viewed is not None and (bound.has_tag(OpTags.SHAPE_OP) or traits.of(bound) is Trait.VIEW)
        for proxy in bound.outputs:
            found[proxy.name] = found.get(viewed.name, viewed.name) if shares and viewed is not None else proxy.name
    return found


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
    ``links.watched``, and the hooks on them.

    Args:
        links: which these are.
        name: of the nodes.
        function: the program's, which is told of hooks on its results.
        send: computes, given the program's context and a pass, what comes to the results in some places.
    """

    def __init__(
        self,
        links: Links,
        name: str,
        function: type[torch.autograd.Function],
        send: Callable[[Any, Pass, Sequence[int]], Sequence[Any]],
    ) -> None:
        self.links, self.send, self.watched = links, send, links.watched
        with torch.inference_mode(False), torch.enable_grad():
            self.probe = torch.zeros((), requires_grad=True)  # no gradient is ever asked of it
            self.probe_node = self.probe.view_as(self.probe).grad_fn.next_functions[0][0]  # type: ignore[union-attr]
        self.members = [
            tuple([i for i, at in enumerate(links.levels) if at == level]) for level in range(max(links.levels) + 1)
        ]
        self.functions = [function, *[self._function(level, name) for level in range(1, len(self.members))]]
        self.applies = [_APPLY.__get__(None, function) for function in self.functions[1:]]
        backward: Any = function._backward_cls  # type: ignore[attr-defined]
        backward.passes, backward.hooked = MappingProxyType({}), MappingProxyType({})
        notice_hooks(function, _note)

    def connected(self, apply: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``apply`` with these nodes around that of the program."""
        sources, probe, sharing = self.links.sources, self.probe, self.links.sharing
        watched, first = [i for i, _ in self.watched], sources[0][0]
        steps = list(zip(self.applies, sources, self.members[1:], strict=True))

        def apply_linked(*inputs: Any) -> Any:
            raw = apply(*inputs)
            context = raw[first].grad_fn
            if context is None:
                return raw
            results = list(raw)
            for apply_level, below, above in steps:
                made = apply_level(probe, *[results[i] for i in below], *[raw[i] for i in above])
                for place, result in zip(above, made, strict=True):
                    results[place] = result
            context.results = [weakref.ref(results[i]) for i in watched]
            if sharing:
                context.sharing = [(i, weakref.ref(results[i]), others) for i, others in sharing]
            return tuple(results)

        return apply_linked

    def _function(self, level: int, name: str) -> type[torch.autograd.Function]:
        sources, members = self.links.sources[level - 1], self.members[level]
        count, send, begun, probe = len(sources), self.send, self._begun, self.probe_node
        nothing = (None,) * (1 + count)

        def forward(context: Any, probe: Tensor, *values: Tensor) -> tuple[Tensor, ...]:
            context.materialize_grads = False
            context.program = values[count].grad_fn
            return tuple([value.detach() for value in values[count:]])

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
        notice_hooks(function, lambda node, index, hooks: _note(node.program, members[index], hooks))
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
        for (place, at), reference in zip(self.watched, program.results, strict=True):
            if at >= level:
                break
            if program.hooked.get(place):  # hooks may outlive their result
                asked.append(place)
                continue
            result = reference()
            if result is not None and (for_some or result.retains_grad) and self._is_made_by(program, result, at):
                asked.append(place)
        if not asked:
            return None
        task, passes = _task(), program.passes or {}
        program.passes, passes[task] = passes, (current := Pass(tuple(sorted(asked))))
        torch.autograd.Variable._execution_engine.queue_callback(lambda: passes.pop(task, None))  # type: ignore[attr-defined]
        return current

    def _is_made_by(self, program: Any, result: Tensor, level: int) -> bool:
        """Whether a result is still what the program's node, or one above it, returned: a write in place gives it
        another node."""
        node: Any = result.grad_fn
        if level == 0 or node is program:
            return node is program
        return type(node) is self.functions[level]._backward_cls and node.program is program  # type: ignore[attr-defined]


def _note(program: Any, place: int, hooks: Mapping[int, Any]) -> None:
    program.hooked = {**program.hooked, place: hooks}


def cut(program: Trace, names: Sequence[str]) -> Trace:
    """Return a program that is given some of its values, the last inputs, for all that it computes of them."""
    values = {p.name: p for bound in program.bound_symbols for p in bound.outputs}
    fresh = program.names()
    given = {name: values[name].renamed(fresh.fresh("given")) for name in names}
    bound_symbols = [b.substituted(given) for b in program.bound_symbols]
    return program.replace(inputs=(*program.inputs, *given.values()), bound_symbols=tuple(bound_symbols))


__all__ = ["Linked", "Links", "Pass", "cut"]
