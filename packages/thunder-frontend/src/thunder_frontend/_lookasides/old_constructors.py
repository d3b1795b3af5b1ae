"""PyTorch's old constructors, given tensors: ``torch.Tensor([x.sum(), 1.0])``."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from thunder_frontend._acquiring import Acquiring
from thunder_interpreter import DECLINED
from thunder_ir import values_in

T = torch.Tensor
OLD_CONSTRUCTORS = (T, *[kind for kind in torch._tensor_classes if not kind.is_cuda and not kind.is_sparse])
INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def of_old_constructors(calls: Acquiring) -> dict[Any, Any]:
    """Return what PyTorch's old constructors do that are given tensors: ``torch.Tensor([x.sum(), 1.0])``."""
    return {kind: partial(_old_constructor, calls, kind) for kind in OLD_CONSTRUCTORS}


def _old_constructor(calls: Acquiring, kind: Any, *args: Any, **kwargs: Any) -> Any:
    """Make a tensor of the values of those in nested sequences, or a view of a tensor as a whole."""
    if len(args) != 1 or kwargs or not isinstance(args[0], (T, list, tuple)):
        return DECLINED
    held = [value for value in values_in(args[0]) if isinstance(value, T)]
    if not held:
        return DECLINED
    with torch._C.DisableTorchFunction():
        if args[0] is held[0]:
            if kind is not T and held[0].dtype is not kind.dtype:
                raise TypeError(
                    f"{kind.__name__} of a tensor wants {kind.dtype}, got {held[0].dtype}; convert it before"
                )
            return calls(T.view_as, (held[0], held[0]), {})
        calls.external.unwatched.escapes(args[0])
        dtype = torch.get_default_dtype() if kind is T else kind.dtype
        if dtype in INTEGERS and not all([t.dtype in (*INTEGERS, torch.bool) for t in held]):
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return calls(torch.tensor, args, {"dtype": dtype, "device": "cpu"})
