"""What PyTorch has for transforming functions, met inside of a program: ``torch.compile``, ``torch.func``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from thunder_frontend.errors import AcquisitionError

NOT_INSIDE = (
    "grad",
    "grad_and_value",
    "vmap",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "vjp",
    "functionalize",
)


def compiled_by_torch(function: Any) -> Any:
    """Return what ``torch.compile`` was given to make ``function``, or ``None`` if that did not make it."""
    if type(function).__module__ == "torch._dynamo.eval_frame":
        return getattr(function, "_orig_mod", None)
    return getattr(function, "__dict__", {}).get("_torchdynamo_orig_callable")


def leave_uncompiled(model: Any = None, **options: Any) -> Any:
    """Do what ``torch.compile`` does inside of a program, which is compiled as a whole."""
    return model if model is not None else lambda inner: inner


def refusals() -> dict[Any, Callable[..., Any]]:
    """Return what raises in place of each of ``torch.func``'s transforms."""
    return {getattr(torch.func, name): _refusal(name) for name in NOT_INSIDE if hasattr(torch.func, name)}


def _refusal(name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AcquisitionError(
            f"torch.func.{name} inside of a compiled program is not supported; use torch.autograd.grad inside, or "
            f"apply torch.func.{name} to the whole function, outside"
        )

    return refuse


__all__ = ["compiled_by_torch", "leave_uncompiled", "refusals"]
