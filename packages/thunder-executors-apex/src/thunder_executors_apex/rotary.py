"""Rotary position embedding by Apex: a function of PyTorch, which compiled programs compute by one kernel."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from thunder_executors import Declined
from thunder_executors_apex import availability
from thunder_executors_apex.availability import ROTARY
from thunder_executors_apex.executor import executor, takes
from thunder_ir import TensorProxy, dtypes
from thunder_torch import symbol_of

FLOATS = (dtypes.float32, dtypes.float16, dtypes.bfloat16)


def rotary(x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    """Return ``x``, the first elements of each head rotated by its position (Su et al., "RoFormer", arXiv 2104.09864).

    Element ``i`` of the first half of those is rotated with that of their second half; what follows them stays.
    Programs that are not compiled, or compiled without the executor, compute it by operations of PyTorch.

    Args:
        x: shape ``(length, batch, heads, width)``, floating.
        cosine: shape ``(length, rotated)``, float32, ``rotated`` even and at most ``width``.
        sine: shape and dtype of ``cosine``.

    Returns:
        shape and dtype of ``x``, contiguous.

    Example:
        >>> import torch
        >>> from thunder_executors_apex import rotary
        >>> quarter_turn = torch.tensor([[0.0, 0.0]]), torch.tensor([[1.0, 1.0]])
        >>> rotary(torch.tensor([1.0, 2.0, 3.0]).view(1, 1, 1, 3), *quarter_turn).flatten()
        tensor([-2.,  1.,  3.])
    """
    y: torch.Tensor = _rotated(x, cosine, sine, torch.cat)
    return y


def _rotated(x: Any, cosine: Any, sine: Any, cat: Callable[..., Any]) -> Any:
    rotated = cosine.shape[-1]
    turned = x[..., :rotated]
    first, second = turned.chunk(2, -1)
    y = turned * cosine[:, None, None] + cat([-second, first], -1) * sine[:, None, None]
    return cat([y.type_as(x), x[..., rotated:]], -1)


def _tables(cosine: torch.Tensor, sine: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return cosine[:, None, None].contiguous(), sine[:, None, None].contiguous()


def run_rotary(x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    """Return what :func:`rotary` returns."""
    found: torch.Tensor = availability.extension(ROTARY).forward_cached(x, *_tables(cosine, sine), False)
    return found


def run_rotary_gradient(dy: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    """Return the gradient of ``x``."""
    found: torch.Tensor = availability.extension(ROTARY).backward_cached(dy, *_tables(cosine, sine), False)
    return found


rotary_forward = executor.register_operator("rotary_forward", meta=lambda x, cosine, sine: x.like(), fn=run_rotary)
rotary_gradient = executor.register_operator(
    "rotary_gradient", meta=lambda dy, cosine, sine: dy.like(requires_grad=False), fn=run_rotary_gradient
)
rotary_symbol = executor.register_operator("rotary", like=partial(_rotated, cat=symbol_of(torch.cat)), replaces=rotary)


def takes_rotary(x: TensorProxy, cosine: TensorProxy, sine: TensorProxy) -> bool | Declined:
    """Whether the extension takes this call."""
    answer = takes(ROTARY, FLOATS, x) and takes(ROTARY, (dtypes.float32,), cosine, sine)
    if not answer:
        return answer
    fits = x.ndim == 4 and cosine.ndim == 2 and cosine.shape == sine.shape and cosine.shape[0] == x.shape[0]
    if not fits or cosine.shape[1] % 2 or cosine.shape[1] > x.shape[3]:
        return Declined("it takes x (length, batch, heads, width), and tables (length, an even number up to width)")
    if cosine.requires_grad or sine.requires_grad:
        return Declined("its tables have no gradients")
    return True


def rotary_rule(x: TensorProxy, cosine: TensorProxy, sine: TensorProxy) -> tuple[Any, Any]:
    """Save the tables."""
    return rotary_forward(x, cosine, sine), lambda dy: (rotary_gradient(dy, cosine, sine), None, None)


executor.runs_by_rule(rotary_symbol, rotary_rule, takes_rotary)

__all__ = ["rotary"]
