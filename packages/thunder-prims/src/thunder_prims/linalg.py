"""Prims of linear algebra: products, and what solves with matrices."""

from __future__ import annotations

import math
from typing import Any

from thunder_autograd import Pullback, jvp_rule, vjp_rule
from thunder_ir import OpTags, ShapeError, Symbol, TensorProxy, dtypes
from thunder_prims.axes import (
    adjoint,
    conjugate,
    expanded,
    filled,
    moved,
    of_dtype,
    restored,
    swapped,
    triangle,
)
from thunder_prims.checks import INEXACT, NUMERIC, check_accepts
from thunder_prims.complex_numbers import complex, imag, real
from thunder_prims.operands import any_requires_grad, check_has_shape, check_matrices, check_operands
from thunder_prims.prim import prim
from thunder_prims.reduction import sum
from thunder_prims.shape import batch_first, broadcast_in_dim, reshape
from thunder_vmap import batching_rule

__all__ = ["cholesky", "det", "inverse", "linear", "matmul", "slogdet", "solve", "triangular_solve"]


@prim(OpTags.MATMUL, method="matmul")
def matmul(a: TensorProxy, b: TensorProxy) -> TensorProxy:
    """Multiply matrices.

    Args:
        a: shape ``(..., n, k)``.
        b: shape ``(..., k, m)``, with equal dimensions in front, and the dtype of ``a``.

    Returns:
        shape ``(..., n, m)``.

    Source:
        ``torch.matmul``, without its broadcasting and its vectors.
    """
    check_operands("matmul", a, b)
    check_matrices("matmul", a)
    check_matrices("matmul", b)
    check_accepts("matmul", a, NUMERIC)
    if a.shape[-1] != b.shape[-2] or a.shape[:-2] != b.shape[:-2]:
        raise ShapeError(f"matmul needs shapes (..., n, k) and (..., k, m), got {a.type_string} and {b.type_string}")
    return a.like(shape=(*a.shape[:-1], b.shape[-1]), requires_grad=any_requires_grad(a, b))


def _product_for(operand: TensorProxy, a: Any, b: Any) -> Any:
    """Return ``a @ b``, the gradient of ``operand``: laid out in columns where a single matrix is."""
    known = operand.ndim == 2 and all([n.__class__ is int for n in (*(operand.strides or (None,)), operand.shape[0])])
    in_columns = known and operand.strides == (1, operand.shape[0])
    return swapped(matmul(swapped(b), swapped(a))) if in_columns else matmul(a, b)


@vjp_rule(matmul)
def matmul_vjp(a: TensorProxy, b: TensorProxy) -> tuple[TensorProxy, Pullback]:
    """``da = dy @ b.mH`` and ``db = a.mH @ dy``."""
    return matmul(a, b), lambda dy: (_product_for(a, dy, adjoint(b)), _product_for(b, adjoint(a), dy))


@jvp_rule(matmul)
def matmul_jvp(a: TensorProxy, b: TensorProxy, da: Any, db: Any) -> tuple[TensorProxy, Any]:
    """``dy = da @ b + a @ db``."""
    return matmul(a, b), _sum_of(None if da is None else matmul(da, b), None if db is None else matmul(a, db))


def _sum_of(a: Any, b: Any) -> Any:
    if a is None or b is None:
        return b if a is None else a
    return a + b


@batching_rule(matmul)
def matmul_batching(size: Any, args: Any, dims: Any) -> tuple[TensorProxy, int]:
    """A batch of matrices times one matrix is a single tall or wide product; other batches join those in front."""
    (a, b), (of_a, of_b) = args, dims
    if of_b is None and b.ndim == 2:
        a = batch_first(a, of_a, size)
        y = matmul(reshape(a, (size * a.shape[1], a.shape[2])), b)
        return reshape(y, (size, a.shape[1], b.shape[1])), 0
    if of_a is None and a.ndim == 2:
        b = moved(b, of_b, 1)
        y = matmul(a, reshape(b, (b.shape[0], size * b.shape[2])))
        return reshape(y, (a.shape[0], size, b.shape[2])), 1
    return matmul(batch_first(a, of_a, size), batch_first(b, of_b, size)), 0


