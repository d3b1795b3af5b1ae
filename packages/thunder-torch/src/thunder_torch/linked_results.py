"""Results of one program that others of its results are computed from, as a loss is from the logits beside it.

For autograd they are results of one call, and what comes to the gradient of one from another stays inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thunder_autograd import Split, Traits
from thunder_ir import Trace


def leading_on(split: Split, leaves: Sequence[Any], positions: Sequence[int]) -> list[tuple[int, tuple[int, ...]]]:
    """Return the places of differentiable results that others are computed from, each with the places of those."""
    program = split.program
    if program is None or len(positions) < 2:
        return []
    places = {leaves[i].name: i for i in positions}
    reached = {p.name: frozenset([places[p.name]]) if p.name in places else frozenset() for p in program.inputs}
    others: dict[int, list[int]] = {}
    for bound in program.bound_symbols:
        sources = frozenset().union(*[reached.get(p.name, ()) for p in bound.inputs])
        for proxy in bound.outputs:
            flows = sources if getattr(proxy, "requires_grad", False) else frozenset()
            place = places.get(proxy.name)
            if place is not None:
                for source in flows:
                    others.setdefault(source, []).append(place)
                flows |= {place}
            reached[proxy.name] = flows
    return [(source, tuple(found)) for source, found in sorted(others.items())]


def runs_again(split: Split) -> bool:
    """Whether a program computes the same when it runs a second time, and does nothing else."""
    traits, program = Traits(), split.program
    return program is not None and not (split.draws or any(map(traits.has_effects, program.bound_symbols)))


def cut(program: Trace, name: str) -> Trace:
    """Return a program that is given one of its values, the last input, for all that it computes of it."""
    value = next(p for bound in program.bound_symbols for p in bound.outputs if p.name == name)
    given = value.renamed(program.names().fresh("given"))
    bound_symbols = [b.substituted({name: given}) for b in program.bound_symbols]
    return program.replace(inputs=(*program.inputs, given), bound_symbols=tuple(bound_symbols))


__all__ = ["cut", "leading_on", "runs_again"]
