"""Results of a forward program that no other of its results shares memory with.

PyTorch lets nobody write to views that a node of autograd returns: it takes these for views of what it cannot see.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thunder_ir import OpTags, TensorProxy, Trace


def roots_of(forward: Trace) -> dict[str, str | None]:
    """Return for each value of a program the one that it views, or itself; ``None`` for what views an input."""
    roots: dict[str, str | None] = {p.name: None for p in forward.inputs}
    for bound in forward.bound_symbols:
        viewed = next(iter(bound.inputs), None) if bound.has_tag(OpTags.VIEW) else None
        for made in bound.outputs:
            roots[made.name] = made.name if viewed is None else roots.get(viewed.name)
    return roots


def lone_views(forward: Trace, outputs: Sequence[Any]) -> set[str]:
    """Return the names of outputs that view what the program computed and no other output shows."""
    roots = roots_of(forward)
    shown = [roots.get(p.name) for p in outputs if isinstance(p, TensorProxy)]
    return {
        p.name
        for p in outputs
        if isinstance(p, TensorProxy) and roots.get(p.name) not in (None, p.name) and shown.count(roots[p.name]) == 1
    }


def lone_places(forward: Trace, outputs: Sequence[Any], made: Sequence[int]) -> list[int]:
    """Return the places of outputs that view nothing as far as the program tells, and that no other output views.

    What a function of PyTorch's returns may be a view of what it made inside: ``linear`` with a bias, of more than two
    dimensions.

    Args:
        forward: the program.
        outputs: its results.
        made: the places of those that are made of others afterwards.
    """
    roots = roots_of(forward)
    shown = [roots.get(p.name) for i, p in enumerate(outputs) if isinstance(p, TensorProxy) and i not in made]
    return [
        i
        for i, p in enumerate(outputs)
        if isinstance(p, TensorProxy) and roots.get(p.name) == p.name and shown.count(p.name) == 1
    ]


__all__ = ["lone_places", "lone_views"]
