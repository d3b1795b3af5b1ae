"""Dropout in parts: PyTorch draws which elements are kept, and the rest is computed in kernels with what is around."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from thunder_executors import Declined, FusionExecutor, Implementation
from thunder_ir import BoundSymbol, TensorProxy, devices
from thunder_prims import convert_element_type, div, mul
from thunder_torch import symbol_of
from thunder_torch.random import draw_mask

DROPOUTS = (symbol_of(torch.nn.functional.dropout), symbol_of(torch.dropout))

Rule = tuple[TensorProxy, Callable[[TensorProxy], TensorProxy]]


def noise(mask: TensorProxy, like: TensorProxy, p: float) -> TensorProxy:
    """Return by what elements are multiplied: the quotient of eager PyTorch, of the mask that was drawn."""
    return div(convert_element_type(mask, like.dtype), 1 - p)


def dropout(a: TensorProxy, p: float = 0.5, training: bool = True, inplace: bool = False) -> TensorProxy:
    """Multiply by what is drawn. The numbers drawn are those that eager execution draws."""
    return mul(a, noise(draw_mask(a, p), a, p))


def dropout_rule(a: TensorProxy, p: float = 0.5, training: bool = True, inplace: bool = False) -> Rule:
    """Save the mask, one byte per element."""
    mask = draw_mask(a, p)
    return mul(a, noise(mask, a, p)), lambda dy: mul(dy, noise(mask, dy, p))


def drops_some(a: Any, p: Any = 0.5, training: Any = True, inplace: bool = False) -> bool:
    """Whether some elements are dropped, and not all."""
    on_cpu = isinstance(a, TensorProxy) and a.device.type is devices.cpu.type and a.dtype.is_floating
    return on_cpu and training is True and isinstance(p, float) and 0.0 < p < 1.0


def open_dropouts(executor: FusionExecutor, wanted: Callable[[BoundSymbol], str | None]) -> None:
    """Let calls of dropout be made in parts.

    Args:
        executor: whose kernels compute with the mask.
        wanted: tells why a call is left to others, or ``None``.
    """

    def when(bound: BoundSymbol) -> bool | Declined:
        if not drops_some(*bound.args, **bound.kwargs):
            return Declined("it drops nothing, or not on a CPU")
        reason = wanted(bound)
        return True if reason is None else Declined(reason)

    for symbol in DROPOUTS:
        made = Implementation(executor, when=when, transform=dropout, vjp=dropout_rule)
        executor.add_implementation(symbol, made)
