"""What a program computes of constants alone is computed once, when it is compiled."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from thunder_executors import to_callable
from thunder_frontend import Transform
from thunder_ir import BoundSymbol, OpTags, Symbol, TensorProxy, Trace, flat_proxies
from thunder_ir.passes import leading_to

NEVER = (OpTags.RANDOM, OpTags.DONT_DCE, OpTags.IN_PLACE, OpTags.MAY_FAIL, OpTags.DEVICE_SYNC, OpTags.COLLECTIVE)


class ConstantFolding(Transform):
    """Compute once what depends on no input: masks, position ids, tables of frequencies.

    A program gets a copy of what was computed on each run, so that nothing it does reaches the constant. Random numbers
    and what may fail for some values stay where they are, and so does a single operation that makes a tensor.

    Args:
        most_bytes: larger results are computed on each run as before.

    Example:
        >>> import torch
        >>> from thunder_frontend import jit, last_traces
        >>> from thunder_transforms import ConstantFolding
        >>> def masked(x):
        ...     places = torch.arange(x.shape[-1])
        ...     return x.masked_fill(places[:, None] < places, 0.0)
        >>> folded = jit(masked, transforms=[ConstantFolding()])
        >>> folded(torch.ones(2, 2))
        tensor([[1., 0.],
                [1., 1.]])
        >>> "arange" in str(last_traces(folded)[-1])
        False
    """

    def __init__(self, most_bytes: int = 1 << 24) -> None:
        self.most_bytes = most_bytes

    def transform_traces_pre_prologue(
        self, prologue_trace: Any, computation_trace: Trace, epilogue_trace: Any, **kwargs: Any
    ) -> tuple[Any, Trace, Any]:
        executors = getattr(kwargs.get("compile_data"), "executors", None)
        return prologue_trace, folded(computation_trace, self.most_bytes, executors), epilogue_trace


def folded(trace: Trace, most_bytes: int = 1 << 24, executors: Any = None) -> Trace:
    """Return a program with what depends on no input computed.

    Args:
        trace: in symbols that executors run.
        most_bytes: larger results are left.
        executors: who computes.
    """
    constant = _constant(trace.bound_symbols)
    wanted = [p for p in _frontier(trace, constant) if _bytes(p) <= most_bytes]
    made = {bound.outputs[0].name: bound for bound in constant if bound.outputs}
    wanted = [p for p in wanted if p.name in made and not made[p.name].has_tag(OpTags.CREATION)]
    if not wanted:
        return trace
    values = to_callable(trace.replace(inputs=(), bound_symbols=tuple(constant), output=tuple(wanted)), executors)()
    held = {p.name: _holding(p, value) for p, value in zip(wanted, values, strict=True)}
    calls = []
    for bound in trace.bound_symbols:
        name = bound.outputs[0].name if bound.outputs else ""
        calls.append(BoundSymbol(held[name], (), {}, bound.output, bound.location) if name in held else bound)
    needed, _ = leading_to(calls, [p.name for p in flat_proxies(trace.output)], besides=_stays)
    return trace.replace(bound_symbols=tuple(needed))


def _constant(calls: Iterable[BoundSymbol]) -> list[BoundSymbol]:
    """Return the calls that depend on no input."""
    known: set[str] = set()
    found = []
    for bound in calls:
        whole = len(bound.outputs) == 1 and isinstance(bound.output, TensorProxy)
        if whole and not any(map(bound.has_tag, NEVER)) and all([p.name in known for p in bound.inputs]):
            known.add(bound.outputs[0].name)
            found.append(bound)
    return found


def _frontier(trace: Trace, constant: list[BoundSymbol]) -> list[TensorProxy]:
    """Return the constants that something reads which is none."""
    inside = {id(bound) for bound in constant}
    read = {p.name for bound in trace.bound_symbols if id(bound) not in inside for p in bound.inputs}
    read.update([p.name for p in flat_proxies(trace.output)])
    outputs = [bound.output for bound in constant if bound.output.name in read]
    return [p for p in outputs if all(isinstance(size, int) for size in p.shape)]


def _bytes(proxy: TensorProxy) -> int:
    return int(proxy.numel) * 8


def _holding(proxy: TensorProxy, value: torch.Tensor) -> Symbol:
    """Return an operation that makes a copy of a value."""
    return Symbol(
        "constant",
        "folded",
        meta=lambda: proxy.like(),
        implementation=value.clone,
        tags=frozenset({OpTags.CREATION, OpTags.DONT_FUSE, OpTags.CONSTANT_FOR_DERIVATIVE}),
    )


def _stays(bound: BoundSymbol) -> bool:
    """Whether a call counts that only made what is held now."""
    return bound.has_tag(OpTags.DONT_DCE) or not bound.outputs
