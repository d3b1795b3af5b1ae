"""What PyTorch has for transforming functions, met inside of a program: ``torch.compile``, ``torch.func``."""

from __future__ import annotations

import types
from typing import Any

import torch
from torch import _vmap_internals
from torch._functorch import eager_transforms, vmap
from torch.autograd import forward_ad
from torch.utils import _pytree as pytree

from thunder_frontend._lookasides import transform_calls
from thunder_guards.errors import AcquisitionError
from thunder_guards.own_code import PACKAGES, package_of
from thunder_interpreter import Interpreted
from thunder_tracing.derivatives.derivative_levels import Derivatives

OF_LEVELS = tuple([
    (name, getattr(place, name))
    for place in (torch._C._functorch, vmap, eager_transforms, forward_ad, _vmap_internals)
    for name in (
        "_vmap_increment_nesting", "_vmap_decrement_nesting", "_add_batch_dim", "_remove_batch_dim",
        "is_batchedtensor", "_grad_increment_nesting", "_grad_decrement_nesting", "_wrap_for_grad", "_unwrap_for_grad",
        "_jvp_increment_nesting", "_jvp_decrement_nesting", "enter_jvp_nesting", "exit_jvp_nesting",
        "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual", "_set_tensor_requires_grad",
        "_autograd_grad", "lazy_load_decompositions", "_flat_vmap", "_vmap", "linearize", "functionalize",
    )
    if hasattr(place, name)
])  # fmt: skip
"""PyTorch's functions for levels: those in C, what some versions put around them, and what is built on them."""

INTERPRETED_TRANSFORMS = (
    "torch._functorch.apis", "torch._functorch.eager_transforms", "torch._functorch.vmap", "torch._vmap_internals",
    "torch.autograd.forward_ad",
    "torch._functorch.functional_call", "torch._functorch.deprecated", "torch.autograd.functional",
)  # fmt: skip
"""Modules of PyTorch whose functions are interpreted: they do in Python what levels do not."""


def compiled_by_torch(function: object) -> Any:
    """Return what ``torch.compile`` or ``torch.jit.script`` was given to make ``function``, or ``None`` if none did.

    Raises:
        AcquisitionError: ``torch.jit.trace`` made it, which kept of its function what one call of it did.
    """
    if type(function) is torch.jit.ScriptFunction:
        if hasattr(function, "__name__"):
            return function._torchdynamo_inline  # type: ignore[attr-defined]
        raise AcquisitionError(
            "what torch.jit.trace made of a function cannot be called in a program; call the function itself"
        )
    if type(function).__module__ == "torch._dynamo.eval_frame":
        return getattr(function, "_orig_mod", None)
    given: Any = getattr(function, "__dict__", {}).get("_torchdynamo_orig_callable")
    if getattr(given, "__globals__", {}).get("__name__") == "torch._dynamo.external_utils":
        return given.__wrapped__  # what PyTorch itself puts around a method of a module
    return given


def is_disabled(function: object) -> bool:
    """Whether a function is not to be compiled, as ``torch.compiler.disable`` says: PyTorch's own are."""
    own = getattr(function, "__dict__", {})
    inner = own.get("_torchdynamo_orig_callable")
    if type(function) is not types.FunctionType or own.get("_torchdynamo_disable") is not True or inner is None:
        return False
    return package_of(getattr(inner, "__module__", None)) not in PACKAGES | {"torch"}


def leave_uncompiled(model: object = None, **options: Any) -> Any:
    """Do what ``torch.compile`` does inside of a program, which is compiled as a whole."""
    return model if model is not None else lambda inner: inner


def transforms(acquisition: Any) -> dict[Any, Any]:
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
    return {function: of_levels[name] for name, function in OF_LEVELS} | {
        transform_calls.begin_batch: batches.enter,
        transform_calls.end_batch: lambda level, results: batches.end(level, _tensors_in(results)),
        transform_calls.leave_batch: batches.leave,
        transform_calls.begin_linear: derivatives.begin_linear,
        transform_calls.unknown_tangent: derivatives.unknown_tangent,
        transform_calls.end_linear: derivatives.end_linear,
    }


def _tensors_in(tree: object) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


__all__ = ["INTERPRETED_TRANSFORMS", "compiled_by_torch", "is_disabled", "leave_uncompiled", "transforms"]