@prim(OpTags.MATMUL)
def linear(a: TensorProxy, weight: TensorProxy, bias: TensorProxy | None) -> TensorProxy:
    """Return ``a @ weight.T + bias``.

    Args:
        a: shape ``(..., k)``.
        weight: shape ``(m, k)``, dtype of ``a``.
        bias: shape ``(m,)``, dtype of ``a``; or ``None``.

    Returns:
        shape ``(..., m)``.

    Source:
        ``torch.nn.functional.linear``.
    """
    check_operands("linear", a, weight, bias)
    if a.ndim == 0 or weight.ndim != 2 or a.shape[-1] != weight.shape[1]:
        raise ShapeError(f"linear needs shapes (..., k) and (m, k), got {a.type_string} and {weight.type_string}")
    if bias is not None:
        check_has_shape("linear", "a bias", bias, weight.shape[:1])
    return a.like(shape=(*a.shape[:-1], weight.shape[0]), requires_grad=any_requires_grad(a, weight, bias))


def _rows(a: Any) -> Any:
    """Return ``a`` as one matrix, its leading dimensions flattened into rows."""
    return a if a.ndim == 2 else reshape(a, (math.prod(a.shape[:-1]), a.shape[-1]))


@vjp_rule(linear)
def linear_vjp(a: TensorProxy, weight: TensorProxy, bias: Any) -> tuple[TensorProxy, Pullback]:
    """``da = dy @ weight``, ``dweight = dy.T @ a`` and ``dbias = sum(dy)``, with all leading dimensions in one."""

    def pullback(dy: TensorProxy) -> tuple[Any, ...]:
        rows = _rows(dy)
        da = _product_for(a, rows, conjugate(weight))
        dweight = _product_for(weight, swapped(rows), conjugate(_rows(a)))
        return (
            da if a.ndim == 2 else reshape(da, a.shape),
            dweight,
            None if bias is None else sum(rows, (0,)),
        )

    return linear(a, weight, bias), pullback


@jvp_rule(linear)
def linear_jvp(a: Any, weight: Any, bias: Any, da: Any, dweight: Any, dbias: Any) -> tuple[TensorProxy, Any]:
    """``dy = da @ weight.T + a @ dweight.T + dbias``."""
    y = linear(a, weight, bias)
    if dweight is not None:
        dy = linear(a, dweight, dbias)
        return y, dy if da is None else dy + linear(da, weight, None)
    if da is not None:
        return y, linear(da, weight, dbias)
    return y, None if dbias is None else broadcast_in_dim(dbias, y.shape, (y.ndim - 1,))


@batching_rule(linear)
def linear_batching(size: Any, args: Any, dims: Any) -> tuple[TensorProxy, int]:
    """A batch of inputs is one leading dimension more; a batch of weights is a product of batches of matrices."""
    (a, weight, bias), (of_a, of_weight, of_bias) = args, dims
    if of_weight is None and of_bias is None:
        place = 0 if of_a == a.ndim - 1 else of_a  # the last dimension is the one that is summed over
        return linear(moved(a, of_a, place), weight, bias), place
    if of_weight is None:
        y = linear(a if of_a is None else batch_first(a, of_a, size), weight, None)
        y = y if of_a is not None else expanded(y, 0, size)
    else:
        weight = batch_first(weight, of_weight, size)
        a = batch_first(a, of_a, size)
        rows = reshape(a, (size, math.prod(a.shape[1:-1]), a.shape[-1]))
        y = reshape(matmul(rows, swapped(weight)), (*a.shape[:-1], weight.shape[1]))
    if bias is None:
        return y, 0
    bias = batch_first(bias, of_bias, size)
    return y + broadcast_in_dim(bias, y.shape, (0, y.ndim - 1)), 0


