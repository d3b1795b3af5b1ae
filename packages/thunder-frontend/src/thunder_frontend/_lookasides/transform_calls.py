"""What is interpreted in place of functions of ``torch.func``: the innermost one of ``vmap``, and ``linearize``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._functorch.eager_transforms import safe_unpack_dual
from torch._functorch.vmap import _create_batched_inputs, _unwrap_batched
from torch.autograd import forward_ad
from torch.utils import _pytree as pytree


def begin_batch(size: object, randomness: str) -> int:
    """Begin a level of ``torch.vmap``; the acquisition answers."""
    raise RuntimeError(f"a batch of {size} begins outside of an acquisition")


def end_batch(level: int, results: object) -> None:
    """End what :func:`begin_batch` began, with the results; the acquisition answers."""
    raise RuntimeError(f"batch {level} ends outside of an acquisition")


def leave_batch() -> None:
    """End what :func:`begin_batch` began, with results or an exception; the acquisition answers."""
    raise RuntimeError("a batch is left outside of an acquisition")


def flat_vmap(
    function: Callable[..., Any],
    size: Any,
    in_dims: list[int | None],
    args: list[Any],
    structure: Any,
    out_dims: Any,
    randomness: str,
    **kwargs: Any,
) -> Any:
    """Call ``function`` for all examples of a batch, as ``torch.vmap`` does once it has looked at its arguments."""
    level = begin_batch(size, randomness)
    try:
        results = function(*_create_batched_inputs(in_dims, args, level, structure), **kwargs)
        end_batch(level, results)
        return _unwrap_batched(results, out_dims, level, size, function)
    finally:
        leave_batch()


def vmap_with_none(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, allow_none_pass_through: bool = False
) -> Callable[..., Any]:
    """Do what ``torch.autograd``'s own ``vmap`` does, whose function may return ``None`` among tensors."""

    def batched(*args: Any) -> Any:
        structures, places = [], []

        def without_none(*examples: Any) -> Any:
            leaves, structure = pytree.tree_flatten(func(*examples))
            structures.append(structure)
            places.extend([leaf is not None for leaf in leaves])
            return tuple([leaf for leaf in leaves if leaf is not None])

        found = iter(torch.vmap(without_none, in_dims, out_dims)(*args))
        return pytree.tree_unflatten([next(found) if there else None for there in places], structures[0])

    return batched if allow_none_pass_through else torch.vmap(func, in_dims, out_dims)


def begin_linear() -> int:
    """Begin a level of forward derivatives along tangents yet to come; the acquisition answers."""
    raise RuntimeError("a function is linearized outside of an acquisition")


def unknown_tangent(primal: torch.Tensor) -> torch.Tensor:
    """Return what stands for a tangent; the acquisition answers."""
    raise RuntimeError(f"a tangent of shape {tuple(primal.shape)} is made outside of an acquisition")


def end_linear(tangents: list[Any], results: list[Any]) -> Any:
    """End what :func:`begin_linear` began; return what pushes tangents, or ``None`` for an exception."""
    raise RuntimeError(f"a level of {len(tangents)} tangents and {len(results)} results ends outside of an acquisition")


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Do what ``torch.func.linearize`` does: the part that depends on tangents is recorded once, for each use."""
    flat, structure = pytree.tree_flatten(primals)
    tangents, results, push = [], [], None
    begin_linear()
    try:
        tangents = [unknown_tangent(p) for p in flat]
        make: Any = forward_ad.make_dual
        duals = [make(p, t) for p, t in zip(flat, tangents, strict=True)]
        output = func(*pytree.tree_unflatten(duals, structure))
        leaves, of_output = pytree.tree_flatten(output)
        results = [safe_unpack_dual(leaf, False)[1] for leaf in leaves]
    finally:
        push = end_linear(tangents, results)

    def jvp_fn(*given: Any) -> Any:
        leaves, of_given = pytree.tree_flatten(given)
        if of_given != structure:
            raise RuntimeError(f"Expected the tangents {of_given} to have the same argspec as the primals {structure}")
        for index, (tangent, primal) in enumerate(zip(leaves, flat, strict=True)):
            for what in ("shape", "device", "dtype"):
                if getattr(tangent, what) != getattr(primal, what):
                    raise RuntimeError(
                        f"tangent:{index} with {what} {getattr(tangent, what)} in flattened pytree doesn't match the "
                        f"{what} {getattr(primal, what)} of the corresponding primal."
                    )
        return pytree.tree_unflatten(push(leaves), of_output)

    return output, jvp_fn
