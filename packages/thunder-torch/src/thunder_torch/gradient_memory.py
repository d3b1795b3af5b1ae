"""Where gradients lie: autograd makes the first that comes to a leaf its ``grad`` and adds others to it."""

from __future__ import annotations

import torch

from thunder_ir import BoundSymbol, Builder, OpTags, TensorProxy, Trace, recording
from thunder_ir.passes import trace_pass
from thunder_lang import clone
from thunder_torch.language import symbol_of, torch_language
from thunder_torch.lone_results import roots_of
from thunder_torch.row_order import in_rows, is_in_rows


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
    roots = roots_of(backward)
    views = [name for name in gradients if roots[name] != name]
    if not views:
        return backward
    taken = {*[p.name for p in backward.inputs[:saved]], *[name for name in gradients if roots[name] == name]}
    builder = Builder(backward.names(), torch_language)
    copies = {}
    with recording(builder):
        for name in views:
            if roots[name] in taken:
                copies[name] = clone(gradients[name])
            taken.add(roots[name])
    if not copies:
        return backward
    output = tuple([copies.get(p.name, p) if isinstance(p, TensorProxy) else p for p in backward.output])
    return backward.replace(bound_symbols=(*backward.bound_symbols, *builder.bound_symbols), output=output)


def own_gradient(gradient: TensorProxy, leaf: TensorProxy, made_by: BoundSymbol | None) -> TensorProxy:
    """Record what makes a gradient a tensor of its own, row by row where its leaf lies so, as in what autograd leaves.

    Args:
        gradient: of ``leaf``.
        leaf: an input of the program.
        made_by: the call that computed the gradient into memory of its own; ``None`` where it may share some.
    """
    in_order = is_in_rows(leaf)
    if made_by is None:
        options = {"memory_format": torch.contiguous_format} if in_order else {}
        copy: TensorProxy = symbol_of(torch.clone)(gradient, **options)
        return copy
    return in_rows(gradient) if in_order and gradient.ndim > 1 and not made_by.has_tag(OpTags.MATMUL) else gradient
