"""Convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

import thunder_prims as prims
from thunder_executors import arguments
from thunder_executors_torch.executor import executor
from thunder_ir import BoundSymbol, TensorProxy, Trace
from thunder_ir.keys import key_of
from thunder_ir.passes import trace_pass

executor.implements(prims.convolution)(torch.convolution)


@executor.calls(torch.ops.aten.convolution_backward.default, prims.convolution_backward)
def convolution_backward(
    dy: TensorProxy,
    a: TensorProxy,
    weight: TensorProxy,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    mask: Sequence[bool],
) -> Any:
    parameters = (stride, padding, dilation, transposed, output_padding, groups)
    return arguments(dy, a, weight, (dy.shape[1],), *parameters, mask)


@trace_pass
def merge_convolution_backwards(trace: Trace) -> Trace:
    """Compute in one call what several calls compute of the gradients of one convolution.

    Derivatives ask for the gradients of input and parameters apart, as one is often not wanted; where both are left,
    one call prepares its operands once.
    """
    kernel = torch.ops.aten.convolution_backward.default
    first: dict[Any, int] = {}
    kept: list[BoundSymbol] = []
    for bound in trace.bound_symbols:
        if bound.symbol.implementation is kernel:
            position = first.setdefault(key_of(bound.args[:-1]), len(kept))
            if position < len(kept) and not any(map(_both, kept[position].args[-1], bound.args[-1])):
                kept[position] = _merged(kept[position], bound)
                continue
        kept.append(bound)
    return trace.replace(bound_symbols=tuple(kept)) if len(kept) < len(trace.bound_symbols) else trace


def _both(a: Any, b: Any) -> bool:
    return bool(a and b)


def _merged(one: BoundSymbol, other: BoundSymbol) -> BoundSymbol:
    mask = tuple([a or b for a, b in zip(one.args[-1], other.args[-1], strict=True)])
    output = tuple([b if a is None else a for a, b in zip(one.output, other.output, strict=True)])
    return one.replace(args=(*one.args[:-1], mask), output=output)


executor.passes.append(merge_convolution_backwards)
