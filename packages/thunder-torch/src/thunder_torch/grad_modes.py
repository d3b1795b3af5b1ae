"""Programs that autograd records, or records nothing of, whatever the caller's grad mode is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def with_gradients(run: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``run`` such that autograd records it."""

    def tracked(*inputs: Any) -> Any:
        with torch.enable_grad():
            return run(*inputs)

    return tracked


def without_gradients(run: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``run`` such that autograd records nothing of it, for programs whose results are constants to it."""

    def quiet(*inputs: Any) -> Any:
        with torch.no_grad():
            return run(*inputs)

    return quiet
