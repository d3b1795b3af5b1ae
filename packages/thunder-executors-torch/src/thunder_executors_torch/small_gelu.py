"""A pass for the derivative of gelu on small tensors: PyTorch's own kernel ends before oneDNN's begins.

PyTorch hands contiguous tensors to oneDNN. Those whose dimensions are in another order it keeps, and its kernel walks
memory in the order in which it lies. The function itself stays with oneDNN, which makes nan of infinity: what a program
computes has the bits of eager PyTorch.
"""

from __future__ import annotations

from itertools import accumulate
from math import prod
from operator import mul

import torch

from thunder_executors_torch.executor import executor
from thunder_ir import BoundSymbol, Names, OpTags, Proxy, TensorProxy, Trace, devices, dtypes
from thunder_ir.passes import trace_pass

DERIVATIVE = torch.ops.aten.gelu_backward.default

SMALL = 16384
"""Elements up to which PyTorch's own kernel is faster, although views are made for it."""


def _permuted(a: TensorProxy, order: tuple[int, ...]) -> TensorProxy:
    return a.like(shape=tuple([a.shape[d] for d in order]))


_permute = executor.call("torch.permute", _permuted, OpTags.VIEW)


@trace_pass
def without_onednn(trace: Trace) -> Trace:
    """Let the derivative of gelu read and write views of small tensors that oneDNN does not take.

    Results of the program are computed as they were: whoever gets one would see that it is a view.
    """
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return trace
    found = {i: order for i, bound in enumerate(trace.bound_symbols) if (order := _order(bound)) is not None}
    seen = _seen_outside(trace) if found else set()
    names = trace.names() if found else Names()
    made: list[BoundSymbol] = []
    for i, bound in enumerate(trace.bound_symbols):
        apart = i in found and bound.output.name not in seen
        made += _through_views(bound, found[i], names) if apart else [bound]
    return trace.replace(bound_symbols=tuple(made))


def _order(bound: BoundSymbol) -> tuple[int, ...] | None:
    """Return the dimensions in an order in which the input is not contiguous; ``None`` where a call stays as it is."""
    if bound.symbol.implementation is not DERIVATIVE or bound.kwargs.get("approximate", "none") != "none":
        return None
    _, a = bound.args
    if a.device.type != devices.cpu.type or a.dtype is not dtypes.float32:
        return None
    if any([d.__class__ is not int for d in a.shape]) or prod(a.shape) > SMALL or not _is_in_rows(a):
        return None
    first = next((i for i, d in enumerate(a.shape) if d > 1), a.ndim)
    if first >= a.ndim - 1 or 1 in a.shape[first:]:  # contiguous in any order, or with strides that mean nothing
        return None
    return (*range(first), a.ndim - 1, *range(first + 1, a.ndim - 1), first)


def _is_in_rows(a: TensorProxy) -> bool:
    """Whether a tensor is known to be contiguous."""
    return a.strides == (*accumulate(a.shape[:0:-1], mul, initial=1),)[::-1]


def _seen_outside(trace: Trace) -> set[str]:
    """Return the names of what the program returns, and of what this may be a view of."""
    seen = {p.name for p in trace.outputs}
    for bound in reversed(trace.bound_symbols):
        runs = bound.symbol.executor
        if not seen.isdisjoint([p.name for p in bound.outputs]) and (runs is None or not runs.makes_new(bound)):
            seen |= {p.name for p in bound.inputs}
    return seen


def _through_views(bound: BoundSymbol, order: tuple[int, ...], names: Names) -> list[BoundSymbol]:
    """Return a call between those that change the order of dimensions: two of them swap, so it is its own inverse."""
    read = {p.name: p for p in bound.inputs}
    swapped: dict[str, Proxy] = {}
    for p in (*read.values(), bound.output):
        swapped[p.name] = _permuted(p, order).renamed(names.fresh(p.prefix))

    def permute(a: Proxy, made: Proxy) -> BoundSymbol:
        return BoundSymbol(_permute, (a, order), {}, made, bound.location, bound.tags)

    before = [permute(p, swapped[name]) for name, p in read.items()]
    return [*before, bound.renamed(swapped), permute(swapped[bound.output.name], bound.output)]


executor.passes.append(without_onednn)
