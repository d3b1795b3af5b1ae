"""Reductions. PyTorch takes no dimensions for all of them, so a reduction along none is a case of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

import thunder_prims as prims
from thunder_executors import arguments
from thunder_executors_torch.executor import executor
from thunder_ir import BoundSymbol, TensorProxy
from thunder_torch.convert import to_torch_dtype


def along_none(bound: BoundSymbol) -> bool:
    """Whether no dimension is reduced."""
    return not bound.args[1]


def along_one(bound: BoundSymbol) -> bool:
    """Whether one dimension is reduced."""
    return len(bound.args[1]) == 1


def _copied(a: TensorProxy, dims: Sequence[int]) -> Any:
    return arguments(a)


for _prim in (prims.sum, prims.prod, prims.amax, prims.amin):
    executor.calls(torch.clone, _prim, when=along_none)(_copied)


@executor.calls(torch.sum, prims.sum)
def sum(a: TensorProxy, dims: Sequence[int]) -> Any:
    return arguments(a, tuple(dims), **_same_dtype(a))


def _same_dtype(a: TensorProxy) -> dict[str, Any]:
    """PyTorch adds up and multiplies integers in ``int64`` unless told otherwise."""
    return {"dtype": to_torch_dtype(a.dtype)} if a.dtype.is_exact else {}


@executor.calls(torch.prod, prims.prod, when=along_one)
def prod(a: TensorProxy, dims: Sequence[int]) -> Any:
    return arguments(a, dims[0], **_same_dtype(a))


@executor.implements(prims.prod)
def prod_along_several(a: torch.Tensor, dims: Sequence[int]) -> torch.Tensor:
    for dim in sorted(dims, reverse=True):
        a = torch.prod(a, dim, dtype=a.dtype)
    return a


executor.implements(prims.amax)(torch.amax)
executor.implements(prims.amin)(torch.amin)


def of_bools(bound: BoundSymbol) -> bool:
    """Whether the elements are bools, for which PyTorch has no place of an extremum."""
    return bool(bound.args[0].dtype.is_bool)


@executor.implements(prims.argmax, when=of_bools)
def argmax_of_bools(a: torch.Tensor, dim: int | None) -> torch.Tensor:
    return torch.argmax(a.to(torch.uint8), dim)


@executor.implements(prims.argmin, when=of_bools)
def argmin_of_bools(a: torch.Tensor, dim: int | None) -> torch.Tensor:
    return torch.argmin(a.to(torch.uint8), dim)


executor.implements(prims.argmax)(torch.argmax)
executor.implements(prims.argmin)(torch.argmin)


@executor.implements(prims.var, when=along_none)
def var_along_none(a: torch.Tensor, dims: Sequence[int], correction: float) -> torch.Tensor:
    return torch.var(a[..., None], -1, correction=correction)


@executor.implements(prims.std, when=along_none)
def std_along_none(a: torch.Tensor, dims: Sequence[int], correction: float) -> torch.Tensor:
    return torch.std(a[..., None], -1, correction=correction)


@executor.implements(prims.var_mean, when=along_none)
def var_mean_along_none(a: torch.Tensor, dims: Sequence[int], correction: float) -> Any:
    return torch.var_mean(a[..., None], -1, correction=correction)


def _spread(a: TensorProxy, dims: Sequence[int], correction: float) -> Any:
    return arguments(a, tuple(dims), correction=correction)


executor.calls(torch.var, prims.var)(_spread)
executor.calls(torch.std, prims.std)(_spread)
executor.calls(torch.var_mean, prims.var_mean)(_spread)
