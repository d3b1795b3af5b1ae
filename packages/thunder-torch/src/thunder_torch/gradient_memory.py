"""Gradients that share no memory: autograd makes the first that comes to a leaf its ``grad`` and adds others to it."""

from __future__ import annotations

from collections.abc import Sequence

from thunder_ir import Builder, OpTags, TensorProxy, Trace, recording
from thunder_ir.passes import trace_pass
from thunder_lang import clone
from thunder_torch.language import torch_language


@trace_pass
def gradients_apart(backward: Trace, saved: int = 0) -> Trace:
    """Return a backward program none of whose gradients is a view of another, or of what was saved.

    Where several are views of one tensor, one of them stays it: PyTorch would write one over the other when it adds up
    the gradients of several calls. A gradient that is given for several inputs is no such case: PyTorch sees that.

    Args:
        backward: the program; its results are gradients.
        saved: how many of its inputs, the first ones, were saved by the forward program.

    Example:
        >>> import thunder_prims as prims
        >>> from thunder_ir import Tensor, trace_of
        >>> from thunder_torch.gradient_memory import gradients_apart
        >>> backward = trace_of(lambda d: (prims.reshape(d, (2, 3)), d), Tensor((6,)))
        >>> print(gradients_apart(backward))
        def program(d: "float32[6]"):
            t0 = prims.reshape(d, (2, 3))  # float32[2, 3]
            t1 = prims.clone(t0)  # float32[2, 3]
            return (t1, d)
    """
    gradients = {p.name: p for p in backward.outputs if isinstance(p, TensorProxy)}
    roots = _viewed(backward)
    if roots.keys().isdisjoint(gradients):
        return backward
    taken = {p.name for p in backward.inputs[:saved]}
    taken.update([name for name in gradients if name not in roots])
    builder = Builder(backward.names(), torch_language)
    copies = {}
    with recording(builder):
        for name, gradient in gradients.items():
            root = roots.get(name)
            if root is None:
                continue
            if root in taken:
                copies[name] = clone(gradient)
            taken.add(root)
    if not copies:
        return backward
    output = tuple([copies.get(p.name, p) if isinstance(p, TensorProxy) else p for p in backward.output])
    return backward.replace(bound_symbols=(*backward.bound_symbols, *builder.bound_symbols), output=output)


def _viewed(trace: Trace) -> dict[str, str]:
    """Return of each view, by name, what it is a view of in the end."""
    found: dict[str, str] = {}
    for bound in trace.bound_symbols:
        if bound.has_tag(OpTags.VIEW):
            viewed: Sequence[str] = [p.name for p in bound.inputs if isinstance(p, TensorProxy)][:1]
            for name in viewed:
                found.update([(made.name, found.get(name, name)) for made in bound.outputs])
    return found


__all__ = ["gradients_apart"]
