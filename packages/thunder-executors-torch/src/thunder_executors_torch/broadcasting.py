"""A pass for what PyTorch does by itself: its arithmetic repeats operands that have fewer elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from thunder_executors_torch.executor import executor
from thunder_ir import BoundSymbol, TensorProxy, Trace
from thunder_ir.passes import dead_code_elimination, trace_pass

REPEATING = frozenset({"torch.add", "torch.sub", "torch.mul", "torch.div", "torch.true_divide", "torch.where"})
"""The paths of functions that are given operands as they are before they are expanded."""


@trace_pass
def without_expanding(trace: Trace) -> Trace:
    """Take the calls of ``expand`` out whose results only arithmetic reads: what it computes has the same bits."""
    whole: dict[str, TensorProxy] = {}
    made: list[BoundSymbol] = []
    for bound in trace.bound_symbols:
        if bound.symbol.path == "torch.Tensor.expand":
            a = bound.args[0]
            if a.ndim and _known(a.shape) and _known(bound.output.shape):  # without dimensions, kernels differ
                whole[bound.output.name] = a
        elif whole and bound.symbol.path in REPEATING and not bound.kwargs:
            bound = _given(bound, whole)
        made.append(bound)
    if all([new is old for new, old in zip(made, trace.bound_symbols, strict=True)]):
        return trace
    return dead_code_elimination(trace.replace(bound_symbols=tuple(made)))


def _given(bound: BoundSymbol, whole: Mapping[str, TensorProxy]) -> BoundSymbol:
    """Return a call that is given what was expanded for it, where its result has the same shape."""
    args = list(bound.args)
    for i, a in enumerate(bound.args):
        source = whole.get(a.name) if isinstance(a, TensorProxy) else None
        if source is not None:
            shapes = [b.shape for j, b in enumerate(args) if j != i and isinstance(b, TensorProxy)]
            if _repeated([source.shape, *shapes]) == tuple(bound.output.shape):
                args[i] = source
    changed = any([new is not old for new, old in zip(args, bound.args, strict=True)])
    return bound.replace(args=tuple(args)) if changed else bound


def _known(shape: Sequence[Any]) -> bool:
    return all([size.__class__ is int for size in shape])


def _repeated(shapes: Sequence[Sequence[Any]]) -> tuple[Any, ...] | None:
    """Return the shape of what is computed of operands of these shapes; ``None`` where a size is open."""
    if not all(map(_known, shapes)):
        return None
    columns = zip_longest(*[reversed(shape) for shape in shapes], fillvalue=1)
    return tuple(reversed([next((size for size in column if size != 1), 1) for column in columns]))


executor.passes.append(without_expanding)
