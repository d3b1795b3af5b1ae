"""Sequence parallelism: between layers that are cut, each process has a part of the sequence."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812

from thunder_distributed.regions import entered, whole_of
from thunder_distributed.styles import Layout, WholeSequence

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


def run_on_sequence(name: str, module: torch.nn.Module, layout: Layout) -> None:
    """Let a module run on a part of a sequence, or on what was gathered of all parts.

    Raises:
        TypeError: it is of no class that the style takes, or is run in parts already.
    """
    if LAYOUT in module.__dict__:
        raise TypeError(f"the plan cuts {name}, a {type(module).__name__} already cut")
    if isinstance(layout.style, WholeSequence):
        run_by(module, _on_whole_sequence(type(module).forward), layout)
        return
    forward = _NORMS.get(type(module))
    if forward is None:
        raise TypeError(
            f"the plan runs {name}, a {type(module).__name__}, on parts of a sequence; SequenceParallel takes a "
            "LayerNorm or an RMSNorm, and what has no parameters needs no style"
        )
    run_by(module, forward, layout)


@functools.cache
def _on_whole_sequence(forward: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(forward)
    def on_whole_sequence(self: Any, x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        layout = self._thunder_layout
        return forward(self, whole_of(x, layout.axis, layout.style.dim % x.ndim), *args, **kwargs)

    return on_whole_sequence


def _layer_norm(self: Any, x: torch.Tensor) -> Any:
    axis = self._thunder_layout.axis
    weight, bias = (None if p is None else entered(p, axis) for p in (self.weight, self.bias))
    return F.layer_norm(x, self.normalized_shape, weight, bias, self.eps)


def _rms_norm(self: Any, x: torch.Tensor) -> Any:
    weight = None if self.weight is None else entered(self.weight, self._thunder_layout.axis)
    return F.rms_norm(x, self.normalized_shape, weight, self.eps)


_NORMS: dict[type, Callable[..., Any]] = {torch.nn.LayerNorm: _layer_norm, torch.nn.RMSNorm: _rms_norm}

__all__ = ["LAYOUT", "run_by", "run_on_sequence"]
