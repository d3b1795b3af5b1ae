"""Gradients of parameters that some processes use and others do not, as a branch of each decides.

Programs that make other gradients would send other things. So what is sent is the same for all of them: at the end of
the backward program, gradients of all parameters that any process has used, in the order in which the model has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from thunder_autograd import ACCUMULATES
from thunder_distributed.axes import Axis
from thunder_distributed.collectives import all_reduce, all_reduce_within, pack, unpack
from thunder_distributed.executor import executor
from thunder_distributed.parameters import Home, Replicated
from thunder_distributed.passes import bucket_collectives
from thunder_distributed.passes.schedule import as_run_by, does
from thunder_distributed.prim import AT_THE_END, DIST_PRIMS, Does, Named
from thunder_distributed.prims import USED_ANYWHERE
from thunder_ir import BoundSymbol, Builder, Symbol, TensorProxy, Trace, recording
from thunder_ir.passes import trace_pass
from thunder_prims import strict
from thunder_torch import to_torch_dtype

reduce_used = Symbol(
    "reduce_used", DIST_PRIMS, language=strict,
    meta=lambda parameters, axis, gradients, numbers: tuple([g.like() for g in gradients]),
    tags=AT_THE_END,
    doc="Synchronise the gradients of all parameters that any process uses; return those of the program's own.",
)  # fmt: skip


@dataclass
class Returned:
    """Gradients that a program returns of parameters of one model.

    Args:
        model: how each parameter is treated, by its name.
        gradients: by the places of their parameters among those of the model.
    """

    model: dict[str, Replicated]
    gradients: dict[int, TensorProxy] = field(default_factory=dict)


@trace_pass
def reduce_where_used(trace: Trace) -> Trace:
    """End a program with the means of gradients that it returns of parameters which other processes may not use."""
    found = _returned(trace)
    builder = Builder(trace.names())
    local: dict[str, Any] = {
        g.name: g.renamed(builder.names.fresh("t")) for each in found for g in each.gradients.values()
    }
    with recording(builder):
        for each in found:
            parameters = Named(tuple(each.model), tuple(each.model.values()))
            gradients = tuple([local[g.name] for g in each.gradients.values()])
            reduce_used(parameters, parameters.held[0].axis, gradients, tuple(each.gradients))
    made = [
        call.replace(output=tuple(each.gradients.values()))
        for call, each in zip(as_run_by(executor, builder.bound_symbols), found, strict=True)
    ]
    return trace.replace(bound_symbols=(*[b.renamed(local) for b in trace.bound_symbols], *made)) if made else trace


executor.passes.insert(executor.passes.index(bucket_collectives), reduce_where_used)


def _returned(trace: Trace) -> list[Returned]:
    """Return the gradients among a program's results that are synchronised at its end."""
    producer = {p.name: bound for bound in trace.bound_symbols for p in bound.outputs}
    found: dict[int, Returned] = {}
    numbers: dict[Home, int] = {}
    for gradient in trace.outputs:
        home = _home(gradient.name, producer)
        if home is None:
            continue
        if id(home.model) not in found:
            found[id(home.model)] = Returned(home.model)
            hows = [how for how in home.model.values() if how.bucket[0] == USED_ANYWHERE]
            numbers |= {how.home: how.bucket[1] for how in hows}
        if home in numbers:
            found[id(home.model)].gradients[numbers[home]] = gradient  # type: ignore[assignment]
    return [each for each in found.values() if each.gradients]


def _home(name: str, producer: dict[str, BoundSymbol]) -> Home | None:
    """Return the home of the parameter of which this is a gradient, or a sum of several; ``None`` if it is none."""
    bound = producer.get(name)
    while bound is not None and ACCUMULATES in bound.tags:
        bound = producer.get(bound.inputs[0].name)
    return bound.args[1] if bound is not None and does(bound, Does.TAKE) else None


@executor.implements(reduce_used)
@torch.no_grad()
def reduce_used_anywhere(
    parameters: Named, axis: Axis, gradients: Sequence[torch.Tensor], numbers: Sequence[int]
) -> tuple[torch.Tensor, ...]:
    """Replace gradients by their means over all processes, in which those that do not use a parameter have zeros.

    Args:
        parameters: all of the model, and how each is treated.
        axis: over which processes.
        gradients: those that this process has.
        numbers: of which of the parameters they are.

    Returns:
        The means of these. Other parameters that any process has used have theirs added to ``grad``.
    """
    own = dict(zip(numbers, gradients, strict=True))
    sent = {i: own[i] if i in own else _kept(how.home) for i, how in enumerate(parameters.held)}
    device = gradients[0].device
    used = torch.tensor([int(sent[i] is not None) for i in sent], dtype=torch.int32, device=device)
    used = all_reduce(used, axis, "max").wait()
    whole = [(i, _to_send(sent[i], parameters.held[i])) for i, there in enumerate(used.tolist()) if there]
    means: dict[int, torch.Tensor] = {}
    for bucket in list(_buckets(whole, axis)):
        means.update(bucket)
    for i, mean in means.items():
        if i not in own:
            _add(parameters.held[i].home.parameter, mean)
    return tuple([means[i] for i in numbers])


def _kept(home: Home) -> torch.Tensor | None:
    """Return the gradient of batches that were not synchronised, which the parameter no longer has then."""
    if not home.unsynchronised:
        return None
    home.unsynchronised = False
    kept: torch.Tensor | None = home.parameter.grad
    home.parameter.grad = None
    return kept


def _to_send(gradient: torch.Tensor | None, how: Replicated) -> torch.Tensor:
    parameter = how.home.parameter  # type: ignore[union-attr]
    dtype = parameter.dtype if how.reduced_in is None else to_torch_dtype(how.reduced_in)
    return torch.zeros_like(parameter, dtype=dtype) if gradient is None else gradient.to(dtype)


def _buckets(whole: Sequence[tuple[int, torch.Tensor]], axis: Axis) -> Iterator[dict[int, torch.Tensor]]:
    """Return the means, those of each bucket together; all begin before the first is waited for."""
    groups: list[list[tuple[int, torch.Tensor]]] = []
    for i, tensor in whole:
        last = [t for _, t in groups[-1]] if groups else []
        fits = sum([t.numel() for t in (*last, tensor)]) * tensor.element_size() <= axis.bucket_bytes
        if last and fits and last[0].dtype is tensor.dtype and last[0].device == tensor.device:
            groups[-1].append((i, tensor))
        else:
            groups.append([(i, tensor)])
    scale = 1 / axis.size
    begun = [all_reduce_within(pack([t for _, t in group], scale=scale), axis) for group in groups]
    for group, pending in zip(groups, begun, strict=True):
        found = unpack(pending.wait(), [t.shape for _, t in group])
        yield {i: mean for (i, _), mean in zip(group, found, strict=True)}


def _add(parameter: torch.Tensor, mean: torch.Tensor) -> None:
    if parameter.grad is None:
        parameter.grad = torch.empty_like(parameter).copy_(mean)
    else:
        parameter.grad.add_(mean.to(parameter.dtype))


__all__ = ["reduce_used", "reduce_used_anywhere", "reduce_where_used"]
