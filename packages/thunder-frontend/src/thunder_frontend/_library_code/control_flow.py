"""What is interpreted in place of PyTorch's operators that take functions: loops over what is known are written out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch._higher_order_ops.associative_scan import associative_scan_op, generic_associative_scan
from torch._higher_order_ops.cond import cond_op
from torch._higher_order_ops.flex_attention import flex_attention, math_attention
from torch._higher_order_ops.map import map_impl
from torch._higher_order_ops.scan import scan_op
from torch._higher_order_ops.while_loop import while_loop_op
from torch.utils import _pytree as pytree

from thunder_frontend._library_code.module_calls import answered
from thunder_interpreter import Interpreted


def scan(
    combine: Callable[..., Any], init: Sequence[Any], xs: Sequence[Any], additional_inputs: Sequence[Any]
) -> tuple[Any, Any]:
    """Call ``combine(*carry, *slices)`` for slice after slice; it returns what is carried on, and a result."""
    carry, results = list(init), []
    structure: Any = None
    for index in range(xs[0].shape[0]):
        after, result = combine(*carry, *[x[index] for x in xs], *additional_inputs)
        leaves, structure = pytree.tree_flatten(after)
        for old, new in zip(carry, leaves, strict=True):
            if old.shape != new.shape or old.dtype != new.dtype:
                raise RuntimeError(
                    f"scan carries tensors of the same metadata on; got {new.dtype} of shape {tuple(new.shape)} for "
                    f"{old.dtype} of shape {tuple(old.shape)}"
                )
        carry = leaves
        results.append(result)
    return pytree.tree_unflatten(carry, structure), stacked(results)


def stacked(trees: Sequence[Any]) -> Any:
    """Return one pytree for several, of the stacks of their tensors."""
    flat = [pytree.tree_flatten(tree) for tree in trees]
    leaves = [torch.stack(parts) for parts in zip(*[leaves for leaves, _ in flat], strict=True)]
    return pytree.tree_unflatten(leaves, flat[0][1])


def map_slices(function: Callable[..., Any], xs: Sequence[Any], args: Sequence[Any]) -> Any:
    """Call ``function(*slices, *args)`` for slice after slice, and stack what it returns."""
    return stacked([function(*[x[i] for x in xs], *args) for i in range(xs[0].shape[0])])


def associative_scan(combine: Callable[..., Any], xs: Sequence[Any], additional_inputs: Sequence[Any]) -> Any:
    """Combine each slice with all before it, in as many steps as the logarithm of their number."""
    return generic_associative_scan(combine, xs, additional_inputs=additional_inputs)  # type: ignore[no-untyped-call]


choose = answered("choose")
"""``(pred, true_fn, false_fn, operands)``: does what ``torch.cond`` does for a tensor."""


def cond(pred: object, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Sequence[Any] = ()) -> Any:
    """Do what ``torch.cond`` does."""
    if isinstance(pred, torch.Tensor):
        return choose(pred, true_fn, false_fn, operands)
    return true_fn(*operands) if pred else false_fn(*operands)


WHILE_LOOP = while_loop_op

OPERATORS: dict[Any, Any] = {
    scan_op: Interpreted(scan),
    cond_op: Interpreted(cond),
    map_impl: Interpreted(map_slices),
    associative_scan_op: Interpreted(associative_scan),
    flex_attention: Interpreted(math_attention),
}
"""What is run in place of which operators."""


def without_index_mode(_acquisition: object, function: object) -> Any:
    """Return what stands for the mode that indexes by tensors without dimensions, which a program needs no mode for.

    The mode is known by its name: the module that defines it loads PyTorch's compilers.
    """
    if isinstance(function, type) and function.__module__ == _INDEX_MODE[0] and function.__name__ == _INDEX_MODE[1]:
        return nullcontext
    return None


_INDEX_MODE = ("torch._dynamo._trace_wrapped_higher_order_op", "TransformGetItemToIndex")

INTERPRETED_OPERATORS = tuple(
    [
        f"torch._higher_order_ops.{name}"
        for name in ("scan", "map", "associative_scan", "flex_attention", "cond", "while_loop", "utils")
    ]
)
"""Modules of PyTorch that check the arguments of these operators, and say in Python what they do."""
