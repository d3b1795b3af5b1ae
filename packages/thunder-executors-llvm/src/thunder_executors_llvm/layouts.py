"""How the outputs of a region lie in memory: as eager PyTorch would have them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from thunder_ir import BoundSymbol, Trace
from thunder_loops import row_major_strides
from thunder_prims import flip, stride_order, transpose
from thunder_torch.fake_modes import fake_outputs

REORDERS = frozenset({transpose, flip})
"""Prims whose results lie in another order than rows; what is computed of them follows."""


def keeps_rows(region: Trace) -> bool:
    """Whether outputs are dense and row by row where all inputs are.

    Args:
        region: in prims.
    """
    return not any([reorders(b) for b in region.bound_symbols])


def reorders(bound: BoundSymbol) -> bool:
    """Whether results of a prim lie in another order than rows where its inputs lie so."""
    if bound.symbol is stride_order:
        return tuple(bound.args[1]) != tuple(reversed(range(len(bound.args[1]))))
    return bound.symbol in REORDERS


def output_strides(
    keeps: bool, inputs: Sequence[Any], shapes: Sequence[tuple[int, ...]], eager: Callable[..., Any]
) -> list[tuple[int, ...]]:
    """Return the strides of outputs.

    Args:
        keeps: what :func:`keeps_rows` says.
        inputs: tensors and numbers.
        shapes: of the outputs.
        eager: computes the outputs by PyTorch; it is run on fake tensors.
    """
    if keeps and all([t.is_contiguous() for t in inputs if isinstance(t, torch.Tensor)]):
        return [row_major_strides(shape) for shape in shapes]
    return [tuple(t.stride()) for t in fake_outputs(eager, inputs)]
