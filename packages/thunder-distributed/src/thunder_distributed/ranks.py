"""Programs with collectives run for all ranks in one process: call by call, each for one rank after the other.

That needs no process group, and serves to test passes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from thunder_distributed import prims
from thunder_executors import to_callable
from thunder_ir import BoundSymbol, Proxy, Symbol, Trace, flat_proxies
from thunder_ir.passes import expand
from thunder_ir.trees import substitute

Values = list[torch.Tensor]
"""What each rank has."""

_REDUCED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "sum": lambda values: values.sum(0), "mean": lambda values: values.mean(0),
    "max": lambda values: values.amax(0), "min": lambda values: values.amin(0),
}  # fmt: skip


def _to_all(value: torch.Tensor, values: Values) -> Values:
    return [value] * len(values)


def _reduced(values: Values, operation: str) -> torch.Tensor:
    return _REDUCED[operation](torch.stack(values))


def _exchanged(values: Values, split: int, join: int) -> Values:
    sent = [v.chunk(len(values), split) for v in values]
    return [torch.cat([chunks[rank] for chunks in sent], join) for rank in range(len(values))]


def _placed(values: Values, rank: int, dim: int, shift: int) -> torch.Tensor:
    here, at = values[rank], (rank + shift) % len(values)
    return torch.cat([here if i == at else torch.zeros_like(here) for i in range(len(values))], dim)


def _from_ring(parts: Sequence[torch.Tensor], rank: int, dim: int) -> torch.Tensor:
    return torch.cat([parts[(rank - i) % len(parts)] for i in range(len(parts))], dim)


COLLECTIVES: dict[Symbol, Callable[..., Values]] = {
    prims.wait: lambda values: values,
    prims.all_reduce: lambda values, axis, operation, bucket: _to_all(_reduced(values, operation), values),
    prims.all_gather: lambda values, axis, dim, bucket: _to_all(torch.cat(values, dim), values),
    prims.reduce_scatter: lambda values, axis, operation, dim, bucket: list(
        _reduced(values, operation).chunk(len(values), dim)
    ),
    prims.broadcast: lambda values, axis, source: _to_all(values[source], values),
    prims.all_to_all: lambda values, axis, split, join: _exchanged(values, split, join),
    prims.permute: lambda values, axis, shift: [values[(r - shift) % len(values)] for r in range(len(values))],
    prims.on_rank: lambda values, axis, rank: [v if r == rank else torch.zeros_like(v) for r, v in enumerate(values)],
    prims.copy_to: lambda values, device: values,
    prims.part: lambda values, axis, dim, shift: [
        v.chunk(len(values), dim)[(r + shift) % len(values)] for r, v in enumerate(values)
    ],
    prims.placed: lambda values, axis, dim, shift: [_placed(values, r, dim, shift) for r in range(len(values))],
    prims.joined_from_ring: lambda parts, axis, dim: [_from_ring(own, r, dim) for r, own in enumerate(parts)],
    prims.counted_from_part: lambda values, axis, step: [v - r * step for r, v in enumerate(values)],
}
"""What each rank gets of what all have."""


def on_all_ranks(trace: Trace, inputs: Sequence[Sequence[torch.Tensor]]) -> list[Any]:
    """Return what a program over one axis returns on each rank.

    Args:
        trace: before executors.
        inputs: for each rank of the axis the program's inputs.

    Example:
        >>> import torch
        >>> from thunder_distributed import Axis, prims
        >>> from thunder_distributed.ranks import on_all_ranks
        >>> from thunder_ir import Tensor, trace_of
        >>> trace = trace_of(lambda a: prims.wait(prims.all_reduce(a, Axis("data", 2))), Tensor((2,)))
        >>> on_all_ranks(trace, [[torch.tensor([1.0, 2.0])], [torch.tensor([10.0, 20.0])]])
        [tensor([11., 22.]), tensor([11., 22.])]
    """
    trace = expand(trace)
    known: list[dict[str, Any]] = [dict(zip([p.name for p in trace.inputs], g, strict=True)) for g in inputs]
    for bound in trace.bound_symbols:
        collective = COLLECTIVES.get(bound.symbol)
        made = _on_each(bound, known) if collective is None else _together(collective, bound, known)
        for values, result in zip(known, made, strict=True):
            if isinstance(bound.output, Proxy):
                values[bound.output.name] = result
            else:
                values.update(zip([p.name for p in flat_proxies(bound.output)], result, strict=True))
    return [substitute(trace.output, values) for values in known]


def _together(collective: Callable[..., Values], bound: BoundSymbol, known: list[dict[str, Any]]) -> Values:
    return collective([substitute(bound.args[0], values) for values in known], *bound.args[1:])


def _on_each(bound: BoundSymbol, known: list[dict[str, Any]]) -> list[Any]:
    proxies = {p.name: p for p in bound.inputs}
    run = to_callable(Trace("one_call", tuple(proxies.values()), (bound,), bound.output))
    return [run(*[values[name] for name in proxies]) for values in known]


__all__ = ["COLLECTIVES", "on_all_ranks"]
