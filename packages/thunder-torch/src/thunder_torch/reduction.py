"""Reductions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

import thunder_lang as lang
import thunder_prims as prims
from thunder_autograd import vjp_rule
from thunder_ir import OpTags, Symbol, TensorProxy, dtypes
from thunder_torch.convert import from_torch_dtype
from thunder_torch.symbol import composed, structured, torchsymbol
from thunder_torch.traits import Trait, state

REDUCES = (OpTags.REDUCTION,)
CHOOSES = (OpTags.REDUCTION, OpTags.CONSTANT_FOR_DERIVATIVE)
state("mean", "sum", traits=(Trait.SAVES_NOTHING,))
state("bincount", "histc", traits=(Trait.MAY_FAIL,))
state("combinations", "corrcoef", "cov", traits=(Trait.SHAPED_BY_METADATA,))


def dtype_of(dtype: Any) -> Any:
    """Return PyTorch's dtype as one of programs; ``None`` stays."""
    return None if dtype is None else from_torch_dtype(dtype)


def _half(a: TensorProxy) -> bool:
    return a.dtype in (dtypes.float16, dtypes.bfloat16)


@torchsymbol(torch.sum, Tensor.sum, tags=REDUCES)
def sum(a: TensorProxy, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> TensorProxy:
    """The sum of elements."""
    return lang.sum(a, dim, keepdim, dtype=dtype_of(dtype))


@torchsymbol(torch.nansum, Tensor.nansum, tags=REDUCES)
def nansum(a: TensorProxy, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The sum of the elements that are not NaN."""
    if a.dtype.is_complex:
        return NotImplemented
    if a.dtype.is_floating:
        a = lang.where(lang.isnan(a), lang.zeros_like(a), a)
    return lang.sum(a, dim, keepdim, dtype=dtype_of(dtype))


@torchsymbol(torch.mean, Tensor.mean, tags=REDUCES)
def mean(a: TensorProxy, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> TensorProxy:
    """The mean of elements."""
    return lang.mean(a, dim, keepdim, dtype=dtype_of(dtype))


@vjp_rule(mean)
def mean_vjp(a: TensorProxy, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """``da = dy / count``: of all elements as many quotients as PyTorch has, along dimensions one that is repeated."""
    y = mean(a, dim, keepdim, dtype=dtype)
    dims = tuple([d % a.ndim for d in _listed(dim)] if a.ndim else ()) or tuple(range(a.ndim))
    everywhere = len(dims) == a.ndim
    count: Any = 1
    for d in dims:
        count = count * a.shape[d]

    def pullback(dy: TensorProxy) -> TensorProxy:
        dy = dy if everywhere else dy / count
        kept = tuple(range(a.ndim) if keepdim else [d for d in range(a.ndim) if d not in dims])
        spread = prims.broadcast_in_dim(dy, tuple(a.shape), kept) if a.ndim else lang.reshape(dy, ())
        return lang.to(spread / count if everywhere else spread, a.dtype)

    return y, pullback


def _listed(dim: Any) -> Sequence[int]:
    return dim if isinstance(dim, (tuple, list)) else () if dim is None else (dim,)


@torchsymbol(torch.nanmean, Tensor.nanmean, tags=REDUCES)
def nanmean(a: TensorProxy, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The mean of the elements that are not NaN."""
    if not a.dtype.is_floating:
        return NotImplemented
    missing = lang.isnan(a)
    total = lang.sum(lang.where(missing, lang.zeros_like(a), a), dim, keepdim, dtype=dtype_of(dtype))
    return total / lang.sum(lang.logical_not(missing), dim, keepdim)


@torchsymbol(torch.prod, Tensor.prod, tags=REDUCES)
def prod(a: TensorProxy, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> TensorProxy:
    """The product of elements."""
    return lang.prod(a, dim, keepdim, dtype=dtype_of(dtype))


@torchsymbol(torch.amax, Tensor.amax, tags=REDUCES)
def amax(a: TensorProxy, dim: Any = (), keepdim: bool = False) -> TensorProxy:
    """The greatest element, gradients shared among equal ones."""
    return lang.amax(a, dim, keepdim)


@torchsymbol(torch.amin, Tensor.amin, tags=REDUCES)
def amin(a: TensorProxy, dim: Any = (), keepdim: bool = False) -> TensorProxy:
    """The least element, gradients shared among equal ones."""
    return lang.amin(a, dim, keepdim)


@torchsymbol(torch.aminmax, Tensor.aminmax, tags=REDUCES)
def aminmax(a: TensorProxy, *, dim: Any = None, keepdim: bool = False) -> Any:
    """The least and the greatest element."""
    return structured(torch.return_types.aminmax, (lang.amin(a, dim, keepdim), lang.amax(a, dim, keepdim)))


def _extremum(a: TensorProxy, args: tuple[Any, ...], kwargs: dict[str, Any], largest: bool) -> Any:
    """Return what ``max`` and ``min`` do: of all elements, along a dimension with places, or of two tensors."""
    other = kwargs.get("other", args[0] if args and isinstance(args[0], TensorProxy) else None)
    if other is not None:
        return lang.maximum(a, other) if largest else lang.minimum(a, other)
    if not args and "dim" not in kwargs:
        return lang.amax(a) if largest else lang.amin(a)
    dim = args[0] if args else kwargs["dim"]
    if isinstance(dim, str):
        return NotImplemented
    keepdim = args[1] if len(args) > 1 else kwargs.get("keepdim", False)
    place = lang.argmax(a, dim, keepdim) if largest else lang.argmin(a, dim, keepdim)
    if not a.ndim:
        value, place = a, lang.reshape(place, ())
    elif keepdim:
        value = lang.take_along_dim(a, place, dim)
    else:
        value = lang.squeeze(lang.take_along_dim(a, lang.unsqueeze(place, dim), dim), dim)
    return structured(torch.return_types.max if largest else torch.return_types.min, (value, place))


@torchsymbol(torch.max, Tensor.max, tags=REDUCES)
def max(a: TensorProxy, *args: Any, **kwargs: Any) -> Any:
    """The greatest element; along a dimension with its place; of two tensors, element by element."""
    return _extremum(a, args, kwargs, True)


@torchsymbol(torch.min, Tensor.min, tags=REDUCES)
def min(a: TensorProxy, *args: Any, **kwargs: Any) -> Any:
    """The least element; along a dimension with its place; of two tensors, element by element."""
    return _extremum(a, args, kwargs, False)


argmax = composed(lang.argmax, torch.argmax, Tensor.argmax, tags=CHOOSES)
argmin = composed(lang.argmin, torch.argmin, Tensor.argmin, tags=CHOOSES)
count_nonzero = composed(lang.count_nonzero, torch.count_nonzero, Tensor.count_nonzero, tags=CHOOSES)
logsumexp = composed(lang.logsumexp, torch.logsumexp, Tensor.logsumexp, torch.special.logsumexp, tags=REDUCES)


@torchsymbol(torch.any, Tensor.any, tags=CHOOSES)
def any(a: TensorProxy, dim: Any = None, keepdim: bool = False) -> TensorProxy:
    """Whether an element is not zero."""
    result = lang.any(a, dim, keepdim)
    return lang.to(result, dtypes.uint8) if a.dtype is dtypes.uint8 else result


@torchsymbol(torch.all, Tensor.all, tags=CHOOSES)
def all(a: TensorProxy, dim: Any = None, keepdim: bool = False) -> TensorProxy:
    """Whether no element is zero."""
    result = lang.all(a, dim, keepdim)
    return lang.to(result, dtypes.uint8) if a.dtype is dtypes.uint8 else result


@torchsymbol(torch._is_all_true, Tensor._is_all_true, tags=CHOOSES)
def is_all_true(a: TensorProxy) -> Any:
    """Whether no element is false, as distributions check their arguments."""
    return lang.all(a) if a.dtype.is_bool else NotImplemented


@torchsymbol(torch._is_any_true, Tensor._is_any_true, tags=CHOOSES)
def is_any_true(a: TensorProxy) -> Any:
    """Whether an element is true."""
    return lang.any(a) if a.dtype.is_bool else NotImplemented


def _spread_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, bool, Any]:
    """Return dim, keepdim and correction of ``var(a, unbiased)``, ``var(a, dim, unbiased, keepdim)`` and the rest."""
    rest = list(args)
    dim, unbiased = kwargs.get("dim"), kwargs.get("unbiased")
    keepdim, correction = kwargs.get("keepdim", False), kwargs.get("correction")
    if rest and isinstance(rest[0], bool):
        unbiased = rest.pop(0)
    elif rest:
        dim = rest.pop(0)
        if rest:
            unbiased = rest.pop(0)
        if rest:
            keepdim = rest.pop(0)
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    return dim, keepdim, correction


def _spread(function: Callable[..., Any], *callables: Any) -> Symbol:
    def spread(a: TensorProxy, *args: Any, **kwargs: Any) -> Any:
        dim, keepdim, correction = _spread_arguments(args, kwargs)
        return function(a, dim, keepdim, correction=correction)

    spread.__doc__ = function.__doc__
    return torchsymbol(*callables, name=function.__name__, tags=REDUCES)(spread)


var = _spread(lang.var, torch.var, Tensor.var)
std = _spread(lang.std, torch.std, Tensor.std)
var_mean = _spread(lang.var_mean, torch.var_mean)
std_mean = _spread(lang.std_mean, torch.std_mean)


def root(a: TensorProxy) -> TensorProxy:
    """Return the square root, with derivative zero where ``a`` is zero, as norms have it."""
    zero = lang.eq(a, 0)
    return lang.where(zero, lang.zeros_like(a), lang.sqrt(lang.where(zero, lang.ones_like(a), a)))


@torchsymbol(torch.linalg.vector_norm, tags=REDUCES, name="linalg_vector_norm")
def vector_norm(a: TensorProxy, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The norm of order ``ord`` of vectors."""
    if not a.dtype.is_floating or (dtype is not None and not from_torch_dtype(dtype).is_floating) or _half(a):
        return NotImplemented
    a = a if dtype is None else lang.to(a, from_torch_dtype(dtype))
    if ord == 2:
        return root(lang.sum(a * a, dim, keepdim))
    if ord == 1:
        return lang.sum(lang.abs(a), dim, keepdim)
    if ord == 0:
        return lang.to(lang.sum(lang.ne(a, 0), dim, keepdim), a.dtype)
    if a.numel == 0:
        return NotImplemented
    if ord == float("inf"):
        return lang.amax(lang.abs(a), dim, keepdim)
    if ord == float("-inf"):
        return lang.amin(lang.abs(a), dim, keepdim)
    return lang.norm(a, ord, dim, keepdim)


__all__ = [
    "CHOOSES", "REDUCES", "all", "amax", "amin", "aminmax", "any", "argmax", "argmin", "count_nonzero", "dtype_of",
    "is_all_true", "is_any_true", "logsumexp", "max", "mean", "min", "nanmean", "nansum", "prod", "root", "std",
    "std_mean", "sum", "var", "var_mean", "vector_norm",
]  # fmt: skip
