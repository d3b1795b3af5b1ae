"""Operations that only lay out the elements of a tensor: which they are, and what they return of a fake one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from thunder_torch.fake_modes import faked, meta_under
from thunder_torch.places import is_basic
from thunder_torch.specs import tensors_of
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
            :func:`is_only_view` tells, or copies them.
        args, kwargs: of the call, the first one a fake tensor.
    """
    base = args[0]
    under = meta_under(base)
    given = base if under is None else under
    with torch._C._DisableTorchDispatch():
        made = function(given, *args[1:], **kwargs)
    if isinstance(made, torch.Tensor):
        return base if made is given else faked(made, base.fake_device, base.fake_mode)
    return made.__class__([faked(view, base.fake_device, base.fake_mode) for view in made])
