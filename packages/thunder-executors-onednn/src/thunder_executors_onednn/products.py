"""Products of matrices: how they are computed, and which ones are."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import thunder_prims as prims
from thunder_executors import Arguments, Declined, OperatorExecutor, arguments
from thunder_executors_onednn.taking import Sizes, takes_operands
from thunder_ir import BoundSymbol, is_one, value_of
from thunder_torch import symbol_of


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return ``input @ weight.T + bias``.

    Args:
        input: shape ``(..., columns)``, float32.
        weight: shape ``(rows, columns)``, float32.
        bias: shape ``(rows,)``, float32.
    """
    if not torch.backends.mkldnn.enabled:
        return torch.nn.functional.linear(input, weight, bias)
    return _multiplied(input, weight, bias)


def matmul(input: Tensor, other: Tensor) -> Tensor:
    """Return ``input @ other``.

    Args:
        input: shape ``(..., inner)``, float32.
        other: shape ``(inner, columns)``, float32.
    """
    if not torch.backends.mkldnn.enabled:
        return torch.matmul(input, other)
    return _multiplied(input, other.t(), None)


def addmm(input: Tensor, mat1: Tensor, mat2: Tensor) -> Tensor:
    """Return ``input + mat1 @ mat2``.

    Args:
        input: shape ``(columns,)``, float32.
        mat1: shape ``(rows, inner)``, float32.
        mat2: shape ``(inner, columns)``, float32.
    """
    if not torch.backends.mkldnn.enabled:
        return torch.addmm(input, mat1, mat2)
    return _multiplied(mat1, mat2.t(), input)


def _multiplied(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    if bias is not None:
        bias = bias.contiguous()  # the operator reads it as if it were
    rows, columns = weight.shape
    if weight.stride() not in ((columns, 1), (1, rows)):
        weight = weight.contiguous()  # for others oneDNN has but a loop over all elements
    result: Tensor = torch.ops.mkldnn._linear_pointwise.default(input, weight, bias, "none", [], None)
    return result


def _of_linear(input: Any, weight: Any, bias: Any = None) -> Arguments:
    return arguments(input, weight, bias)


def _of_matmul(input: Any, other: Any) -> Arguments:
    return arguments(input, other)


def _of_mm(input: Any, mat2: Any) -> Arguments:
    return arguments(input, mat2)


def _of_addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Arguments:
    return arguments(input, mat1, mat2)


def add_products(executor: OperatorExecutor, sizes: Sizes) -> None:
    """Let an executor compute products that are large enough."""

    def takes(a: Any, matrix: Any, bias: Any = None) -> bool | Declined:
        answer = takes_operands(a, matrix, bias)
        if not answer:
            return answer
        if a.ndim < 2:
            return Declined("PyTorch multiplies vectors as fast")
        if matrix.ndim != 2:
            return Declined("it multiplies by matrices, not by batches of them or by vectors")
        inner = value_of(a.shape[-1])
        columns = math.prod(map(value_of, matrix.shape)) // max(inner, 1)
        if bias is not None and tuple(map(value_of, bias.shape)) != (columns,):
            return Declined("it adds a vector to each row, and nothing else")
        return sizes.takes(math.prod(map(value_of, a.shape[:-1])), inner, columns)

    def arranged(arrange: Callable[..., Arguments]) -> Callable[[BoundSymbol], bool | Declined]:
        return lambda bound: takes(*arrange(*bound.args, **bound.kwargs).args)

    def takes_addmm(bound: BoundSymbol) -> bool | Declined:
        if not all([is_one(bound.kwargs.get(name, 1)) for name in ("beta", "alpha")]):
            return Declined("it does not scale what it adds up")
        bias, a, b = _of_addmm(*bound.args, **bound.kwargs).args
        return takes(a, b, bias)

    for product in (prims.linear, symbol_of(torch.nn.functional.linear)):
        executor.calls(linear, product, when=arranged(_of_linear))(_of_linear)
    for product in (prims.matmul, symbol_of(torch.matmul)):
        executor.calls(matmul, product, when=arranged(_of_matmul))(_of_matmul)
    executor.calls(matmul, symbol_of(torch.mm), when=arranged(_of_mm))(_of_mm)
    executor.calls(addmm, symbol_of(torch.addmm), when=takes_addmm)(_of_addmm)


__all__ = ["add_products", "addmm", "linear", "matmul"]
