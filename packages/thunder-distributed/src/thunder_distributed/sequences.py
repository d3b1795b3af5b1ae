"""Sequence parallelism: between layers that are cut, each process has a part of the sequence."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812

from thunder_distributed.regions import entered, whole_of
from thunder_distributed.styles import Layout, Style, WholeSequence

LAYOUT = "_thunder_layout"


def run_by(module: torch.nn.Module, forward: Callable[..., Any], layout: Layout) -> None:
    """Let a module run by another function, which finds the layout under the name ``LAYOUT``."""
    module.__dict__[LAYOUT] = layout
    cls: Any = type(module)
    module.__class__ = _class_for(cls, forward)


@functools.cache
def _class_for(cls: Any, forward: Callable[..., Any]) -> type:
    names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    return types.new_class(cls.__name__, (cls,), exec_body=lambda space: space.update(names, forward=forward))


def check_on_sequence(described: str, module: torch.nn.Module, style: Style) -> None:
    """Refuse a module that cannot run on a part of a sequence.

    Args:
        described: the module, for messages.
        module: itself.
        style: how it is to run.

    Raises:
        TypeError: it is of no class that the style takes.
    """
    if not isinstance(style, WholeSequence) and type(module) not in _NORMS:
        raise TypeError(
            f"the plan runs {described}, on parts of a sequence; SequenceParallel takes a LayerNorm or an RMSNorm, and "
            "what has no parameters needs no style"
        )


def run_on_sequence(module: torch.nn.Module, layout: Layout) -> None:
    """Let a module run on a part of a sequence, or on what was gathered of all parts."""
    whole = isinstance(layout.style, WholeSequence)
    run_by(module, _on_whole_sequence(type(module).forward) if whole else _NORMS[type(module)], layout)


def dimension(x: torch.Tensor, dim: int) -> int:
    """Return which dimension of a tensor a plan means, counted from the front.

    Raises:
        IndexError: it has no such dimension.
    """
    if not -x.ndim <= dim < x.ndim:
        raise IndexError(f"the plan has sequences along dimension {dim}, and a tensor has the shape {list(x.shape)}")
    return dim % x.ndim


@functools.cache
def _on_whole_sequence(forward: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(forward)
    def on_whole_sequence(self: Any, x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        layout = self._thunder_layout
        return forward(self, whole_of(x, layout.axis, dimension(x, layout.style.dim)), *args, **kwargs)

    return on_whole_sequence


def _layer_norm(self: Any, x: torch.Tensor) -> Any:
    axis = self._thunder_layout.axis
    weight, bias = (None if p is None else entered(p, axis) for p in (self.weight, self.bias))
    return F.layer_norm(x, self.normalized_shape, weight, bias, self.eps)


def _rms_norm(self: Any, x: torch.Tensor) -> Any:
    weight = None if self.weight is None else entered(self.weight, self._thunder_layout.axis)
    return F.rms_norm(x, self.normalized_shape, weight, self.eps)


_NORMS: dict[type, Callable[..., Any]] = {torch.nn.LayerNorm: _layer_norm, torch.nn.RMSNorm: _rms_norm}

__all__ = ["LAYOUT", "check_on_sequence", "dimension", "run_by", "run_on_sequence"]
