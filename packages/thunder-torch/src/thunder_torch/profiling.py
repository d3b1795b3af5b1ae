"""What profilers of PyTorch see of calls that are not PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch

R = TypeVar("R")


def shown(name: str, function: Callable[..., R], *args: Any) -> R:
    """Call a function, under a name that a profiler shows where one is at work.

    Example:
        >>> import torch
        >>> from thunder_torch.profiling import shown
        >>> with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        ...     shown("doubled", torch.mul, torch.ones(1), 2)
        tensor([2.])
        >>> "doubled" in [event.key for event in profile.key_averages()]
        True
    """
    if not torch._C._autograd._profiler_enabled():
        return function(*args)
    with torch.profiler.record_function(name):
        return function(*args)
