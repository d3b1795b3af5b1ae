"""Prims of linear algebra: products, and what solves with matrices."""

from __future__ import annotations

from thunder_ir import OpTags, ShapeError, TensorProxy, dtypes
from thunder_prims.checks import INEXACT, NUMERIC, check_accepts
from thunder_prims.operands import any_requires_grad, check_has_shape, check_matrices, check_operands
from thunder_prims.prim import prim

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


@prim(OpTags.MATMUL, method="linear")
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


@prim(method="triangular_solve")
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


@prim(method="solve")
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


def _square(operation: str, a: TensorProxy) -> None:
    check_accepts(operation, a, INEXACT)
    check_matrices(operation, a, square=True)


@prim(method="inverse")
def inverse(a: TensorProxy) -> TensorProxy:
    """Invert regular matrices, shape ``(..., n, n)``."""
    _square("inverse", a)
    return a.like()


@prim(method="cholesky")
def cholesky(a: TensorProxy) -> TensorProxy:
    """Return the lower triangular ``l`` with ``l @ l.mH == a`` and a positive diagonal.

    Args:
        a: shape ``(..., n, n)``, Hermitian and positive definite; what stands above the diagonal is not read.

    Source:
        ``torch.linalg.cholesky``.
    """
    _square("cholesky", a)
    return a.like()


@prim(method="det")
def det(a: TensorProxy) -> TensorProxy:
    """Return the determinants of matrices of shape ``(..., n, n)``."""
    _square("det", a)
    return a.like(shape=a.shape[:-2])


@prim(method="slogdet")
def slogdet(a: TensorProxy) -> tuple[TensorProxy, TensorProxy]:
    """Return the signs of the determinants, and the logarithms of their magnitudes.

    Args:
        a: shape ``(..., n, n)``.

    Returns:
        Two tensors of shape ``(...)``: the sign, of absolute value one or zero, and the logarithm, which is real.
    """
    _square("slogdet", a)
    return a.like(shape=a.shape[:-2]), a.like(shape=a.shape[:-2], dtype=dtypes.float_of(a.dtype))
