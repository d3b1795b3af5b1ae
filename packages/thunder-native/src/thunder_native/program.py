"""A region as a program in native code: its table, and the function that runs it."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from thunder_executors import Region
from thunder_ir import IntegerProxy, TensorProxy
from thunder_native.registry import makes_new, write
from thunder_native.runtime import Runtime
from thunder_native.table import CannotExpress, Table


@dataclass(frozen=True, slots=True)
class Program:
    """A region in native code.

    Args:
        enter: takes the inputs; returns capsules that own the outputs, or an integer if it did not run: -1 if an input
            is no plain tensor of the CPU, else the step that failed. It holds nothing afterwards, either way.
        steps: how many steps there are.
        tensors: how many of the inputs are tensors; the others, behind them, are integers.
    """

    enter: Callable[..., Any]
    steps: int
    tensors: int


def program_of(region: Region, runtime: Runtime) -> Program:
    """Return a region in native code.

    Raises:
        CannotExpress: a call, an input or an output is none that it can deal with.
    """
    kinds = [isinstance(p, TensorProxy) for p in region.inputs]
    numbers = region.inputs[sum(kinds) :]
    if not all(kinds[: sum(kinds)]) or not all([isinstance(p, IntegerProxy) for p in numbers]):
        raise CannotExpress("its inputs are not tensors, and integers behind them")
    for proxy in region.outputs:
        if not isinstance(proxy, TensorProxy):
            raise CannotExpress(f"{proxy.name} is no tensor")
    table = Table(runtime, inner_values(region))
    for proxy in region.inputs:
        table.take(proxy)
    dead = _dead_after(region)
    for bound, names in zip(region.bound_symbols, dead, strict=True):
        write(table, bound)
        if names:
            table.step("release", len(names), *[table.slots[n] for n in names])
    layout = runtime.layout
    code = array("q", [word for function, words in table.steps for word in (function, words.buffer_info()[0])])
    outputs = array("q", [table.read(p) for p in region.outputs])
    head = array("q", [
        sum(kinds), table.count, len(table.steps), code.buffer_info()[0],
        len(outputs), outputs.buffer_info()[0], id(torch.Tensor), id(torch.nn.Parameter),
        layout.keys, layout.plain, layout.plain, layout.tensor, len(numbers), id(int),
    ])  # fmt: skip
    memory = (head, code, outputs, tuple(table.steps), tuple(table.memory))
    return Program(runtime.callable_of(head.buffer_info()[0], memory), len(table.steps), sum(kinds))


def inner_values(region: Region) -> frozenset[str]:
    """Return the values whose memory nobody outside can see: neither outputs, nor what an output may be a view of."""
    seen = {p.name for p in region.outputs}
    for bound in reversed(region.bound_symbols):
        if not makes_new(bound) and any([p.name in seen for p in bound.outputs]):
            seen.update([p.name for p in bound.inputs])
    return frozenset([p.name for bound in region.bound_symbols for p in bound.outputs if p.name not in seen])


def _dead_after(region: Region) -> list[list[str]]:
    """For each call, which of the region's own values nobody reads after it."""
    live = {p.name for p in (*region.outputs, *region.inputs)}
    backwards = []
    for bound in reversed(region.bound_symbols):
        names = list(dict.fromkeys([p.name for p in (*bound.inputs, *bound.outputs) if p.name not in live]))
        live.update(names)
        backwards.append(names)
    return backwards[::-1]
