"""Which kernels a program needs, before it runs: those whose inputs' layouts are known, so that all compile at once."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from thunder_executors_inductor.kernels import Kernel, Layout
from thunder_ir import BoundSymbol, NumberProxy, OpTags, Proxy, TensorProxy, Trace, is_unknown, substitute
from thunder_ir.passes import pair_outputs
from thunder_torch import to_torch_device, to_torch_dtype

EFFECTS = frozenset({OpTags.IN_PLACE, OpTags.DONT_DCE, OpTags.RANDOM, OpTags.COLLECTIVE, OpTags.DEVICE_SYNC})
"""Of calls that are not made on fake tensors to learn how results are laid out."""


def compile_together(trace: Trace) -> Trace:
    """Compile the kernels of a program that its first call will need, in parallel; return the program as it is.

    A kernel that fails to compile is left to its call, which compiles it again and raises.
    """
    kernels = [b.symbol.implementation for b in trace.bound_symbols if isinstance(b.symbol.implementation, Kernel)]
    if len({id(kernel) for kernel in kernels if not kernel.compilations}) < 2:
        return trace
    wanted = list(dict.fromkeys([need for need in needs(trace) if not need[0].serves(need[1])]))
    if len(wanted) > 1:
        entry = import_module("thunder_executors_inductor.entry")  # here: Inductor takes seconds to import
        made = entry.compile_traces([kernel.laid_out(layout) for kernel, layout in wanted], wanted[0][0].settings)
        for (kernel, layout), compiled in zip(wanted, made, strict=True):
            if compiled is not None:
                kernel.keep(layout, compiled)
    return trace


def needs(trace: Trace) -> list[tuple[Kernel, Layout]]:
    """Return the kernels of a program with the layouts that their inputs will have, where these are known."""
    known: dict[str, Any] = {}
    found: list[tuple[Kernel, Layout]] = []
    with FakeTensorMode():
        _learn(trace.inputs, known, in_order=True)
        for bound in trace.bound_symbols:
            function = bound.symbol.implementation
            inputs = [known.get(p.name) for p in bound.inputs]
            if isinstance(function, Kernel) and None not in inputs:
                found.append((function, function.layout_of(inputs)))
            _learn(bound.outputs, known, in_order=bound.has_tag(OpTags.PROLOGUE))
            if None not in inputs and any([isinstance(p, TensorProxy) and p.name not in known for p in bound.outputs]):
                _run(bound, inputs, known)
    return found


def _learn(proxies: Sequence[Proxy], known: dict[str, Any], in_order: bool = False) -> None:
    """Keep what proxies say of themselves: the values of numbers, and tensors whose strides are known.

    Args:
        proxies: what they stand for is kept.
        known: by name.
        in_order: whether strides that are unknown, as those of cotangents, are thought to be in order.
    """
    for p in proxies:
        if isinstance(p, NumberProxy):
            if not is_unknown(p):
                known[p.name] = p.value
        elif isinstance(p, TensorProxy) and (p.strides is not None or in_order):
            shape, strides = substitute((tuple(p.shape), p.strides), known)
            if all([type(n) is int for n in (*shape, *(strides or ()))]):
                made = torch.empty(shape, dtype=to_torch_dtype(p.dtype), device=to_torch_device(p.device))
                known[p.name] = made if strides is None else made.new_empty_strided(shape, strides)


def _run(bound: BoundSymbol, inputs: list[Any], known: dict[str, Any]) -> None:
    """Make a call on fake tensors, if it is one of PyTorch's functions or a kernel, and keep what it returns."""
    function = bound.symbol.implementation
    try:
        if isinstance(function, Kernel):
            made: Any = function.eager(inputs)
        elif bound.symbol.path.startswith("torch.") and not EFFECTS & {*bound.symbol.tags, *bound.tags}:
            made = function(*substitute(bound.args, known), **substitute(bound.kwargs, known))  # type: ignore[misc]
        else:
            return
    except RuntimeError:  # what it returns depends on data, or PyTorch has no such function for fake tensors
        return
    pair_outputs(bound.output, made, known)


__all__ = ["compile_together", "needs"]
