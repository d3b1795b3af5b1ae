"""What results of a forward program, and what it saves, share memory with.

PyTorch lets nobody write to views that a node of autograd returns: it takes these for views of what it cannot see.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thunder_ir import OpTags, Proxy, TensorProxy, Trace


def roots_of(program: Trace) -> dict[str, str]:
    """Return for each value of a program the one that it views in the end, or itself."""
    roots = {p.name: p.name for p in program.inputs}
    for bound in program.bound_symbols:
        viewed = next(iter(bound.inputs), None) if bound.has_tag(OpTags.VIEW) else None
        for made in bound.outputs:
            roots[made.name] = made.name if viewed is None else roots.get(viewed.name, viewed.name)
    return roots


def views_of_inputs(forward: Trace, saved: Sequence[Proxy]) -> frozenset[int]:
    """Return the places of values that a forward program saves and that may view inputs which require grad."""
    roots, given = roots_of(forward), {p.name for p in forward.inputs if isinstance(p, TensorProxy) and p.requires_grad}
    tensors = [(i, p.name) for i, p in enumerate(saved) if isinstance(p, TensorProxy)]
    return frozenset([i for i, name in tensors if name not in given and roots.get(name) in given])


def lone_views(forward: Trace, outputs: Sequence[Any]) -> set[str]:
    """Return the names of outputs that view what the program computed and no other output shows."""
    roots, inputs = roots_of(forward), {p.name for p in forward.inputs}
    names = [p.name for p in outputs if isinstance(p, TensorProxy)]
    shown = [roots[name] for name in names]
    pairs = zip(names, shown, strict=True)
    return {name for name, root in pairs if root != name and root not in inputs and shown.count(root) == 1}


def lone_places(forward: Trace, outputs: Sequence[Any], made: Sequence[int]) -> list[int]:
    """Return the places of outputs that view nothing as far as the program tells, and that no other output views.

    What a function of PyTorch's returns may be a view of what it made inside: ``linear`` with a bias, of more than two
    dimensions.

    Args:
        forward: the program.
        outputs: its results.
        made: the places of those that are made of others afterwards.
    """
    roots, inputs = roots_of(forward), {p.name for p in forward.inputs}
    tensors = [(i, p.name) for i, p in enumerate(outputs) if isinstance(p, TensorProxy)]
    shown = [roots[name] for i, name in tensors if i not in made]
    return [i for i, name in tensors if roots[name] == name and name not in inputs and shown.count(name) == 1]
