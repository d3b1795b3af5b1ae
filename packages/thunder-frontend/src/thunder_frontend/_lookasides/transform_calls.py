"""What is interpreted in place of functions of ``torch.func``: the innermost one of ``vmap``, and ``linearize``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._functorch import vmap
from torch._functorch.eager_transforms import safe_unpack_dual
from torch.autograd import forward_ad
from torch.utils import _pytree as pytree

from thunder_frontend._library_code.module_calls import answered

begin_batch = answered("begin_batch")
"""``(size, randomness)``: begins a level of ``torch.vmap``."""
end_batch = answered("end_batch")
"""``(level, results)``: ends what :func:`begin_batch` began, with the results."""
leave_batch = answered("leave_batch")
"""Ends what :func:`begin_batch` began, with results or an exception."""
begin_linear = answered("begin_linear")
"""Begins a level of forward derivatives along tangents yet to come."""
unknown_tangent = answered("unknown_tangent")
"""``(primal)``: returns what stands for a tangent."""
end_linear = answered("end_linear")
"""``(tangents, results)``: ends what :func:`begin_linear` began; returns what pushes tangents, if there is a result."""


def flat_vmap(
    function: Callable[..., Any],
    size: Any,
    in_dims: list[int | None],
    args: list[Any],
    structure: pytree.TreeSpec,
    out_dims: int | tuple[int, ...] | None,
    randomness: str,
    **kwargs: Any,
) -> Any:
    """Call ``function`` for all examples of a batch, as ``torch.vmap`` does once it has looked at its arguments.

    Libraries put functions of their own in the place of PyTorch's, as tensordict does for its tables of tensors.
    """
    level = begin_batch(size, randomness)
    try:
        results = function(*vmap._create_batched_inputs(in_dims, args, level, structure), **kwargs)
        end_batch(level, results)
        return vmap._unwrap_batched(results, out_dims, level, size, function)
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
