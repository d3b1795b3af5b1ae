"""The executor: which products of matrices it takes, and how they are computed."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

import thunder_prims as prims
from thunder_executors import Arguments, Declined, Executor, OperatorExecutor, arguments
from thunder_executors_onednn._version import __version__
from thunder_executors_onednn.availability import missing
from thunder_ir import BoundSymbol, TensorProxy, devices, dtypes, is_one, value_of
from thunder_torch import symbol_of

LEAST_DIMENSION = 32
LEAST_PRODUCTS = 2**21
"""Multiplications, and the smallest of the three sizes, from which on oneDNN is faster; see the table of the README."""


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return ``input @ weight.T + bias``.

    Args:
        input: shape ``(..., columns)``, float32.
        weight: shape ``(rows, columns)``, float32.
        bias: shape ``(rows,)``, float32.
    """
    if bias is not None:
        bias = bias.contiguous()  # the operator reads it as if it were
    result: Tensor = torch.ops.mkldnn._linear_pointwise.default(input, weight, bias, "none", [], None)
    return result


def matmul(input: Tensor, other: Tensor) -> Tensor:
    """Return ``input @ other``.

    Args:
        input: shape ``(..., inner)``, float32.
        other: shape ``(inner, columns)``, float32.
    """
    return linear(input, other.t())


def addmm(input: Tensor, mat1: Tensor, mat2: Tensor) -> Tensor:
    """Return ``input + mat1 @ mat2``.

    Args:
        input: shape ``(columns,)``, float32.
        mat1: shape ``(rows, inner)``, float32.
        mat2: shape ``(inner, columns)``, float32.
    """
    return linear(mat1, mat2.t(), input)


class OnednnExecutor(OperatorExecutor):
    """Computes products of matrices by oneDNN.

    Args:
        least: how many multiplications a product has at least that is taken.
        dimension: the smallest size that a matrix has.
        careful: who takes part where the user names no executor.
    """

    def __init__(self, least: int, dimension: int, careful: Executor | None = None) -> None:
        super().__init__(
            "onednn", version=__version__, missing=missing, default=False, priority=15, checks=False, careful=careful
        )
        self.least, self.dimension = least, dimension
        for product in (prims.linear, symbol_of(torch.nn.functional.linear)):
            self.calls(linear, product, when=self._takes_linear)(_of_linear)
        for product in (prims.matmul, symbol_of(torch.matmul)):
            self.calls(matmul, product, when=self._takes_matmul)(_of_matmul)
        self.calls(matmul, symbol_of(torch.mm), when=self._takes_mm)(_of_mm)
        self.calls(addmm, symbol_of(torch.addmm), when=self._takes_addmm)(_of_addmm)

    def makes_new(self, bound: BoundSymbol) -> bool:
        return True

    def _takes_linear(self, bound: BoundSymbol) -> bool | Declined:
        return self._takes(*_of_linear(*bound.args, **bound.kwargs).args)

    def _takes_matmul(self, bound: BoundSymbol) -> bool | Declined:
        return self._takes(*_of_matmul(*bound.args, **bound.kwargs).args)

    def _takes_mm(self, bound: BoundSymbol) -> bool | Declined:
        return self._takes(*_of_mm(*bound.args, **bound.kwargs).args)

    def _takes_addmm(self, bound: BoundSymbol) -> bool | Declined:
        scales = [bound.kwargs.get(name, 1) for name in ("beta", "alpha")]
        if not all([is_one(scale) for scale in scales]):
            return Declined("it does not scale what it adds up")
        bias, a, b = _of_addmm(*bound.args, **bound.kwargs).args
        return self._takes(a, b, bias)

    def _takes(self, a: Any, matrix: Any, bias: Any = None) -> bool | Declined:
        """Whether a product is taken of ``a``, whose last dimension a matrix has, too."""
        if isinstance(matrix, TensorProxy) and matrix.ndim != 2:
            return Declined("it multiplies by matrices, not by batches of them or by vectors")
        for value in (a, matrix, bias)[: 2 if bias is None else 3]:
            if not isinstance(value, TensorProxy) or value.device.type is not devices.cpu.type:
                return Declined("it takes tensors of the CPU")
            if value.dtype is not dtypes.float32:
                return Declined(f"PyTorch multiplies {value.dtype} as fast")
        if a.ndim < 2:
            return Declined("PyTorch multiplies vectors as fast")
        inner = value_of(a.shape[-1])
        rows = math.prod(map(value_of, a.shape[:-1]))
        columns = math.prod(map(value_of, matrix.shape)) // max(inner, 1)
        if bias is not None and tuple(map(value_of, bias.shape)) != (columns,):
            return Declined("it adds a vector to each row, and nothing else")
        if min(rows, inner, columns) < self.dimension or rows * inner * columns < self.least:
            return Declined("PyTorch multiplies matrices of this size as fast")
        return True


def _of_linear(input: Any, weight: Any, bias: Any = None) -> Arguments:
    return arguments(input, weight, bias)


def _of_matmul(input: Any, other: Any) -> Arguments:
    return arguments(input, other)


def _of_mm(input: Any, mat2: Any) -> Arguments:
    return arguments(input, mat2)


def _of_addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Arguments:
    return arguments(input, mat1, mat2)


executor = OnednnExecutor(1, 1, careful=OnednnExecutor(LEAST_PRODUCTS, LEAST_DIMENSION))

__all__ = ["LEAST_DIMENSION", "LEAST_PRODUCTS", "OnednnExecutor", "addmm", "executor", "linear", "matmul"]
