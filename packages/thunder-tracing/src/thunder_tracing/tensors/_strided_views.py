"""``as_strided``: recorded as a view of all of the memory, of which the program has the values, where that is known."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch

from thunder_guards.errors import AcquisitionError
from thunder_guards.memory import check_in_bounds, covers, is_dense, part_of, shows_only
from thunder_ir import OpTags
from thunder_torch.specs import storage_key
from thunder_torch.unknown_sizes import has_unknown_sizes
from thunder_tracing.tensors._handlers import answers_each
from thunder_tracing.tensors.calls import Calls
from thunder_tracing.tensors.histories import fixed_reason
from thunder_tracing.tensors.storage import place_is_known
from thunder_tracing.tensors.symbolic_numbers import with_numbers
from thunder_tracing.tensors.traced_tensor import TracedTensor

T = torch.Tensor


@answers_each(T.as_strided, torch.as_strided)
def _as_strided(function: Any, calls: Calls, input: Any, *args: Any, **kwargs: Any) -> Any:
    args, kwargs = with_numbers(function, (input, *args), kwargs, calls.number_of)
    with torch._C.DisableTorchFunctionSubclass():
        tensor = calls.traced(input)
        fixed = fixed_reason(tensor)
        view, *given = _from_the_root(calls, *args, **kwargs)
        fails = () if place_is_known(tensor) else (OpTags.MAY_FAIL,)
        with calls.builder.tagged(*fails):
            return calls.record(view, tuple(given), {}, fixed=fixed)


def _from_the_root(
    calls: Calls, input: Any, size: Iterable[Any], stride: Iterable[Any], storage_offset: int | None = None
) -> tuple[Any, ...]:
    """Return a function and arguments that do what ``as_strided`` does, from all of the memory if it is dense.

    Args:
        calls: those in progress.
        input, size, stride, storage_offset: as of ``torch.as_strided``.

    Raises:
        AcquisitionError: PyTorch drops gradients that such a view would need.
        RuntimeError: it reaches beyond the memory, in PyTorch's words.
    """
    tensor = calls.traced(input)
    if not place_is_known(tensor):
        return (T.as_strided, tensor, size, stride, storage_offset)
    base, here = tensor, calls.layouts.fake(tensor)
    if calls.symbolic and tensor._memory.outside and tensor._memory.version:  # elements beside those that it wrote
        size, stride = tuple([int(n) for n in size]), tuple([int(n) for n in stride])
        storage_offset = None if storage_offset is None else int(storage_offset)
    if not calls.symbolic:
        held = tensor._memory.root.given  # the example of a part of it may have no more memory than that
        check_in_bounds(here, size, stride, storage_offset, (here if held is None else held).untyped_storage().nbytes())
    start = int(here.storage_offset()) if storage_offset is None else storage_offset
    if storage_offset is not None:
        calls.layouts.offset(tensor)  # which tells how far from it that is
    fits = _offset_within(calls, base, size, stride, start) is not None
    while (
        base._viewed_as is not None
        and base._viewed_as.parent._proxy.dtype is tensor._proxy.dtype
        and (not base._viewed_as.detaches or not fits and _lies_within(base))
    ):
        base = base._viewed_as.parent
        fits = _offset_within(calls, base, size, stride, start) is not None
    whole = calls.layouts.fake(base)
    if not fits and base.given is not None:
        if tensor._memory.version:
            raise AcquisitionError(
                "as_strided() of a tensor that the program wrote to shows elements beside those of the tensor; use "
                "as_strided() of the tensor that has them all, or call it before the write"
            )
        calls.reached.add(storage_key(base.given))  # elements beside those of the tensor
    elif not fits and base._leaf is not None and not calls.symbolic and not shows_only(here, size, stride, start):
        raise AcquisitionError(
            "as_strided() of what a program made shows elements beside those of the tensor; use as_strided() of the "
            "tensor that has them all"
        )
    if base is tensor and whole.is_contiguous() and whole.storage_offset() == 0 or not fits:
        return (T.as_strided, tensor, size, stride, storage_offset)
    if calls.value(tensor).requires_grad and torch.is_grad_enabled():
        with torch._C.DisableTorchFunction():
            if not shows_only(here, size, stride, start):
                raise AcquisitionError(
                    "as_strided() of a view that requires grad shows elements beside those of the view, of which "
                    "PyTorch drops the gradients; use as_strided() of the tensor that has them all, or detach()"
                )
    return (part_of, base, size, stride, _offset_within(calls, base, size, stride, start))


def _offset_within(calls: Calls, base: TracedTensor, size: object, stride: object, start: int) -> int | None:
    """Return where in the elements of ``base`` a view by strides starts; ``None`` if it reaches beyond them."""
    whole = calls.layouts.fake(base)
    offset = start - int(whole.storage_offset())
    elements = (
        whole.numel() if has_unknown_sizes([base._proxy]) else math.prod(base._proxy.shape)
    )  # symbolic sizes compare
    return offset if is_dense(whole) and covers(elements, size, stride, offset) else None


def _lies_within(tensor: TracedTensor) -> bool:
    """Whether an input without a history is a part of memory that the program has as a whole."""
    return tensor._viewed_as.apart and not tensor._proxy.requires_grad
