"""Expert parallelism: each process has some of the experts, and gets the rows that are for them from all."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from thunder_distributed.rows import exchanged, exchanged_rows
from thunder_distributed.sequences import run_by
from thunder_distributed.styles import ExpertParallel, Layout


def check_experts(described: str, module: torch.nn.Module, layout: Layout) -> None:
    """Refuse a module that cannot be run by experts.

    Args:
        described: the module, for messages.
        module: its parameters have an entry for each expert along their first dimension.
        layout: over which processes.

    Raises:
        TypeError: it has parameters in modules of its own, or none.
        ValueError: the number of experts is no multiple of that of processes.
    """
    own = {key: p for key, p in module._parameters.items() if p is not None}
    if len(own) != len(list(module.parameters())) or not own:
        raise TypeError(
            f"the plan runs {described}, by experts; ExpertParallel takes a module whose own parameters have an entry "
            "for each expert along their first dimension, once"
        )
    style = layout.style
    assert isinstance(style, ExpertParallel)
    if style.capacity is not None and style.capacity < 1:
        raise ValueError(f"{described}, by experts of capacity {style.capacity}: an expert takes a row at least")
    counts = {p.shape[0] if p.ndim else 0 for p in own.values()}
    count = counts.pop()
    if counts or not count or count % layout.axis.size:
        raise ValueError(
            f"{described}, has parameters of {sorted({count, *counts})} entries along their first dimension, and the "
            f"{layout.axis.size} processes of axis {layout.axis.name!r} share experts whose number they divide"
        )


def run_by_experts(module: torch.nn.Module, layout: Layout) -> None:
    """Let a module of which this process has some experts run on the rows for them."""
    run_by(module, _on_rows(type(module).forward), layout)


@functools.cache
def _on_rows(forward: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(forward)
    def on_rows(self: Any, x: torch.Tensor, counts: torch.Tensor) -> Any:
        capacity = self._thunder_layout.style.capacity
        if capacity is None:
            return on_all_rows(self, x, counts, x.shape[0])
        place = torch.arange(x.shape[0], device=x.device)
        ends = counts.cumsum(0)
        expert = torch.searchsorted(ends, place, right=True)
        first = torch.cat([ends - counts, ends[-1:]])[expert]
        left = (place - first >= capacity) | (expert >= counts.shape[0])
        order = left.to(torch.int32).argsort(stable=True)  # what is sent comes first, in the order that it has
        room = min(x.shape[0], capacity * (counts.shape[0] // self._thunder_layout.axis.size))
        y = on_all_rows(self, x[order], counts.clamp(max=capacity), room)
        return y[order.argsort()].masked_fill(left.unsqueeze(-1), 0.0)

    def on_all_rows(self: Any, x: torch.Tensor, counts: torch.Tensor, most: int) -> Any:
        axis = self._thunder_layout.axis
        coming = exchanged(counts, axis).view(axis.size, -1)  # from each process for each expert that is here
        sends, receives = counts.view(axis.size, -1).sum(1), coming.sum(1)
        rows = exchanged_rows(x, sends, receives, axis, axis.size * most)
        # rows are from one process after the other, and experts want theirs together; empty rows come last
        blocks = torch.searchsorted(
            coming.flatten().cumsum(0), torch.arange(rows.shape[0], device=x.device), right=True
        )
        here = coming.shape[1]
        order = torch.where(blocks < axis.size * here, blocks % here, here).argsort(stable=True)
        y = forward(self, rows[order], coming.sum(0))
        return exchanged_rows(y[order.argsort()], receives, sends, axis, x.shape[0])

    return on_rows


__all__ = ["check_experts", "run_by_experts"]
