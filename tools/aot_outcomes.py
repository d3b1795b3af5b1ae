"""What becomes of a case of ahead-of-time compilation: facts that are equal for eager and for what stands for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from aot_cases import Case, Pair
from torch.utils import _pytree as pytree

T = torch.Tensor


def outcomes(one: Case, run: Callable[..., Any], grad: bool) -> Iterator[tuple[str, Any]]:
    """Yield facts of calls of a case's function, or of what stands for it: two runs of the same are equal.

    Args:
        one: the case.
        run: what is called in place of the function.
        grad: whether gradients are wanted.
    """
    for step in range(one.sizes + 1):
        torch.manual_seed(step)
        leaves, args = one.make(grad, step) if one.sizes else one.make(grad)
        result = run(*args)
        found = [t for t in pytree.tree_leaves(result) if isinstance(t, T)]
        others = [v for v in pytree.tree_leaves(result) if not isinstance(v, T)]
        given = [t for t in pytree.tree_leaves(args) if isinstance(t, T)]
        tensors = [*found, *given]
        yield "structure", (str(pytree.tree_structure(result)), others)
        yield "values", [plain(t) for t in tensors]
        yield "metadata", [(t.dtype, tuple(t.shape), t.stride(), t.requires_grad) for t in tensors]
        yield "objects", [next(k for k, other in enumerate(tensors) if other is t) for t in tensors]
        yield "memory", [next(k for k, other in enumerate(tensors) if shared(other, t)) for t in tensors]
        yield "gradients", gradients_of(leaves, found, given)
        if found and not isinstance(found[0], Pair) and not is_overlapping(found[0]):
            found[0].detach().mul_(2)
            yield "values after a write to a result", [plain(t) for t in tensors]


def plain(tensor: T) -> Any:
    """Return a copy of what a tensor holds."""
    if isinstance(tensor, Pair):
        return [tensor.a.detach().clone(), tensor.b.detach().clone()]
    return tensor.detach().clone()


def shared(a: T, b: T) -> bool:
    """Whether tensors share memory."""
    if isinstance(a, Pair) or isinstance(b, Pair):
        return a is b
    return a.untyped_storage()._cdata == b.untyped_storage()._cdata


def is_overlapping(tensor: T) -> bool:
    """Whether elements of a tensor share memory, so that it cannot be written to."""
    return any([stride == 0 and size > 1 for size, stride in zip(tensor.shape, tensor.stride(), strict=True)])


def gradients_of(leaves: list[T], found: list[T], given: list[T]) -> list[T]:
    """Return the gradients of the sum of squares of all that requires grad; zeros where there are none."""
    wanted = [t for t in leaves if t.requires_grad]
    reached = [t for t in (*found, *given) if t.requires_grad and t.is_floating_point()]
    reached = list({id(t): t for t in reached}.values())
    if not wanted or not reached:
        return []
    torch.manual_seed(1)
    loss = sum([(t * torch.rand_like(t)).double().pow(2).sum() for t in reached], torch.zeros((), dtype=torch.float64))
    gradients = torch.autograd.grad(loss, wanted, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g.clone() for g, x in zip(gradients, wanted, strict=True)]


__all__ = ["outcomes"]
