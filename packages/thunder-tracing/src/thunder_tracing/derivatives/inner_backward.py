"""``backward()`` inside of a program: gradients go to the ``grad`` of its inputs and leaves, as the epilogue says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from thunder_autograd import gradients as gradients_of
from thunder_guards.errors import AcquisitionError
from thunder_guards.memory import is_dense
from thunder_ir import TensorProxy
from thunder_tracing.derivatives._freed_graphs import ancestors, check_not_freed, descendants, freed
from thunder_tracing.derivatives._intermediates import edges
from thunder_tracing.derivatives._retained_gradients import beneath_all_hooks, retain, retaining
from thunder_tracing.derivatives.backward_hooks import hooked
from thunder_tracing.derivatives.external_hooks import hooks_of
from thunder_tracing.derivatives.inner_gradients import check_recorded, cotangent, listed
from thunder_tracing.tensors.traced_tensor import TracedTensor
from thunder_tracing.tensors.write_calls import WriteCalls

T = torch.Tensor


def inner_backward(
    calls: WriteCalls,
    tensors: object,
    gradient: object = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: object = None,
) -> None:
    """Record what ``torch.autograd.backward`` does; its arguments but for the names.

    Args:
        calls: the acquisition.
        tensors: what is differentiated: a tensor or several.
        gradient: cotangents, as many.
        retain_graph: whether results can be differentiated again outside of the program.
        create_graph: whether the gradients have gradients.
        inputs: the leaves that get gradients; all that there are if not given.
    """
    with torch._C.DisableTorchFunction():
        results = [calls.traced(t) for t in listed(tensors)]
        given = [None] * len(results) if gradient is None else listed(gradient)
        for index, result in enumerate(results):
            if not calls.value(result).requires_grad:
                raise RuntimeError(f"element {index} of tensors does not require grad and does not have a grad_fn")
        bounds = calls.builder.bound_symbols
        reached = ancestors(bounds, [calls.value(r) for r in results])
        asked = None if inputs is None else [calls.traced(t) for t in listed(inputs)]
        names = {p.name for p in edges(calls, asked or ())}  # with the nodes of these
        gone_through = reached if asked is None else reached & descendants(bounds, names)
        check_not_freed(gone_through, calls.spent)
        leaves = _leaves(calls, reached, asked)
        _refuse_hooks(calls, leaves)
        inside = _inside(calls, reached, asked)
        passed = [b for b in bounds if any([p.name in gone_through for p in b.outputs])]
        at_once = calls.regions or hooked(calls, passed)  # hooks are called here, and what a region reads is its own
        if create_graph or inside or at_once:
            both = (*leaves, *beneath_all_hooks(calls, inside))
            options = {"create_graph": create_graph, "allow_unused": True}
            found: Sequence[Any] = calls.inner_gradients(results, both, given, **options)
        else:
            pairs = enumerate(zip(results, given, strict=True))
            cotangents = [cotangent(calls, index, calls.value(r), g) for index, (r, g) in pairs]
            found = _recorded(calls, results, cotangents, leaves)
        if not create_graph and not retain_graph:
            calls.spent.update(freed(bounds, gone_through - {_root(leaf).name for leaf in leaves}))
        for leaf, made in zip(leaves, found, strict=False):
            if made is not None:
                _accumulate(calls, leaf, made, create_graph)
        retain(calls, inside, found[len(leaves) :])


def _root(leaf: TracedTensor) -> TensorProxy:
    """Return the input of the program through which gradients of a leaf come."""
    return (leaf._leaf.input if leaf._leaf is not None else leaf._input).proxy  # type: ignore[no-any-return]


def _leaves(calls: WriteCalls, reached: set[str], asked: list[TracedTensor] | None) -> list[TracedTensor]:
    """Return the leaves whose gradients are accumulated."""
    if asked is not None:
        for tensor in asked:
            if tensor.source is not None and not calls.leaves.is_leaf(tensor):
                raise AcquisitionError(
                    f"backward(inputs=) inside of a compiled program would give {tensor.source}, which was computed "
                    "outside, a gradient; use torch.autograd.grad"
                )
            if tensor._leaf is None and calls.leaves.is_leaf(tensor) and "_input" not in vars(tensor):
                raise AcquisitionError(
                    "backward(inputs=) inside of a compiled program would give a view, which was made without "
                    "autograd, a gradient; make the view where autograd records it"
                )
        return [t for t in asked if calls.leaves.is_leaf(t) and _root(t).name in reached]
    found = [t for t in calls.leaves.possible() if _root(t).name in reached]
    for tensor in found:
        if tensor._leaf is None and not calls.ask(tensor, "is_leaf", tensor._input.example.is_leaf):
            raise AcquisitionError(
                f"backward() inside of a compiled program would go on into how {tensor.source} was computed outside of "
                "it; compute that inside as well, pass a detached tensor, or use torch.autograd.grad"
            )
    return found


def _inside(calls: WriteCalls, reached: set[str], asked: list[TracedTensor] | None) -> list[TracedTensor]:
    """Return the tensors on the way to the leaves that get gradients."""
    if asked is None:
        return retaining(calls, reached)
    for tensor in asked:
        if not calls.leaves.is_leaf(tensor):
            calls.leaves.retain(tensor)
    names = {p.name for p in edges(calls, asked)}
    bounds = calls.builder.bound_symbols
    through = names | descendants(bounds, names)
    return retaining(calls, through & reached)


def _refuse_hooks(calls: WriteCalls, leaves: Sequence[TracedTensor]) -> None:
    for leaf in leaves:
        for hooks in ("_backward_hooks", "_post_accumulate_grad_hooks"):
            if hooks_of(calls, leaf, hooks):
                raise AcquisitionError(
                    f"{leaf.source} has hooks on its gradient, which backward() inside of a compiled program would "
                    "have to call; call backward() outside"
                )


def _recorded(
    calls: WriteCalls,
    results: Sequence[TracedTensor],
    cotangents: Sequence[TensorProxy],
    leaves: Sequence[TracedTensor],
) -> list[TracedTensor]:
    """Record the call of the gradients, and return them."""
    wanted, values = tuple([_root(leaf) for leaf in leaves]), tuple([calls.value(r) for r in results])
    check_recorded(calls, wanted, values)
    made = gradients_of(values, tuple(cotangents), wanted)
    return [calls.wrap(p) for p in made]


def _accumulate(calls: WriteCalls, leaf: TracedTensor, gradient: TracedTensor, create_graph: bool) -> None:
    """Add to the ``grad`` of a leaf: in place, unless the sum shall have a derivative."""
    before = calls.leaves.gradient(leaf)
    if before is None:
        calls.leaves.set_gradient(leaf, gradient)
    elif create_graph:
        calls.leaves.set_gradient(leaf, calls(T.add, (before, gradient), {}))
    else:
        with torch.no_grad():
            calls(T.add_, (before, gradient), {})


def as_gradient(gradient: T, leaf: T) -> T:
    """Return a gradient laid out in memory as its leaf is, as PyTorch's accumulation does.

    One of another shape, of a leaf that was transposed in place since, stays as it is.
    """
    if gradient.shape != leaf.shape or gradient.stride() == leaf.stride() or not is_dense(leaf):
        return gradient
    return torch.empty_like(leaf, requires_grad=False).copy_(gradient)