@prim()
def triangular_solve(a: TensorProxy, b: TensorProxy, upper: bool, left: bool, unitriangular: bool) -> TensorProxy:
    """Solve ``a @ x = b``, or ``x @ a = b``, for triangular ``a``.

    Args:
        a: shape ``(..., n, n)``; what stands on the other side of the diagonal is not read.
        b: shape ``(..., n, k)``, or ``(..., k, n)`` unless ``left``; the dtype and leading dimensions of ``a``.
        upper: whether ``a`` is upper triangular.
        left: whether ``a`` stands on the left.
        unitriangular: take the diagonal for ones and do not read it.

    Returns:
        ``x``, of the shape of ``b``.

    Source:
        ``torch.linalg.solve_triangular``, without its broadcasting.
    """
    check_operands("triangular_solve", a, b)
    check_accepts("triangular_solve", a, INEXACT)
    check_matrices("triangular_solve", a, square=True)
    check_matrices("triangular_solve", b)
    if a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[-2 if left else -1]:
        wanted = "(..., n, n) and (..., n, k)" if left else "(..., n, n) and (..., k, n)"
        raise ShapeError(f"triangular_solve needs shapes {wanted}, got {a.type_string} and {b.type_string}")
    return b.like(requires_grad=any_requires_grad(a, b))


def _part(upper: bool, unitriangular: bool) -> str:
    return ("strictly " if unitriangular else "") + ("upper" if upper else "lower")


@vjp_rule(triangular_solve)
def triangular_solve_vjp(a: Any, b: Any, upper: bool, left: bool, unitriangular: bool) -> tuple[TensorProxy, Pullback]:
    """``db`` solves ``a.mH @ db = dx``, and ``da = -db @ x.mH`` in the triangle; mirrored for ``a`` on the right."""
    x = triangular_solve(a, b, upper, left, unitriangular)

    def pullback(dx: TensorProxy) -> tuple[Any, Any]:
        db = triangular_solve(adjoint(a), dx, not upper, left, unitriangular)
        da = matmul(-db, adjoint(x)) if left else matmul(adjoint(x), -db)
        return triangle(da, _part(upper, unitriangular)), db

    return x, pullback


@jvp_rule(triangular_solve)
def triangular_solve_jvp(a: Any, b: Any, *rest: Any) -> tuple[TensorProxy, Any]:
    """``dx`` solves ``a @ dx = db - da @ x``, of ``da`` the triangle; mirrored where ``a`` is on the right."""
    upper, left, unitriangular, da, db, *_ = rest
    x = triangular_solve(a, b, upper, left, unitriangular)
    if da is not None:
        da = triangle(da, _part(upper, unitriangular))
        moved_by_a = matmul(da, x) if left else matmul(x, da)
        db = -moved_by_a if db is None else db - moved_by_a
    return x, triangular_solve(a, db, upper, left, unitriangular)


@batching_rule(triangular_solve)
def triangular_solve_batching(size: Any, args: Any, dims: Any) -> tuple[TensorProxy, int]:
    """The batch joins the leading dimensions."""
    (a, b, *rest), (of_a, of_b, *_) = args, dims
    return triangular_solve(batch_first(a, of_a, size), batch_first(b, of_b, size), *rest), 0


@prim(OpTags.MAY_FAIL)
def solve(a: TensorProxy, b: TensorProxy) -> TensorProxy:
    """Solve ``a @ x = b`` for a regular ``a``.

    Args:
        a: shape ``(..., n, n)``.
        b: shape ``(..., n, k)``; the dtype and leading dimensions of ``a``.

    Returns:
        ``x``, of the shape of ``b``.

    Source:
        ``torch.linalg.solve``, without its broadcasting and its vectors.
    """
    check_operands("solve", a, b)
    check_accepts("solve", a, INEXACT)
    check_matrices("solve", a, square=True)
    check_matrices("solve", b)
    if a.shape[:-1] != b.shape[:-1]:
        raise ShapeError(f"solve needs shapes (..., n, n) and (..., n, k), got {a.type_string} and {b.type_string}")
    return b.like(requires_grad=any_requires_grad(a, b))


