"""Autocast as part of what is compiled: the casts are operations of the program."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from thunder_frontend import Transform
from thunder_transforms.layers import Changed, change, original


def autocast(fn: Callable[..., Any], dtype: torch.dtype, device_type: str = "cpu") -> Callable[..., Any]:
    """Return a function that runs ``fn`` under ``torch.autocast``, to be compiled.

    Args:
        fn: the function.
        dtype: what matrix products and convolutions compute in.
        device_type: on which devices.

    Example:
        >>> import torch
        >>> from thunder_frontend import jit
        >>> from thunder_transforms import autocast
        >>> jit(autocast(lambda a: a @ a, torch.bfloat16))(torch.ones(2, 2)).dtype
        torch.bfloat16
    """

    @functools.wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Any:
        with torch.autocast(device_type, dtype=dtype):
            return fn(*args, **kwargs)

    return run


class Autocasting(Changed):
    """A module that runs under autocast."""

    _thunder_autocast: tuple[str, torch.dtype]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        device_type, dtype = self._thunder_autocast
        with torch.autocast(device_type, dtype=dtype):
            return super().forward(*args, **kwargs)  # type: ignore[misc]


class AutocastTransform(Transform):
    """Run a module under ``torch.autocast``; for functions there is :func:`autocast`.

    Args:
        dtype: what matrix products and convolutions compute in.
        device_type: on which devices.

    Raises:
        TypeError: on the first call; what is compiled is a function.

    Example:
        >>> import torch
        >>> from thunder_frontend import jit
        >>> from thunder_transforms import AutocastTransform
        >>> model = jit(torch.nn.Sequential(torch.nn.Linear(4, 4)), transforms=[AutocastTransform(torch.bfloat16)])
        >>> model(torch.ones(1, 4)).dtype
        torch.bfloat16
    """

    def __init__(self, dtype: torch.dtype, device_type: str = "cpu") -> None:
        self.kind, self.modules = (device_type, dtype), 0

    def transform_module(self, model: torch.nn.Module) -> None:
        root = original(model)
        self.modules += 1
        if not isinstance(root, Autocasting):  # as a copy of one is
            root.__dict__["_thunder_autocast"] = self.kind
            change(root, Autocasting)

    def transform_traces_pre_prologue(
        self, prologue_trace: Any, computation_trace: Any, epilogue_trace: Any, **kwargs: Any
    ) -> tuple[Any, Any, Any]:
        if not self.modules:
            raise TypeError("AutocastTransform is for modules; compile thunder_transforms.autocast(fn, dtype) instead")
        return prologue_trace, computation_trace, epilogue_trace
