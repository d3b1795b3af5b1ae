"""Operations that only lay out the elements of a tensor: which they are, and what they return of a fake one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from thunder_ir import TensorProxy
from thunder_torch.convert import contiguous_strides, to_torch_dtype
from thunder_torch.fake_modes import plainly
from thunder_torch.places import is_basic
from thunder_torch.specs import spec_of_result, tensors_of
from thunder_torch.traits import Trait, has_trait


def is_only_view(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a call lays out the elements of its first argument, whatever they are, and reads no other tensor.

    Example:
        >>> import torch
        >>> from thunder_torch.only_views import is_only_view
        >>> x = torch.ones(2, 3)
        >>> is_only_view(torch.transpose, (x, 0, 1), {}), is_only_view(torch.reshape, (x, (6,)), {})
        (True, False)
    """
    if function is torch.Tensor.__getitem__:
        return is_basic(args[1])
    return has_trait(function, Trait.ONLY_VIEWS) and not tensors_of(args[1:], kwargs)


def fake_views(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the views that a call returns of a fake tensor.

    A mode for fake tensors finds out by much Python code what the dispatcher knows of views.

    Args:
        function: one that only lays out the elements of its first argument, as
            :func:`is_only_view` tells.
        args, kwargs: of the call, the first one a fake tensor.
    """
    base = args[0]
    with torch._C._DisableTorchDispatch():
        made = function(*args, **kwargs)
        if isinstance(made, torch.Tensor):
            return made if made is base else FakeTensor(base.fake_mode, made, base.fake_device)
        return made.__class__([FakeTensor(base.fake_mode, view, base.fake_device) for view in made])


def lays_out(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether what a call returns is known to PyTorch's dispatcher, which is faster than a mode for fake tensors."""
    if not args or not isinstance(args[0], TensorProxy) or args[0].device.type != "cpu":
        return False
    return is_only_view(function, args, kwargs) or (
        has_trait(function, Trait.LAYS_OUT) and len(tensors_of(args, kwargs)) == 1
    )


def laid_out(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], known: bool) -> Any:
    """Return the specification of views, or of a copy, of a tensor: by one that has no data, and is no fake one.

    What is asked of a fake tensor goes through much Python code of PyTorch's, which it loads for the first.
    """
    base = args[0]
    made = torch.empty_strided(
        tuple(base.shape),
        base.strides if base.strides is not None else contiguous_strides(tuple(base.shape)),
        dtype=to_torch_dtype(base.dtype),
        device="meta",
        requires_grad=base.requires_grad,
    )
    with plainly():
        return spec_of_result(function(made, *args[1:], **kwargs), [made], known, device=base.device)
