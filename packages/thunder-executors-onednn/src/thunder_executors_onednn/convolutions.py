"""Convolutions of single points, which are products of matrices.

PyTorch asks oneDNN for convolutions, but not for those whose kernel is a single point where there is one thread and
the batch is small: these it computes by MKL. It asks oneDNN for all that are dilated. A single point is the same
whether dilated or not, so these are called as dilated ones.
"""

from __future__ import annotations

import math
from typing import Any

import torch

import thunder_prims as prims
from thunder_executors import Arguments, Declined, OperatorExecutor, arguments
from thunder_executors_onednn.taking import Sizes, takes_operands
from thunder_ir import BoundSymbol, TensorProxy, is_one, value_of
from thunder_torch import symbol_of
from thunder_torch.convert import contiguous_strides

DILATED = (2, 2)


def _of_conv2d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: Any = 1
) -> Arguments:
    return arguments(input, weight, bias, stride, padding, DILATED, groups)


def _of_convolution(
    input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: Any, output_padding: Any,
    groups: Any,
) -> Arguments:  # fmt: skip
    return arguments(input, weight, bias, stride, padding, DILATED, transposed, output_padding, groups)


def _of_backward(dy: Any, a: Any, weight: Any, stride: Any, padding: Any, dilation: Any, *rest: Any) -> Arguments:
    *others, mask = rest
    return arguments(dy, a, weight, (dy.shape[1],), stride, padding, DILATED, *others, mask)


def _is_in_rows(tensor: TensorProxy) -> bool:
    """Whether elements lie one row after the other, as far as is known."""
    if tensor.strides is None:
        return True
    return tuple(map(value_of, tensor.strides)) == contiguous_strides(tuple(map(value_of, tensor.shape)))


def add_convolutions(executor: OperatorExecutor, sizes: Sizes) -> None:
    """Let an executor compute convolutions of single points that are large enough."""

    def takes(a: Any, weight: Any, bias: Any, result: Any, transposed: bool, groups: Any) -> bool | Declined:
        answer = takes_operands(a, weight, bias, result)
        if not answer:
            return answer
        if weight.ndim != 4 or not all(map(is_one, weight.shape[2:])):
            return Declined("PyTorch asks oneDNN itself for kernels of more than a point")
        if transposed or not is_one(groups):
            return Declined("it computes no transposed convolution, and none of groups")
        if not all(map(_is_in_rows, (a, weight, result))):
            return Declined("gradients would have other strides than PyTorch's")
        columns, inner = map(value_of, weight.shape[:2])
        points = math.prod(map(value_of, result.shape)) // max(columns, 1)
        return sizes.takes(points, inner, columns)

    def takes_conv2d(bound: BoundSymbol) -> bool | Declined:
        a, weight, bias, *_, groups = _of_conv2d(*bound.args, **bound.kwargs).args
        return takes(a, weight, bias, bound.output, False, groups)

    def takes_convolution(bound: BoundSymbol) -> bool | Declined:
        a, weight, bias, _, _, _, transposed, _, groups = _of_convolution(*bound.args, **bound.kwargs).args
        return takes(a, weight, bias, bound.output, transposed, groups)

    def takes_backward(bound: BoundSymbol) -> bool | Declined:
        dy, a, weight, _, _, _, transposed, _, groups, _ = bound.args
        return takes(a, weight, None, dy, transposed, groups)

    backward = torch.ops.aten.convolution_backward.default
    executor.calls(torch.conv2d, symbol_of(torch.conv2d), when=takes_conv2d)(_of_conv2d)
    for convolution in (prims.convolution, symbol_of(torch.convolution)):
        executor.calls(torch.convolution, convolution, when=takes_convolution)(_of_convolution)
    executor.calls(backward, prims.convolution_backward, when=takes_backward)(_of_backward)


__all__ = ["add_convolutions"]
