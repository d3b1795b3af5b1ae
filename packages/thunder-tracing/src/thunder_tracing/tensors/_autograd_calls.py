"""What user code asks a tensor about its place in autograd, and how it changes that: leaves, gradients, ``data``."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from thunder_guards.errors import AcquisitionError, DataDependentError
from thunder_tracing.tensors._handlers import answers
from thunder_tracing.tensors._metadata_writes import MetadataWrite
from thunder_tracing.tensors.histories import check_history
from thunder_tracing.tensors.metadata_calls import getter
from thunder_tracing.tensors.storage import count_apart, count_metadata_write
from thunder_tracing.tensors.write_calls import WriteCalls

T = torch.Tensor
NATIVE: Any = torch.Tensor


@answers(getter("requires_grad"))
def _requires_grad(calls: WriteCalls, tensor: T) -> bool:
    return calls.requires_grad(calls.traced(tensor))


INSIDE_A_TRANSFORM = (
    "You are attempting to call Tensor.requires_grad_() (or perhaps using torch.autograd.functional.* APIs) inside of "
    "a function being transformed by a functorch transform. This is unsupported, please attempt to use the functorch "
    "transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call requires_grad_() outside of a function being "
    "transformed instead."
)
"""What PyTorch says of it."""


@answers(T.requires_grad_, NATIVE.requires_grad.__set__)
def _requires_grad_in_place(calls: WriteCalls, tensor: T, requires_grad: bool = True) -> Any:
    traced = calls.traced(tensor)
    before = calls.value(traced)
    if calls.requires_grad(traced) == requires_grad:
        return tensor
    if not requires_grad and not calls.leaves.is_leaf(traced):
        if calls.leaves.is_taken_for_leaf(traced):
            return tensor  # it goes on to require grad, as its base does
        raise RuntimeError("you can only change requires_grad flags of leaf variables.")
    if requires_grad and not before.dtype.is_inexact:
        raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")
    if requires_grad and calls.levels.stack:
        raise RuntimeError(INSIDE_A_TRANSFORM)
    calls.changes += 1
    with torch._C.DisableTorchFunctionSubclass():
        (calls.leaves.begin if requires_grad else calls.leaves.end)(traced)
    return tensor


@answers(T.detach_, torch.detach_)
def _detach_in_place(calls: WriteCalls, tensor: T) -> Any:
    if torch.is_inference_mode_enabled():  # which leaves alone what autograd knows
        return tensor
    traced = calls.traced(tensor)
    was = traced
    while was._past is not None or was._viewed_as is not None and was._viewed_as.in_place:
        was = was._past if was._past is not None else was._viewed_as.parent
    viewed = was._viewed_as is not None and was.source is None and not was._viewed_as.cuts
    if viewed or calls.is_view(traced):
        raise RuntimeError("Can't detach views in-place. Use detach() instead.")
    if not calls.value(traced).requires_grad:
        return tensor
    calls.changes += 1
    with torch._C.DisableTorchFunctionSubclass():
        if traced._leaf is not None:
            calls.leaves.end(traced)
        else:
            calls.change(traced, MetadataWrite(T.detach_, (), {}, torch.is_grad_enabled()), T.detach)
    return tensor


@answers(getter("is_leaf"))
def _is_leaf(calls: WriteCalls, tensor: T) -> bool:
    traced = calls.traced(tensor)
    check_history(traced)
    return calls.leaves.is_leaf(traced)


@answers(getter("grad_fn"))
def _grad_fn(calls: WriteCalls, tensor: T) -> Any:
    check_history(calls.traced(tensor))
    if not calls.value(tensor).requires_grad or calls.leaves.is_leaf(calls.traced(tensor)):
        return None
    raise DataDependentError(
        "grad_fn of a tensor inside a compiled program does not exist; the program is differentiated as a whole"
    )


def _kept_by_autograd(name: str, calls: WriteCalls, tensor: T) -> Any:
    """Return which value an attribute has that autograd keeps of a tensor."""
    traced = calls.traced(tensor)
    outside = traced.source is not None and traced.given is not None
    with torch._C.DisableTorchFunction():
        value = getattr(traced.given if outside else tensor, name)
    return calls.external.read(traced.source, "attribute", name, value) if outside else value


for _name in ("_backward_hooks", "_post_accumulate_grad_hooks", "grad_dtype"):
    if hasattr(T, _name):
        answers(getter(_name))(partial(_kept_by_autograd, _name))


@answers(getter("retains_grad"))
def _retains_grad(calls: WriteCalls, tensor: T) -> Any:
    return calls.traced(tensor)._retains or _kept_by_autograd("retains_grad", calls, tensor)


@answers(T.retain_grad)
def _retain_grad(calls: WriteCalls, tensor: T) -> None:
    """What has a ``grad`` anyway retains it."""
    traced = calls.traced(tensor)
    if not calls.requires_grad(traced):
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if calls.leaves.is_leaf(traced):
        return
    if traced.source is not None:
        raise AcquisitionError(
            f"retain_grad() inside of a compiled program, of {traced.source}, which was computed outside, is not "
            "supported; call it outside"
        )
    calls.leaves.retain(traced)


@answers(getter("grad"))
def _grad(calls: WriteCalls, tensor: T) -> Any:
    return calls.leaves.gradient(calls.traced(tensor))


@answers(NATIVE.grad.__set__, NATIVE.grad.__delete__)
def _set_grad(calls: WriteCalls, tensor: T, value: object = None) -> None:
    calls.leaves.set_gradient(calls.traced(tensor), value)


@answers(T.backward)
def _backward(calls: WriteCalls, tensor: T, *args: Any, **kwargs: Any) -> None:
    calls.inner_backward(tensor, *args, **kwargs)


@answers(getter("data"))
def _data(calls: WriteCalls, tensor: T) -> Any:
    made = calls.traced(calls(T.detach, (tensor,), {}))
    count_apart(made)
    return made


@answers(NATIVE.data.__set__)
def _set_data(calls: WriteCalls, tensor: T, value: torch.Tensor) -> None:
    with torch._C.DisableTorchFunctionSubclass():
        calls.exchange_memory(calls.traced(tensor), calls.traced(value))


@answers(T.set_)
def _set(calls: WriteCalls, tensor: T, source: object = None, *place: Any) -> Any:
    if not isinstance(source, T) or place:
        raise AcquisitionError(
            "set_() with a storage, or with nothing, is not supported inside of a compiled program; "
            "pass a tensor, such as one made with as_strided()"
        )
    if calls.value(tensor).requires_grad or calls.value(source).requires_grad:
        raise AcquisitionError("set_() of what requires grad is not supported inside of a compiled program; use .data")
    _set_data(calls, tensor, source)
    count_metadata_write(calls.traced(tensor))
    return tensor
