"""How the outputs of a region lie in memory: as eager PyTorch would have them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch

from thunder_ir import BoundSymbol, OpTags, TensorProxy, Trace
from thunder_loops import POOLING, row_major_strides
from thunder_prims import flip, matmul, stride_order, transpose
from thunder_torch.fake_modes import fake_outputs
from thunder_torch.meta_tensors import outputs_on_meta

REORDERS = frozenset({transpose, flip})
"""Prims whose results lie in another order than rows; what is computed of them follows."""


def keeps_rows(region: Trace) -> frozenset[int] | None:
    """Return ``None`` where outputs are not dense and row by row although all inputs are; otherwise strict inputs.

    Pooling looks at the strides of what it reads, of dimensions of size 1, too: these inputs are returned, by number.

    Args:
        region: in prims.
    """
    turned: set[str] = set()
    for bound in region.bound_symbols:
        if reorders(bound) or not (turned.isdisjoint([p.name for p in bound.inputs]) or _of_matrices(bound)):
            turned.update([p.name for p in bound.outputs])
    if not turned.isdisjoint([p.name for p in region.outputs]):
        return None
    pooled = {b.args[0].name for b in region.bound_symbols if b.symbol in POOLING}
    for bound in reversed(region.bound_symbols if pooled else ()):
        if OpTags.VIEW in bound.symbol.tags and not pooled.isdisjoint([p.name for p in bound.outputs]):
            pooled.update([p.name for p in bound.inputs])
    return frozenset([number for number, p in enumerate(region.inputs) if p.name in pooled])


def _of_matrices(bound: BoundSymbol) -> bool:
    """Whether a call is a product of matrices, whose result is new and lies row by row however they lie."""
    return bound.symbol is matmul and all([p.ndim == 2 for p in bound.inputs if isinstance(p, TensorProxy)])


def reorders(bound: BoundSymbol) -> bool:
    """Whether results of a prim lie in another order than rows where its inputs lie so."""
    if bound.symbol is stride_order:
        return tuple(bound.args[1]) != tuple(reversed(range(len(bound.args[1]))))
    return bound.symbol in REORDERS


def lies_in_rows(tensor: torch.Tensor) -> bool:
    """Whether a tensor, or one that it is a slice of, lies row by row; dimensions may be expanded."""
    if tensor.is_contiguous():
        return True
    walked = [(step, size) for step, size in zip(tensor.stride(), tensor.shape, strict=True) if step]
    return all([a > b or (a == b and 1 in (n, m)) for (a, n), (b, m) in pairwise(walked)])


def output_strides(
    strict: frozenset[int] | None, inputs: Sequence[Any], shapes: Sequence[tuple[int, ...]], eager: Callable[..., Any]
) -> list[tuple[int, ...]]:
    """Return the strides of outputs.

    Args:
        strict: what :func:`keeps_rows` says.
        inputs: tensors and numbers.
        shapes: of the outputs.
        eager: computes the outputs by PyTorch; it is run on tensors without data.
    """
    tensors = [(number, t) for number, t in enumerate(inputs) if isinstance(t, torch.Tensor)]
    if strict is not None and all(
        [lies_in_rows(t) and (n not in strict or _has_strides_of_rows(t)) for n, t in tensors]
    ):
        return [row_major_strides(shape) for shape in shapes]
    found = outputs_on_meta(eager, inputs)
    return [tuple(t.stride()) for t in (fake_outputs(eager, inputs) if found is None else found)]


def _has_strides_of_rows(tensor: torch.Tensor) -> bool:
    return 1 not in tensor.shape or tensor.stride() == row_major_strides(tensor.shape)
