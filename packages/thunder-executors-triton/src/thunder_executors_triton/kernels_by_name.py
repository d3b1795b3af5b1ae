"""The functions that launch kernels, found when the first of them is called: importing Triton takes a second."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from thunder_executors_triton.availability import TRITON

HOMES = {
    "adamw_step": "adamw",
    "cross_entropy_losses": "cross_entropy",
    "cross_entropy_with_gradient": "cross_entropy",
    "dropout_add_norm_backward": "dropout_add_norm",
    "dropout_add_norm_forward": "dropout_add_norm",
    "layer_norm_backward": "normalization",
    "layer_norm_forward": "normalization",
    "linear_cross_entropy": "linear_cross_entropy",
    "rms_norm_backward": "normalization",
    "rms_norm_forward": "normalization",
    "rotary_backward": "rotary",
    "rotary_forward": "rotary",
    "softmax_backward": "softmax",
    "softmax_forward": "softmax",
    "swiglu_backward": "gates",
    "swiglu_forward": "gates",
}


@cache
def kernel(name: str) -> Callable[..., Any]:
    """Return the function of this name.

    Raises:
        ImportError: Triton is not installed.
    """
    if not TRITON.installed():
        raise ImportError(f"{name} needs Triton: pip install 'thunder-executors-triton[triton]'", name="triton")
    found: Callable[..., Any] = getattr(import_module(f"thunder_executors_triton.kernels.{HOMES[name]}"), name)
    return found
