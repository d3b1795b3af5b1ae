"""Products of matrices and vectors."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

import thunder_lang as lang
from thunder_autograd import vjp_rule
from thunder_ir import IntegerProxy, OpTags, Symbol, TensorProxy, dtypes, same_shape
from thunder_torch.convert import contiguous_strides
from thunder_torch.elementwise_binary import reflected
from thunder_torch.rounding import half_of, narrow_to, wide
from thunder_torch.symbol import composed, torchsymbol
from thunder_torch.traits import Trait, state

PRODUCT = (OpTags.MATMUL,)
state(
    "__matmul__", "__rmatmul__", "addmm", "addmv", "baddbmm", "bmm", "linear", "matmul", "mm", "mv",
    traits=(Trait.IN_ROWS,),
)  # fmt: skip
state("cholesky", "cholesky_inverse", "cholesky_solve", "inverse", "lu_solve", traits=(Trait.MAY_FAIL,))
state("cdist", "cosine_similarity", "norm", "pairwise_distance", "vector_norm", traits=(Trait.SYMBOLIC_PRODUCTS,))
state("lobpcg", "pca_lowrank", "svd_lowrank", traits=(Trait.DRAWS,))
state("istft", "lstsq", traits=(Trait.SHAPED_BY_METADATA,))
state("eig", "einsum", "svd", traits=(Trait.OTHERWISE_ON_META,))
state(
    "fft2", "fftn", "hfft2", "hfftn", "ifft2", "ifftn", "ihfft2", "ihfftn", "irfft2", "irfftn", "rfft2", "rfftn",
    traits=(Trait.OTHERWISE_ON_META,),
)  # fmt: skip
state("fft", "hfft", "ifft", "ihfft", "irfft", "rfft", traits=(Trait.ROWS_ON_META,))

matmul = composed(lang.matmul, torch.matmul, Tensor.matmul, Tensor.__matmul__, torch.linalg.matmul, tags=PRODUCT)
rmatmul_operator = reflected(lang.matmul, Tensor.__rmatmul__, name="Tensor___rmatmul__", tags=PRODUCT)
vdot = composed(lang.vdot, torch.vdot, Tensor.vdot, tags=PRODUCT)
inner = composed(lang.inner, torch.inner, Tensor.inner, tags=PRODUCT)
kron = composed(lang.kron, torch.kron, Tensor.kron, tags=PRODUCT)
linalg_cross = composed(lang.cross, torch.linalg.cross, name="linalg_cross")


@torchsymbol(torch.mm, Tensor.mm, tags=PRODUCT)
def mm(a: TensorProxy, mat2: TensorProxy) -> TensorProxy:
    """The product of two matrices."""
    return lang.mm(a, mat2)


@torchsymbol(torch.bmm, Tensor.bmm, tags=PRODUCT)
def bmm(a: TensorProxy, mat2: TensorProxy) -> TensorProxy:
    """The products of two batches of matrices."""
    return lang.bmm(a, mat2)


@torchsymbol(torch.mv, Tensor.mv, tags=PRODUCT)
def mv(a: TensorProxy, vec: TensorProxy) -> TensorProxy:
    """The product of a matrix and a vector."""
    return lang.mv(a, vec)


@torchsymbol(torch.dot, Tensor.dot, tags=PRODUCT)
def dot(a: TensorProxy, tensor: TensorProxy) -> TensorProxy:
    """The product of two vectors."""
    return lang.dot(a, tensor)


@torchsymbol(torch.outer, Tensor.outer, torch.ger, Tensor.ger, tags=PRODUCT)
def outer(a: TensorProxy, vec2: TensorProxy) -> TensorProxy:
    """The products of all pairs of elements of two vectors."""
    return lang.outer(a, vec2)


@torchsymbol(torch.linalg.vecdot, tags=PRODUCT, name="linalg_vecdot")
def vecdot(x: TensorProxy, y: TensorProxy, *, dim: int = -1) -> TensorProxy:
    """The products of vectors along a dimension."""
    return lang.vecdot(x, y, dim)


@torchsymbol(torch.tensordot, tags=PRODUCT)
def tensordot(a: TensorProxy, b: TensorProxy, dims: Any = 2) -> Any:
    """The sum of products over several dimensions."""
    if isinstance(dims, (TensorProxy, Tensor)):
        return NotImplemented
    if isinstance(dims, IntegerProxy):
        dims = int(dims)
    if not isinstance(dims, int):
        first, second = ([d] if isinstance(d, int) else list(d) for d in dims)
        if any(a.shape[m] != b.shape[n] for m, n in zip(first, second, strict=False)):  # one of length 1 broadcasts
            return NotImplemented
    return lang.tensordot(a, b, dims)


@torchsymbol(torch.einsum, tags=PRODUCT)
def einsum(equation: Any, *operands: Any) -> Any:
    """Sums of products as an equation says."""
    if not isinstance(equation, str):
        return NotImplemented
    tensors = operands[0] if len(operands) == 1 and isinstance(operands[0], (tuple, list)) else operands
    return lang.einsum(equation, *tensors)


@torchsymbol(torch.trace, Tensor.trace)
def trace(a: TensorProxy) -> TensorProxy:
    """The sum of the diagonal."""
    if a.dtype is dtypes.float32:  # PyTorch adds up in double precision
        return lang.to(lang.trace(lang.to(a, dtypes.float64)), a.dtype)
    result = lang.trace(a)
    return lang.sum(result) if a.dtype.is_exact else result


def _combined(product: Any, a: TensorProxy, left: Any, right: Any, beta: Any, alpha: Any) -> TensorProxy:
    """Return ``beta * a + alpha * product(left, right)``, half precisions rounded once, at the end."""
    half = half_of(a, left, right)
    a, left, right = (wide(v) if half else v for v in (a, left, right))
    found = product(left, right)
    if alpha != 1:
        found = found * alpha
    total = (a if beta == 1 else a * beta) + found
    return narrow_to(total, half) if half else total


@torchsymbol(torch.addmm, Tensor.addmm, tags=PRODUCT)
def addmm(a: TensorProxy, mat1: TensorProxy, mat2: TensorProxy, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """``beta * a + alpha * mat1 @ mat2``."""
    return _combined(lang.matmul, a, mat1, mat2, beta, alpha) if beta != 0 else NotImplemented


@torchsymbol(torch.addmv, Tensor.addmv, tags=PRODUCT)
def addmv(a: TensorProxy, mat: TensorProxy, vec: TensorProxy, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """``beta * a + alpha * mat @ vec``."""
    return _combined(lang.matmul, a, mat, vec, beta, alpha) if beta != 0 else NotImplemented


@torchsymbol(torch.addr, Tensor.addr, tags=PRODUCT)
def addr(a: TensorProxy, vec1: TensorProxy, vec2: TensorProxy, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """``beta * a`` plus ``alpha`` times the outer product of two vectors."""
    if beta == 0 or not a.dtype.is_inexact:
        return NotImplemented
    return _combined(lang.outer, a, vec1, vec2, beta, alpha)


@torchsymbol(torch.baddbmm, Tensor.baddbmm, tags=PRODUCT)
def baddbmm(a: TensorProxy, batch1: TensorProxy, batch2: TensorProxy, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """``beta * a + alpha * batch1 @ batch2``, batch by batch."""
    return _combined(lang.matmul, a, batch1, batch2, beta, alpha) if beta != 0 else NotImplemented


@torchsymbol(torch.addbmm, Tensor.addbmm, tags=PRODUCT)
def addbmm(a: TensorProxy, batch1: TensorProxy, batch2: TensorProxy, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """``beta * a`` plus ``alpha`` times the sum of ``batch1 @ batch2`` over the batch."""
    if beta == 0 or a.dtype.is_exact:
        return NotImplemented
    return _combined(lambda x, y: lang.sum(lang.matmul(x, y), 0), a, batch1, batch2, beta, alpha)


def _combined_vjp(symbol: Symbol, a: TensorProxy, left: TensorProxy, right: TensorProxy, beta: Any, alpha: Any) -> Any:
    """Differentiate ``beta * a + alpha * left @ right``, in the dtype of the operands as PyTorch does.

    ``da = beta * dy``, ``dleft = alpha * dy @ right.mH`` and ``dright = alpha * left.mH @ dy``. The call stays whole,
    so that one kernel adds to what it multiplies.
    """
    y = symbol(a, left, right, beta=beta, alpha=alpha)

    def pullback(dy: TensorProxy) -> Any:
        da = dy if beta == 1 else dy * _conjugate(beta)
        dproduct = dy if alpha == 1 else dy * _conjugate(alpha)
        dleft, dright = lang.matmul(dproduct, _adjoint(right)), lang.matmul(_adjoint(left), dproduct)
        return _reduced_to(a, da), dleft, dright

    return y, pullback


@vjp_rule(addmm)
def addmm_vjp(a: TensorProxy, mat1: TensorProxy, mat2: TensorProxy, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """One product for each factor."""
    return _combined_vjp(addmm, a, mat1, mat2, beta, alpha)


@vjp_rule(baddbmm)
def baddbmm_vjp(a: TensorProxy, batch1: TensorProxy, batch2: TensorProxy, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """One product for each factor, batch by batch."""
    return _combined_vjp(baddbmm, a, batch1, batch2, beta, alpha)


@vjp_rule(addbmm)
def addbmm_vjp(a: TensorProxy, batch1: TensorProxy, batch2: TensorProxy, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """One product for each factor; the gradient of the sum over the batch is the same for all of it."""
    return _combined_vjp(addbmm, a, batch1, batch2, beta, alpha)


def _adjoint(a: TensorProxy) -> TensorProxy:
    return lang.matrix_transpose(lang.conj(a) if a.dtype.is_complex else a)


def _conjugate(number: Any) -> Any:
    return number.conjugate() if isinstance(number, complex) else number


def _reduced_to(a: TensorProxy, gradient: TensorProxy) -> TensorProxy:
    """Return the gradient of what was broadcast."""
    extra = gradient.ndim - a.ndim
    repeated = [d for d in range(a.ndim) if a.shape[d] != gradient.shape[d + extra]]
    dims = (*range(extra), *[d + extra for d in repeated])
    if not dims:
        return gradient
    kept = lang.sum(gradient, dims)
    return lang.unsqueeze(kept, tuple(repeated)) if repeated else kept


def _linear_meta(a: Any, weight: Any, bias: Any = None) -> Any:
    """The metadata of the case that models are made of; PyTorch tells all others."""
    if weight.__class__ is not TensorProxy or a.__class__ is not TensorProxy or weight.ndim != 2 or a.ndim < 2:
        return NotImplemented
    rows, inner = weight.shape
    if inner.__class__ is not int or a.shape[-1].__class__ is not int or a.shape[-1] != inner:
        return NotImplemented
    if a.dtype is not weight.dtype or a.device != weight.device:
        return NotImplemented
    if bias is not None and (
        bias.__class__ is not TensorProxy or not same_shape(bias.shape, (rows,)) or bias.dtype is not a.dtype
    ):
        return NotImplemented
    shape = (*a.shape[:-1], rows)
    for dimension in shape:
        if dimension.__class__ is not int:
            return NotImplemented
    tracked = a.requires_grad or weight.requires_grad or (bias is not None and bias.requires_grad)
    strides = contiguous_strides(shape) if a.strides is not None else None
    return TensorProxy(shape, a.dtype, a.device, tracked and torch.is_grad_enabled(), strides)


@torchsymbol(F.linear, torch._C._nn.linear, tags=PRODUCT, meta=_linear_meta)
def linear(a: TensorProxy, weight: TensorProxy, bias: TensorProxy | None = None) -> Any:
    """``a @ weight.T + bias``."""
    if weight.ndim != 2 or (bias is not None and _is_expanded(bias, weight.shape[0])):
        return NotImplemented
    return lang.linear(a, weight, bias)


def _is_expanded(bias: TensorProxy, features: Any) -> bool:
    """Whether a bias is not one number for each feature: PyTorch takes what broadcasts, too."""
    return bias.ndim != 1 or (bias.shape[0].__class__ is int and bias.shape[0] == 1 and features != 1)


@torchsymbol(F.bilinear, torch.bilinear, tags=PRODUCT)
def bilinear(input1: TensorProxy, input2: TensorProxy, weight: TensorProxy, bias: TensorProxy | None = None) -> Any:
    """``input1 @ weight @ input2 + bias`` for each output."""
    result = lang.einsum("...i,oij,...j->...o", input1, weight, input2)
    return result if bias is None else result + bias


@torchsymbol(torch.linalg.multi_dot, tags=PRODUCT, name="linalg_multi_dot")
def multi_dot(tensors: Any) -> Any:
    """The product of several matrices."""
    result = tensors[0]
    for tensor in tensors[1:]:
        result = lang.matmul(result, tensor)
    return result


@torchsymbol(torch.chain_matmul, tags=PRODUCT)
def chain_matmul(*matrices: Any) -> Any:
    """The product of several matrices."""
    result = matrices[0]
    for matrix in matrices[1:]:
        result = lang.matmul(result, matrix)
    return result


__all__ = [
    "addbmm", "addmm", "addmv", "addr", "baddbmm", "bilinear", "bmm", "chain_matmul", "dot", "einsum", "inner", "kron",
    "linalg_cross", "linear", "matmul", "mm", "multi_dot", "mv", "outer", "rmatmul_operator", "tensordot", "trace",
    "vdot", "vecdot",
]  # fmt: skip
