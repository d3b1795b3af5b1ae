"""Products of matrices and vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import thunder_prims as prims
from thunder_ir import DeviceError, DTypeError, ShapeError, TensorProxy, dtypes
from thunder_lang.dims import as_tensor, canonical_dim, canonical_dims, need_tensor
from thunder_lang.elementwise_binary import mul
from thunder_lang.elementwise_unary import conj
from thunder_lang.language import core
from thunder_lang.operands import broadcast_shapes, broadcast_to, convert
from thunder_lang.promotion import result_type
from thunder_lang.reduction import sum
from thunder_lang.shape import permute, reshape, unsqueeze
from thunder_prims.checks import count

__all__ = [
    "bmm", "cross", "dot", "inner", "kron", "linear", "matmul", "mm", "mv", "outer", "tensordot", "trace", "vdot",
    "vecdot",
]  # fmt: skip


def _alike(operation: str, a: Any, b: Any) -> tuple[TensorProxy, TensorProxy]:
    a, b = need_tensor(operation, a), need_tensor(operation, b)
    if a.dtype is not b.dtype:
        raise DTypeError(f"{operation} needs tensors of one dtype, got {a.type_string} and {b.type_string}")
    if a.device != b.device:
        raise DeviceError(f"{operation} needs tensors on one device, got {a.type_string} and {b.type_string}")
    return a, b


@core.method("matmul")
def matmul(a: TensorProxy, b: TensorProxy) -> TensorProxy:
    """``a @ b``: of vectors, matrices, and batches of matrices, which broadcast.

    Args:
        a: shape ``(k,)`` or ``(..., n, k)``.
        b: shape ``(k,)`` or ``(..., k, m)``, dtype of ``a``.

    Returns:
        shape ``(..., n, m)``, without the dimensions that a vector does not have.

    Raises:
        ShapeError: an operand has no dimension, or the shapes do not fit.
        DTypeError: the dtypes differ.

    Source:
        ``torch.matmul``.
    """
    a, b = _alike("matmul", a, b)
    if not a.shape or not b.shape:
        raise ShapeError(f"both arguments to matmul need to be at least 1D, got {a.type_string} and {b.type_string}")
    inner = b.shape[0] if b.ndim == 1 else b.shape[-2]
    if a.shape[-1] != inner:
        raise ShapeError(f"matmul: sizes do not fit: {a.type_string} and {b.type_string} ({a.shape[-1]} and {inner})")
    if a.dtype.is_bool:
        raise DTypeError(f"matmul needs numbers, got {a.type_string}")
    if b.ndim == 1 and a.ndim > 2:
        return _folded(a, unsqueeze(b, 1), a.shape[:-1])
    if b.ndim == 2 and a.ndim > 2:
        return _folded(a, b, (*a.shape[:-1], b.shape[1]))
    left = unsqueeze(a, 0) if a.ndim == 1 else a
    right = unsqueeze(b, 1) if b.ndim == 1 else b
    batch = broadcast_shapes(left.shape[:-2], right.shape[:-2])
    left = broadcast_to(left, (*batch, *left.shape[-2:]))
    right = broadcast_to(right, (*batch, *right.shape[-2:]))
    product = as_tensor(prims.matmul(left, right))
    shape = (*batch, *(a.shape[-2:-1] if a.ndim > 1 else ()), *(b.shape[-1:] if b.ndim > 1 else ()))
    return product if product.ndim == len(shape) else reshape(product, shape)


def _folded(a: TensorProxy, b: TensorProxy, shape: Sequence[Any]) -> TensorProxy:
    """A batch of matrices times one matrix, as one product of matrices."""
    rows: Any = 1
    for length in a.shape[:-1]:
        rows = rows * length
    return reshape(prims.matmul(reshape(a, (rows, a.shape[-1])), b), tuple(shape))


def _of_dims(operation: str, dims: tuple[int, int], a: Any, b: Any) -> tuple[TensorProxy, TensorProxy]:
    a, b = _alike(operation, a, b)
    if (a.ndim, b.ndim) != dims:
        raise ShapeError(
            f"{operation} needs tensors of {dims[0]} and {dims[1]} dimensions, got {a.type_string} and {b.type_string}"
        )
    return a, b


@core.method("mm")
def mm(a: TensorProxy, b: TensorProxy) -> TensorProxy:
    """``a @ b`` of two matrices."""
    return matmul(*_of_dims("mm", (2, 2), a, b))


@core.method("mv")
def mv(a: TensorProxy, b: TensorProxy) -> TensorProxy:
    """``a @ b`` of a matrix and a vector."""
    return matmul(*_of_dims("mv", (2, 1), a, b))


@core.method("dot")
def dot(a: TensorProxy, b: TensorProxy) -> TensorProxy:
    """``a @ b`` of two vectors."""
    return matmul(*_of_dims("dot", (1, 1), a, b))


@core.method("vdot")
def vdot(a: TensorProxy, b: TensorProxy) -> TensorProxy:
    """``conj(a) @ b`` of two vectors."""
    a, b = _of_dims("vdot", (1, 1), a, b)
    return matmul(conj(a), b)


@core.method("bmm")
def bmm(a: TensorProxy, b: TensorProxy) -> TensorProxy:
    """The products of two batches of matrices.

    Raises:
        ShapeError: the batches differ in size.
    """
    a, b = _of_dims("bmm", (3, 3), a, b)
    if a.shape[0] != b.shape[0]:
        raise ShapeError(f"bmm needs batches of one size, got {a.type_string} and {b.type_string}")
    return matmul(a, b)


@core.method("outer", "ger")
def outer(a: TensorProxy, b: TensorProxy) -> TensorProxy:
    """The products of each element of one vector with each of another; their dtypes promote."""
    a, b = need_tensor("outer", a), need_tensor("outer", b)
    if a.ndim != 1 or b.ndim != 1:
        raise ShapeError(f"outer needs vectors, got {a.type_string} and {b.type_string}")
    return mul(unsqueeze(a, 1), b)  # type: ignore[no-any-return]


@core.method("inner")
def inner(a: TensorProxy, b: TensorProxy) -> TensorProxy:
    """The sums of products over the last dimensions of both."""
    a, b = _alike("inner", a, b)
    if not a.shape or not b.shape:
        return mul(a, b)  # type: ignore[no-any-return]
    return tensordot(a, b, ((a.ndim - 1,), (b.ndim - 1,)))


def vecdot(a: TensorProxy, b: TensorProxy, dim: int = -1) -> TensorProxy:
    """``sum(conj(a) * b)`` along a dimension; the others broadcast."""
    return sum(mul(conj(a), b), dim)


def tensordot(a: TensorProxy, b: TensorProxy, dims: int | Sequence[Any] = 2) -> TensorProxy:
    """Sum products over dimensions of both.

    Args:
        a, b: of one dtype.
        dims: how many last dimensions of ``a`` and first of ``b``; or those of ``a`` and those of ``b``.

    Returns:
        the dimensions of ``a`` that are left, then those of ``b``.

    Raises:
        ShapeError: the dimensions are of different lengths or numbers.
    """
    a, b = _alike("tensordot", a, b)
    if isinstance(dims, int):
        if dims < 0 or dims > min(a.ndim, b.ndim):
            raise ShapeError(f"tensordot of {a.type_string} and {b.type_string} cannot sum over {dims} dimensions")
        dims = (range(a.ndim - dims, a.ndim), range(dims))
    over_a = canonical_dims("tensordot", a.ndim, list(dims[0]))
    over_b = canonical_dims("tensordot", b.ndim, list(dims[1]))
    if [a.shape[d] for d in over_a] != [b.shape[d] for d in over_b]:
        raise ShapeError(f"tensordot: {a.type_string} along {over_a} and {b.type_string} along {over_b} differ")
    rest_a = tuple([d for d in range(a.ndim) if d not in over_a])
    rest_b = tuple([d for d in range(b.ndim) if d not in over_b])
    rows, columns, inner = (count([x.shape[i] for i in d]) for x, d in ((a, rest_a), (b, rest_b), (a, over_a)))
    left = reshape(permute(a, rest_a + over_a), (rows, inner))
    right = reshape(permute(b, over_b + rest_b), (inner, columns))
    shape = (*[a.shape[d] for d in rest_a], *[b.shape[d] for d in rest_b])
    return reshape(prims.matmul(left, right), shape)


def kron(a: TensorProxy, b: TensorProxy) -> TensorProxy:
    """The Kronecker product: ``b`` times each element of ``a``, in blocks."""
    a, b = need_tensor("kron", a), need_tensor("kron", b)
    ndim = max(a.ndim, b.ndim)
    left = reshape(a, (1,) * (ndim - a.ndim) + tuple(a.shape))
    right = reshape(b, (1,) * (ndim - b.ndim) + tuple(b.shape))
    blocks = mul(unsqueeze(left, tuple(range(1, 2 * ndim, 2))), unsqueeze(right, tuple(range(0, 2 * ndim, 2))))
    return reshape(blocks, tuple([n * m for n, m in zip(left.shape, right.shape, strict=True)]))


def cross(a: TensorProxy, b: TensorProxy, dim: int = -1) -> TensorProxy:
    """The cross product of vectors of length 3 along a dimension; the others broadcast.

    Raises:
        ShapeError: the dimension has another length.
    """
    if a.ndim != b.ndim:
        raise ShapeError(f"cross needs as many dimensions of each, got {a.type_string} and {b.type_string}")
    dtype = result_type(a, b)
    shape = broadcast_shapes(a.shape, b.shape)
    a, b = (broadcast_to(convert(x, dtype), shape) for x in (a, b))
    dim = canonical_dim("cross", a.ndim, dim)
    if a.shape[dim] != 3:
        raise ShapeError(f"cross needs vectors of length 3, got {a.type_string} along dimension {dim}")
    one = prims.tensor_from_sequence([1, 2, 0], dtypes.int64, a.device)
    two = prims.tensor_from_sequence([2, 0, 1], dtypes.int64, a.device)
    forward = prims.mul(prims.take(a, one, dim), prims.take(b, two, dim))
    return as_tensor(prims.sub(forward, prims.mul(prims.take(a, two, dim), prims.take(b, one, dim))))


@core.method("trace")
def trace(a: TensorProxy, offset: int = 0) -> TensorProxy:
    """The sum of a diagonal of the last two dimensions."""
    rows, columns = a.shape[-2], a.shape[-1]
    row = prims.iota(rows, offset, 1, dtypes.int64, a.device)
    column = prims.iota(columns, 0, 1, dtypes.int64, a.device)
    dims = (a.ndim - 2,), (a.ndim - 1,)
    first, second = (prims.broadcast_in_dim(x, a.shape, d) for x, d in zip((row, column), dims, strict=True))
    zero = (False, 0, 0.0, 0j)[a.dtype.kind]
    return sum(prims.where(prims.eq(first, second), a, zero), (-2, -1))


def linear(a: TensorProxy, weight: TensorProxy, bias: TensorProxy | None = None) -> TensorProxy:
    """``a @ weight.T + bias``.

    Args:
        a: shape ``(..., k)``.
        weight: shape ``(m, k)``, or ``(k,)`` for a single output.
        bias: shape ``(m,)``, or ``()`` for a single output.
    """
    a, weight = _alike("linear", a, weight)
    if weight.ndim == 1:
        product = matmul(a, weight)
        return product if bias is None else as_tensor(prims.add(product, broadcast_to(bias, product.shape)))
    return as_tensor(prims.linear(a, weight, bias))
