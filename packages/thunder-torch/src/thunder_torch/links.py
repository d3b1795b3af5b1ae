"""Which results of a program are computed from others of its results, and which view what others do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from thunder_autograd import Split, Trait, Traits
from thunder_ir import OpTags, Trace
from thunder_ir.trees import flatten


@dataclass(frozen=True, slots=True, eq=False)
class ResultView:
    """How a result that views another one is made of that, by operations of PyTorch's that autograd records.

    Args:
        make: takes the tensors, and numbers, that it is made of.
        inputs, results: the places of these, among the inputs of the program and among its results.
    """

    make: Callable[..., Tensor]
    inputs: tuple[int, ...]
    results: tuple[int, ...]

    def made(self, inputs: Sequence[Any], results: Sequence[Any]) -> Tensor:
        """Return the view, for the inputs and the results of a call."""
        return self.make(*[inputs[i] for i in self.inputs], *[results[i] for i in self.results])


@dataclass(frozen=True, slots=True)
class Links:
    """Which results of a program are computed from which.

    Args:
        levels: for each result how many steps it is from results that are computed from no other.
        sources: for each level the places of the results that others are computed from, one level up or more.
        views: the places of results that may view memory which others do, too. Autograd is to know that they do, so
            that it notices when user code writes to one of them.
        made: how results at some places are made of others.
    """

    levels: tuple[int, ...]
    sources: tuple[tuple[int, ...], ...]
    views: frozenset[int]
    made: Mapping[int, ResultView] = field(default_factory=dict)

    @property
    def watched(self) -> list[tuple[int, int]]:
        """Places and levels of the results that others are computed from."""
        return [(i, level) for level, places in enumerate(self.sources) for i in places]

    @classmethod
    def of(cls, split: Split, positions: Sequence[int], made: Mapping[int, ResultView]) -> Links:
        """Return the links between results of a program.

        Args:
            split: the program.
            positions: the places of the differentiable results.
            made: how results at some places are made of others.
        """
        program = split.program
        if program is None or len(positions) < 2:
            return cls((0,), ((),), frozenset())
        leaves = flatten(program.output)[0]
        made = {i: view for i, view in made.items() if i in positions}
        in_order = [*[i for i in positions if i not in made], *made]  # what a view is made of comes before it
        places = {leaves[i].name: i for i in in_order}
        reached = _reached(program, places)
        ranks = {name: rank for rank, name in enumerate(reached)}
        in_order.sort(key=lambda i: ranks.get(leaves[i].name, -1))
        levels, above = [0] * len(leaves), set[int]()
        for i in in_order:
            origins = reached.get(leaves[i].name, frozenset())
            if i in made:
                origins |= frozenset(made[i].results).intersection(positions) - {i}
            levels[i] = max([levels[o] + 1 for o in origins], default=0)
            above |= origins
        sources = tuple([tuple(sorted([i for i in above if levels[i] == n])) for n in range(max(levels))])
        others = {name: i for name, i in places.items() if i not in made}
        return cls(tuple(levels), sources, _views(program, others) if sources else frozenset(), made)


def _reached(program: Trace, places: Mapping[str, int]) -> dict[str, frozenset[int]]:
    """Return for each result, by name, the places of those it is computed from, in the order of the program."""
    reached: dict[str, frozenset[int]] = {}
    found: dict[str, frozenset[int]] = {}
    for bound in program.bound_symbols:
        sources = frozenset[int]().union(*[reached.get(p.name, ()) for p in bound.inputs])
        for proxy in bound.outputs:
            flows = sources if getattr(proxy, "requires_grad", False) else frozenset()
            place = places.get(proxy.name)
            if place is not None:
                found[proxy.name] = flows
                flows |= {place}
            if flows:
                reached[proxy.name] = flows
    return found


def _views(program: Trace, places: Mapping[str, int]) -> frozenset[int]:
    """Return the places of results that may view what other results are, or view, too."""
    traits, producers = Traits(), {p.name: bound for bound in program.bound_symbols for p in bound.outputs}
    members: dict[str, list[str]] = {}
    for name in places:
        first = name
        while (bound := producers.get(first)) is not None and bound.inputs:
            if not (bound.has_tag(OpTags.VIEW) or traits.of(bound) is Trait.VIEW):
                break
            first = bound.inputs[0].name
        members.setdefault(first, []).append(name)
    shared = [(first, names) for first, names in members.items() if len(names) > 1]
    return frozenset([places[name] for first, names in shared for name in names if name != first])
