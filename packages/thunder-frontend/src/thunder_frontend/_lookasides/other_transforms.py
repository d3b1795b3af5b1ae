"""What PyTorch has for transforming functions, met inside of a program: the levels on which ``torch.func`` is built."""

from __future__ import annotations

from typing import Any

import torch
from torch import _vmap_internals
from torch._functorch import eager_transforms, vmap
from torch.autograd import forward_ad
from torch.utils import _pytree as pytree

from thunder_frontend._acquiring import Acquiring
from thunder_frontend._lookasides import transform_calls
from thunder_interpreter import Interpreted
from thunder_tracing.derivatives.derivative_levels import Derivatives

PLACES = (torch._C._functorch, vmap, eager_transforms, forward_ad, _vmap_internals)
"""Where PyTorch's functions for levels are: those in C, what some versions put around them, what is built on them."""
FOUND = tuple([named for place in PLACES for named in vars(place).items()])
"""What is there, by name, before user code replaces any of it."""


def transforms(acquisition: Acquiring) -> dict[Any, Any]:
    """Return what is run in place of the functions on which ``torch.func``'s transforms are built."""
    batches, derivatives = acquisition.batches, Derivatives(acquisition)
    of_levels = {
        "_vmap_increment_nesting": batches.enter,
        "_vmap_decrement_nesting": batches.leave,
        "_add_batch_dim": batches.add,
        "_remove_batch_dim": batches.remove,
        "is_batchedtensor": batches.is_batched,
        "_grad_increment_nesting": derivatives.enter_grad,
        "_grad_decrement_nesting": derivatives.leave_grad,
        "_wrap_for_grad": derivatives.wrap,
        "_unwrap_for_grad": derivatives.unwrap,
        "_jvp_increment_nesting": derivatives.enter_dual,
        "_jvp_decrement_nesting": derivatives.leave_dual,
        "enter_jvp_nesting": derivatives.enter_dual,
        "exit_jvp_nesting": derivatives.leave_dual,
        "enter_dual_level": derivatives.enter_dual,
        "exit_dual_level": lambda level=None: derivatives.leave_dual(),
        "make_dual": derivatives.make_dual,
        "unpack_dual": derivatives.unpack_dual,
        "_set_tensor_requires_grad": derivatives.differentiable,
        "_autograd_grad": derivatives.gradients,
        "lazy_load_decompositions": lambda: None,
        "_flat_vmap": Interpreted(transform_calls.flat_vmap),
        "_vmap": Interpreted(transform_calls.vmap_with_none),
        "linearize": Interpreted(transform_calls.linearize),
        "functionalize": lambda func, *, remove="mutations": func,  # programs are functional in the end
    }
    return {function: of_levels[name] for name, function in FOUND if name in of_levels} | {
        transform_calls.begin_batch: batches.enter,
        transform_calls.end_batch: lambda level, results: batches.end(level, pytree.tree_leaves(results)),
        transform_calls.leave_batch: batches.leave,
        transform_calls.begin_linear: derivatives.begin_linear,
        transform_calls.unknown_tangent: derivatives.unknown_tangent,
        transform_calls.end_linear: derivatives.end_linear,
    }
