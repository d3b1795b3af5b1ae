"""What each call of a program costs: measured seconds, and the bytes and floating-point operations that it takes."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from thunder_executors.free import delete
from thunder_executors.order import bytes_of
from thunder_ir import BoundSymbol, NumberProxy, Proxy, TensorProxy, Trace, substitute, value_of
from thunder_ir.passes import pair_outputs

PRODUCTS = frozenset({"linear", "matmul", "bmm", "mm", "addmm", "baddbmm", "mv", "dot"})
CONVOLUTIONS = frozenset({"convolution", "conv1d", "conv2d", "conv3d"})


@dataclass(frozen=True, slots=True)
class Cost:
    """What one call costs.

    Args:
        seconds: wall clock, the least of the runs; ``None`` where it was not measured.
        bytes: of the tensors that it reads and makes.
        operations: floating-point operations: two for each product and sum of a matrix product or convolution, one for
            each element of what any other call makes.
    """

    seconds: float | None
    bytes: int
    operations: int


class NotMeasurable(Exception):
    """A program cannot be run on made-up inputs; the message says why."""


def costs(trace: Trace, *, measure: bool = True, runs: int = 3, seconds: float = 10.0) -> tuple[list[Cost], str | None]:
    """Return the cost of each bound symbol of an execution trace, and why none was measured, if none was.

    Args:
        trace: a program that runs, whose inputs are tensors and numbers; it is run on random tensors, integers zero.
        measure: whether it is run.
        runs: how often, after one that is not counted.
        seconds: after which no further run begins.
    """
    counted = [(_bytes(bound), operations(bound)) for bound in trace.bound_symbols]
    times: list[float | None] = [None] * len(counted)
    reason = None if measure else "not asked for"
    if measure:
        try:
            times = list(_measured(trace, runs, seconds))
        except NotMeasurable as error:
            reason = str(error)
        except Exception as error:  # a program may refuse zeros or random numbers; it runs on the user's values
            reason = f"it does not run on made-up inputs: {type(error).__name__}: {error}"
    return [Cost(t, size, count) for t, (size, count) in zip(times, counted, strict=True)], reason


def operations(bound: BoundSymbol) -> int:
    """Return the floating-point operations of a call; see :class:`Cost`."""
    made = [p for p in bound.outputs if isinstance(p, TensorProxy)]
    elements = sum(_count(p) for p in made)
    tensors = [p for p in bound.args if isinstance(p, TensorProxy)]
    name = bound.symbol.name
    if name in PRODUCTS and len(tensors) >= 2 and made:
        inner = tensors[1] if name in ("addmm", "baddbmm") else tensors[0]
        return 2 * _count(made[0]) * int(value_of(inner.shape[-1])) if inner.ndim else elements
    if name in CONVOLUTIONS and len(tensors) >= 2 and made:
        return 2 * _count(made[0]) * math.prod(int(value_of(s)) for s in tensors[1].shape[1:])
    return elements


def _count(proxy: TensorProxy) -> int:
    return math.prod(int(value_of(s)) for s in proxy.shape)


def _bytes(bound: BoundSymbol) -> int:
    return sum(bytes_of(p) for p in {p.name: p for p in (*bound.inputs, *bound.outputs)}.values())


def _made_up(proxy: Proxy) -> Any:
    if isinstance(proxy, NumberProxy):
        return value_of(proxy)
    if not isinstance(proxy, TensorProxy):
        raise NotMeasurable(f"input {proxy.name} is neither a tensor nor a number")
    shape = [int(value_of(s)) for s in proxy.shape]
    dtype = getattr(torch, proxy.dtype.name.removesuffix("8") if proxy.dtype.name == "bool8" else proxy.dtype.name)
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(shape, device=str(proxy.device)).to(dtype)
    return torch.zeros(shape, dtype=dtype, device=str(proxy.device))


def _measured(trace: Trace, runs: int, seconds: float) -> list[float]:
    least = [math.inf] * len(trace.bound_symbols)
    given = {p.name: _made_up(p) for p in trace.inputs}
    start = time.perf_counter()
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        for run in range(runs + 1):
            found = _once(trace, given)
            if run == 0 and time.perf_counter() - start < seconds:
                continue
            least = [min(a, b) for a, b in zip(least, found, strict=True)]
            if time.perf_counter() - start > seconds:
                break
    return least


def _once(trace: Trace, given: Mapping[str, Any]) -> list[float]:
    values = dict(given)
    found = []
    on_cuda = any(isinstance(v, torch.Tensor) and v.is_cuda for v in given.values())
    for bound in trace.bound_symbols:
        if bound.symbol is delete:
            for proxy in bound.args:
                values.pop(proxy.name, None)
            found.append(0.0)
            continue
        function = bound.symbol.implementation
        if function is None:
            raise NotMeasurable(f"{bound.symbol.id} has nothing that runs it by itself")
        args, kwargs = substitute((bound.args, bound.kwargs), values)
        start = time.perf_counter()
        output = function(*args, **kwargs)
        if on_cuda:
            torch.cuda.synchronize()
        found.append(time.perf_counter() - start)
        pair_outputs(bound.output, output, values)
    return found
