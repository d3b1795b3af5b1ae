"""What autograd forbids: writes to leaves, and to views whose history it cannot write again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from thunder_guards.errors import AcquisitionError
from thunder_ir import TensorProxy, flat_proxies
from thunder_torch.names import last_name
from thunder_torch.traits import Trait, has_trait
from thunder_tracing.tensors.storage import View
from thunder_tracing.tensors.traced_tensor import TracedTensor


def base_of(tensor: TracedTensor) -> TracedTensor:
    """Return the tensor whose history in autograd a view has a part in; the tensor itself if it is no view."""
    while tensor._leaf is None and tensor._viewed_as is not None and not tensor._viewed_as.cuts:
        tensor = tensor._viewed_as.parent
    return tensor


def is_stale(tensor: TracedTensor) -> bool:
    """Whether what a view views was written to since it was made, so that autograd writes its history again."""
    return tensor._made != tensor._versions.count


def was_recorded(tensor: TracedTensor) -> bool:
    """Whether autograd recorded a write, of which the tensor has its history."""
    past: TracedTensor | None = base_of(tensor)
    while past is not None:
        if past._recorded:
            return True
        past = past._past
    return False


def is_unconnected(tensor: TracedTensor) -> bool:
    """Whether a view requires grad because its base does now, though it was made where autograd recorded nothing.

    Raises:
        AcquisitionError: it does, and is connected to its base all the same, as there were writes.
    """
    if tensor._viewed_as is None or tensor._proxy.requires_grad or not tensor._proxy.dtype.is_inexact:
        return False
    base = base_of(tensor)
    if base is tensor:
        return False
    while base._became is not None:
        base = base._became
        if base._leaf is not None and base._leaf.is_view:
            return False
    if not base._proxy.requires_grad:
        return False
    if is_stale(tensor) and fixed_reason(tensor) is None:
        raise AcquisitionError(
            "a tensor was made to require grad after a view of it was written to, and PyTorch takes the view for "
            "computed from the tensor from then on; call requires_grad_() first, or make the view after it"
        )
    return True


def was_parted(tensor: TracedTensor) -> bool:
    """Whether autograd takes for views of one tensor what shares no memory, as that was given other by ``.data``."""
    base = base_of(tensor)
    if base._became is not None and not base._became._viewed_as.in_place:
        return True
    past = base._past
    if past is None:
        return False
    return base_of(past) is not past or any([base_of(view) is past for view in past._memory.views])


def has_parted_views(tensor: TracedTensor) -> bool:
    """Whether a tensor that was given other memory by ``.data`` was a view of this one, or of what it was."""
    past: TracedTensor | None = tensor
    while past is not None:
        changed = [view._became for view in past._memory.views if view._became is not None]
        if any([now is not tensor and not now._viewed_as.in_place for now in changed]):
            return True
        past = past._past
    return False


def fixed_reason(tensor: TracedTensor) -> str | None:
    """Say why autograd cannot write the history of a view again; ``None`` if it can."""
    view: View | None = tensor._viewed_as
    while tensor._leaf is None and view is not None and not view.cuts:
        if view.fixed is not None:
            return view.fixed
        if not view.tracked and not view.in_place:
            return "A view was created in no_grad mode"
        if view.index is not None and has_trait(view.function, Trait.ONE_NODE):
            return f"Output {view.index} of {last_name(view.function)} is a view"
        tensor, view = view.parent, view.parent._viewed_as
    return None


def check_written(tensor: TracedTensor, requires_grad: bool) -> None:
    """Refuse a write that autograd sees to a view whose history cannot be written again.

    Args:
        tensor: what is written to.
        requires_grad: whether that, or what is written, requires grad.
    """
    if not torch.is_grad_enabled():
        return
    reason = fixed_reason(tensor)
    if reason is not None and (requires_grad or base_of(tensor)._proxy.requires_grad):
        raise RuntimeError(f"{reason} and is being modified inplace with grad mode enabled, which autograd forbids.")


def check_reads(function: object, output: object, arguments: Iterable[Any]) -> None:
    """Refuse the use of a view whose history would have to be written again, because what it views was written to.

    Args:
        function: what is called.
        output: proxies of what it returned: of floats, or autograd does not ask.
        arguments: of the call.
    """
    if not torch.is_grad_enabled() or getattr(function, "__name__", "") == "detach":
        return
    if any([isinstance(p, TensorProxy) and p.dtype.is_inexact for p in flat_proxies(output)]):
        for argument in arguments:
            for tensor in argument if isinstance(argument, (tuple, list)) else (argument,):
                if isinstance(tensor, TracedTensor):
                    check_history(tensor)


def check_history(tensor: TracedTensor) -> None:
    """Look at the history of a view, which is written again if what it views was written to.

    Raises:
        RuntimeError: it cannot be.
    """
    reason = outdated(tensor)
    if reason is not None:
        raise RuntimeError(reason)
    tensor._has_node |= is_stale(tensor) and base_of(tensor)._proxy.requires_grad


def outdated(tensor: TracedTensor) -> str | None:
    """Say why autograd would refuse to look at the history of a view; ``None`` if it would not."""
    if not is_stale(tensor) or not base_of(tensor)._proxy.requires_grad:
        return None
    reason = fixed_reason(tensor)
    if reason is None:
        return None
    return f"{reason} and its base or another view of its base has been modified inplace, which autograd forbids."