@vjp_rule(solve)
def solve_vjp(a: TensorProxy, b: TensorProxy) -> tuple[TensorProxy, Pullback]:
    """``db`` solves ``a.mH @ db = dx``, and ``da = -db @ x.mH``."""
    x = solve(a, b)

    def pullback(dx: TensorProxy) -> tuple[Any, Any]:
        db = solve(adjoint(a), dx)
        return matmul(-db, adjoint(x)), db

    return x, pullback


@jvp_rule(solve)
def solve_jvp(a: TensorProxy, b: TensorProxy, da: Any, db: Any) -> tuple[TensorProxy, Any]:
    """``dx`` solves ``a @ dx = db - da @ x``."""
    x = solve(a, b)
    if da is not None:
        db = -matmul(da, x) if db is None else db - matmul(da, x)
    return x, solve(a, db)


@batching_rule(solve)
def solve_batching(size: Any, args: Any, dims: Any) -> tuple[TensorProxy, int]:
    """The batch joins the leading dimensions."""
    (a, b), (of_a, of_b) = args, dims
    return solve(batch_first(a, of_a, size), batch_first(b, of_b, size)), 0


def _square(operation: str, a: TensorProxy) -> None:
    check_accepts(operation, a, INEXACT)
    check_matrices(operation, a, square=True)


@prim(OpTags.MAY_FAIL)
def inverse(a: TensorProxy) -> TensorProxy:
    """Invert regular matrices, shape ``(..., n, n)``."""
    _square("inverse", a)
    return a.like()


@vjp_rule(inverse)
def inverse_vjp(a: TensorProxy) -> tuple[TensorProxy, Pullback]:
    """``da = -y.mH @ dy @ y.mH``."""
    y = inverse(a)
    return y, lambda dy: -matmul(adjoint(y), matmul(dy, adjoint(y)))


@jvp_rule(inverse)
def inverse_jvp(a: TensorProxy, da: TensorProxy) -> tuple[TensorProxy, Any]:
    """``dy = -y @ da @ y``."""
    y = inverse(a)
    return y, -matmul(y, matmul(da, y))


@prim(OpTags.MAY_FAIL)
def cholesky(a: TensorProxy) -> TensorProxy:
    """Return the lower triangular ``l`` with ``l @ l.mH == a`` and a positive diagonal.

    Args:
        a: shape ``(..., n, n)``, Hermitian and positive definite; what stands above the diagonal is not read.

    Source:
        ``torch.linalg.cholesky``.
    """
    _square("cholesky", a)
    return a.like()


def _half_of_lower(a: Any) -> Any:
    """Return the lower triangles with the diagonals halved."""
    return triangle(a, "lower") - triangle(a, "diagonal") * 0.5


@vjp_rule(cholesky)
def cholesky_vjp(a: TensorProxy) -> tuple[TensorProxy, Pullback]:
    """``da`` is the Hermitian part of ``l.mH^-1 @ p(l.mH @ dl) @ l^-1``; ``p`` keeps the lower triangle and halves
    the diagonal. Like ``a``, which is Hermitian though only half of it is read, ``da`` is Hermitian."""
    lower = cholesky(a)

    def pullback(dl: TensorProxy) -> Any:
        inner = _half_of_lower(matmul(adjoint(lower), dl))
        right = triangular_solve(lower, inner, False, False, False)
        da = triangular_solve(adjoint(lower), right, True, True, False)
        return (da + adjoint(da)) * 0.5

    return lower, pullback


