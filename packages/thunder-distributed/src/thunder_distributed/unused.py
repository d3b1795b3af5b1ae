"""Gradients of batches that were not synchronised, for parameters that the synchronised batch behind them does not use.

A program that synchronises gradients reduces those that it makes, with what was kept for them. What was kept for other
parameters is reduced at its end, if any process has some: so all make the same collectives, whatever each has used.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from thunder_distributed.axes import Axis
from thunder_distributed.collectives import all_reduce, reduce_scatter
from thunder_distributed.executor import executor
from thunder_distributed.in_flight import Pending
from thunder_distributed.parameters import Home, Replicated, Sharded
from thunder_distributed.passes.schedule import as_run_by, does
from thunder_distributed.prim import AT_THE_END, DIST_PRIMS, Does, Named
from thunder_distributed.prims import USED_ANYWHERE
from thunder_ir import Builder, DType, Symbol, Trace, recording
from thunder_ir.passes import trace_pass
from thunder_prims import strict
from thunder_torch import to_torch_device, to_torch_dtype

reduce_unused = Symbol(
    "reduce_unused", DIST_PRIMS, meta=lambda unused, axis: None, language=strict,
    tags=AT_THE_END, doc="Synchronise what was kept of the gradients of parameters that the program does not use.",
)  # fmt: skip


@trace_pass
def reduce_what_is_unused(trace: Trace) -> Trace:
    """Let a program that synchronises gradients also synchronise those kept for parameters that it does not use."""
    models: dict[int, dict[str, Any]] = {}
    reduced: set[Home] = set()
    for bound in trace.bound_symbols:
        if does(bound, Does.TAKE):
            home: Home = bound.args[1]
            reduced.add(home)
            models[id(home.model)] = home.model
    builder = Builder(trace.names())
    with recording(builder):
        for model in models.values():
            rest = {name: how for name, how in model.items() if how.home not in reduced}
            if rest and all([how.bucket[0] != USED_ANYWHERE for how in rest.values()]):
                axis = next(iter(rest.values())).axis
                reduce_unused(Named(tuple(rest), tuple(rest.values())), axis)
    calls = as_run_by(executor, builder.bound_symbols)
    return trace.replace(bound_symbols=(*trace.bound_symbols, *calls)) if calls else trace


executor.passes.insert(-1, reduce_what_is_unused)  # once all else stands, and before processes compare what they send


def leave_unsynchronised(homes: Iterable[Home]) -> list[Home]:
    """Note of parameters that their gradients stay those of this process; return those that are frozen."""
    frozen = []
    for home in homes:
        if home.parameter.requires_grad:
            home.unsynchronised = True
        else:
            frozen.append(home)
    return frozen


@executor.implements(reduce_unused)
@torch.no_grad()
def reduce_kept(unused: Named, axis: Axis) -> None:
    """Synchronise what was kept for parameters, if any process of the axis has some.

    Args:
        unused: the parameters. Frozen ones are left out.
        axis: over which processes.

    Raises:
        RuntimeError: one was frozen after a batch that used it was not synchronised.
    """
    asked = []
    for name, how in zip(unused.names, unused.held, strict=True):
        if how.home.parameter.requires_grad:
            asked.append(how)
        elif has_kept(how):
            raise RuntimeError(
                f"{name} was frozen while its gradient, of a batch within no_sync(), was not synchronised yet, so that "
                "processes differ in it: freeze parameters after the synchronised backward, or set their grad to None"
            )
    if not asked:
        return
    pending = [(how, _sent(how)) for how in _kept_anywhere(asked)]
    for how, coming in pending:
        _put(how, coming)
    for how in asked:
        how.home.unsynchronised = False


def has_kept(how: Replicated | Sharded) -> bool:
    """Return whether this process has a gradient that is not synchronised yet."""
    home: Any = how.home
    if isinstance(how, Sharded):
        return home.gradient is not None
    return home.unsynchronised and home.parameter.grad is not None


def _kept_anywhere(hows: list[Any]) -> list[Any]:
    """Return those of a model's parameters for which any process has kept something: the same in all processes."""
    kept = torch.tensor([int(has_kept(how)) for how in hows], dtype=torch.int32, device=_computed_on(hows[0]))
    for axis in _axes(hows[0]):
        kept = all_reduce(kept, axis, "max").wait()
    return [how for how, there in zip(hows, kept.tolist(), strict=True) if there]


def _axes(how: Replicated | Sharded) -> list[Axis]:
    """Return the axes over which a gradient is a mean."""
    replicas = how.replicas if isinstance(how, Sharded) else None
    return [how.axis] if replicas is None else [how.axis, replicas]


def _computed_on(how: Any) -> torch.device:
    device = how.computed_on if isinstance(how, Sharded) else None
    return how.home.parameter.device if device is None else to_torch_device(device)


def _sent(how: Any) -> Pending:
    """Begin to reduce what was kept for a parameter: zeros where nothing was."""
    parameter = how.home.parameter
    if isinstance(how, Replicated):
        sent = torch.zeros_like(parameter, dtype=_dtype_of(how.reduced_in, parameter))
        return all_reduce(sent if parameter.grad is None else sent.copy_(parameter.grad), how.axis, "mean")
    whole, how.home.gradient = how.home.gradient, None
    shape = [how.rows * how.axis.size if i == how.dim else n for i, n in enumerate(how.shape)]
    dtype = _dtype_of(how.reduced_in or how.gathered_in, parameter)
    sent = torch.zeros(shape, dtype=dtype, device=_computed_on(how))
    if whole is not None:
        sent.narrow(how.dim, 0, how.shape[how.dim]).copy_(whole.reshape(how.shape))
    return reduce_scatter(sent, how.axis, "mean", how.dim)


def _dtype_of(dtype: DType | None, parameter: torch.Tensor) -> torch.dtype:
    return parameter.dtype if dtype is None else to_torch_dtype(dtype)


def _put(how: Any, coming: Pending) -> None:
    """Let a parameter have what was reduced: added to the gradient of its part, or instead of that of the whole."""
    parameter, mean = how.home.parameter, coming.wait()
    for axis in _axes(how)[1:]:
        mean = all_reduce(mean, axis, "mean").wait()
    if parameter.grad is None:
        parameter.grad = torch.empty_like(parameter).copy_(mean)
    elif isinstance(how, Sharded):
        parameter.grad.add_(mean.to(parameter.grad))
    else:
        parameter.grad.copy_(mean)


__all__ = [
    "has_kept", "leave_unsynchronised", "reduce_kept", "reduce_unused", "reduce_what_is_unused",
]  # fmt: skip
