"""What PyTorch's compilers made, met inside of a program."""

from __future__ import annotations

import types
from typing import Any

import torch

from thunder_guards.errors import AcquisitionError
from thunder_guards.own_code import PACKAGES, package_of


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
    own = getattr(function, "__dict__", {})
    if function is torch.optim.Optimizer.zero_grad:
        return own.get("__wrapped__")  # which PyTorch keeps from its compiler; as it is it fixes all of the optimizer
    given: Any = own.get("_torchdynamo_orig_callable")
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


FLEXIBLE = ("torch.nn.attention.flex_attention", "flex_attention")
"""Module and name of PyTorch's attention that computes with the user's functions; importing it loads compilers."""


def is_compiled_attention(function: object) -> bool:
    """Whether ``torch.compile`` made a kernel of PyTorch's flexible attention: the plain one keeps all scores."""
    inner = getattr(function, "__dict__", {}).get("_torchdynamo_orig_callable")
    return (getattr(inner, "__module__", None), getattr(inner, "__name__", None)) == FLEXIBLE


def why_as_it_is(function: object) -> str | None:
    """Return why a function is called as it is, between two programs; ``None`` if what it does is compiled."""
    if is_disabled(function):
        return "torch.compiler.disable asks not to compile it"
    return "torch.compile makes a kernel of it" if is_compiled_attention(function) else None


def leave_uncompiled(model: object = None, **options: Any) -> Any:
    """Do what ``torch.compile`` does inside of a program, which is compiled as a whole."""
    return model if model is not None else lambda inner: inner