@jvp_rule(cholesky)
def cholesky_jvp(a: TensorProxy, da: TensorProxy) -> tuple[TensorProxy, Any]:
    """``dl = l @ p(l^-1 @ da @ l.mH^-1)``, ``p`` keeping the lower triangle and halving the diagonal."""
    lower = cholesky(a)
    inner = triangular_solve(lower, da, False, True, False)
    return lower, matmul(lower, _half_of_lower(triangular_solve(adjoint(lower), inner, True, False, False)))


@prim()
def det(a: TensorProxy) -> TensorProxy:
    """Return the determinants of matrices of shape ``(..., n, n)``."""
    _square("det", a)
    return a.like(shape=a.shape[:-2])


def _trace(a: Any) -> Any:
    return sum(triangle(a, "diagonal"), (a.ndim - 2, a.ndim - 1))


@vjp_rule(det)
def det_vjp(a: TensorProxy) -> tuple[TensorProxy, Pullback]:
    """``da = dy * conj(y) * a.mH^-1``, for regular ``a``."""
    y = det(a)
    return y, lambda dy: restored(dy * conjugate(y), a.shape, (a.ndim - 2, a.ndim - 1)) * adjoint(inverse(a))


@jvp_rule(det)
def det_jvp(a: TensorProxy, da: TensorProxy) -> tuple[TensorProxy, Any]:
    """``dy = y * trace(a^-1 @ da)``, for regular ``a``."""
    y = det(a)
    return y, y * _trace(solve(a, da))


@prim()
def slogdet(a: TensorProxy) -> tuple[TensorProxy, TensorProxy]:
    """Return the signs of the determinants, and the logarithms of their magnitudes.

    Args:
        a: shape ``(..., n, n)``.

    Returns:
        Two tensors of shape ``(...)``: the sign, of absolute value one or zero, and the logarithm, which is real.
    """
    _square("slogdet", a)
    return a.like(shape=a.shape[:-2]), a.like(shape=a.shape[:-2], dtype=dtypes.float_of(a.dtype))


@vjp_rule(slogdet)
def slogdet_vjp(a: TensorProxy) -> tuple[Any, Pullback]:
    """``da = (dlog - i imag(conj(dsign) * sign)) * a.mH^-1``, for regular ``a``; a real sign is constant."""
    sign, logarithm = slogdet(a)

    def pullback(dsign: Any, dlogarithm: Any) -> Any:
        if a.dtype.is_complex and dsign is not None:
            turn = -imag(conjugate(dsign) * sign)
            factor = complex(filled(turn, 0.0) if dlogarithm is None else dlogarithm, turn)
        elif dlogarithm is not None:
            factor = of_dtype(dlogarithm, a.dtype)
        else:
            return None
        return restored(factor, a.shape, (a.ndim - 2, a.ndim - 1)) * adjoint(inverse(a))

    return (sign, logarithm), pullback


@jvp_rule(slogdet)
def slogdet_jvp(a: TensorProxy, da: TensorProxy) -> tuple[Any, Any]:
    """``dlog = real(trace(a^-1 @ da))`` and ``dsign = i imag(trace(a^-1 @ da)) * sign``, for regular ``a``."""
    sign, logarithm = slogdet(a)
    rate = _trace(solve(a, da))
    if not a.dtype.is_complex:
        return (sign, logarithm), (None, rate)
    return (sign, logarithm), (complex(filled(logarithm, 0.0), imag(rate)) * sign, real(rate))


def batches_in_front(*symbols: Symbol) -> None:
    """Give operations of matrices their batching rule: the batch joins the leading dimensions."""

    def register(symbol: Symbol) -> None:
        @batching_rule(symbol)
        def rule(size: Any, args: Any, dims: Any) -> tuple[Any, Any]:
            output = symbol(batch_first(args[0], dims[0], size))
            return output, (0,) * len(output) if isinstance(output, tuple) else 0

    for symbol in symbols:
        register(symbol)


batches_in_front(inverse, cholesky, det, slogdet)
