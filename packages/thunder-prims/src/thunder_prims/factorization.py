"""Prims that factor matrices: eigenvalues, singular values, QR."""

from __future__ import annotations

from typing import Any

from thunder_autograd import Pullback, jvp_rule, vjp_rule
from thunder_ir import OpTags, TensorProxy, dtypes
from thunder_prims.axes import adjoint, diagonal_matrix, filled, of_dtype, part_along, restored, triangle
from thunder_prims.checks import INEXACT, check_accepts
from thunder_prims.complex_numbers import real
from thunder_prims.linalg import batches_in_front, matmul, triangular_solve
from thunder_prims.operands import check_matrices
from thunder_prims.prim import prim
from thunder_prims.reduction import sum
from thunder_prims.shape import cat

__all__ = ["eigh", "qr", "svd"]


def _lesser(a: TensorProxy) -> object:
    rows, columns = a.shape[-2:]
    return rows if rows <= columns else columns


@prim(OpTags.MAY_FAIL)
def eigh(a: TensorProxy) -> tuple[TensorProxy, TensorProxy]:
    """Return eigenvalues, ascending, and eigenvectors of Hermitian matrices.

    Args:
        a: shape ``(..., n, n)``; what stands above the diagonal is not read.

    Returns:
        ``w``, real, of shape ``(..., n)``, and ``v`` of shape ``(..., n, n)``, with ``a @ v == v * w``.

    Source:
        ``torch.linalg.eigh``.
    """
    check_accepts("eigh", a, INEXACT)
    check_matrices("eigh", a, square=True)
    return a.like(shape=a.shape[:-1], dtype=dtypes.float_of(a.dtype)), a.like()


def _as_rows(d: Any, like: TensorProxy) -> Any:
    """Repeat the last dimension of ``d`` as rows of matrices of the shape and dtype of ``like``."""
    return restored(of_dtype(d, like.dtype), like.shape, (like.ndim - 2,))


def _as_columns(d: Any, like: TensorProxy) -> Any:
    """Repeat the last dimension of ``d`` as columns of matrices of the shape and dtype of ``like``."""
    return restored(of_dtype(d, like.dtype), like.shape, (like.ndim - 1,))


def _over_differences(a: Any, d: Any) -> Any:
    """Return ``a_ij / (d_j - d_i)``, and zeros on the diagonal."""
    differences = _as_rows(d, a) - _as_columns(d, a)
    return triangle(a / (differences + triangle(filled(a, 1), "diagonal")), "off the diagonal")


@vjp_rule(eigh)
def eigh_vjp(a: TensorProxy) -> tuple[Any, Pullback]:
    """``da = v @ (diag(dw) + skew(v.mH @ dv) / (w_j - w_i)) @ v.mH``, which is Hermitian, for different eigenvalues."""
    w, v = eigh(a)

    def pullback(dw: Any, dv: Any) -> Any:
        inner = None
        if dv is not None:
            turned = matmul(adjoint(v), dv)
            inner = _over_differences((turned - adjoint(turned)) * 0.5, w)
        if dw is not None:
            stretched = diagonal_matrix(of_dtype(dw, a.dtype))
            inner = stretched if inner is None else inner + stretched
        return matmul(v, matmul(inner, adjoint(v)))

    return (w, v), pullback


@jvp_rule(eigh)
def eigh_jvp(a: TensorProxy, da: TensorProxy) -> tuple[Any, Any]:
    """``dw = real(diag(v.mH @ da @ v))`` and ``dv = v @ (v.mH @ da @ v / (w_j - w_i))``, for different eigenvalues."""
    w, v = eigh(a)
    inner = matmul(adjoint(v), matmul(da, v))
    return (w, v), (_real_diagonal(inner), matmul(v, _over_differences(inner, w)))


def _real_diagonal(a: Any) -> Any:
    diagonal = sum(triangle(a, "diagonal"), (a.ndim - 1,))
    return real(diagonal) if a.dtype.is_complex else diagonal


@prim(OpTags.MAY_FAIL)
def svd(a: TensorProxy) -> tuple[TensorProxy, TensorProxy, TensorProxy]:
    """Return the reduced singular value decomposition.

    Args:
        a: shape ``(..., n, m)``; ``k`` is the lesser of ``n`` and ``m``.

    Returns:
        ``u`` of shape ``(..., n, k)``, ``s``, real and descending, of shape ``(..., k)``, and ``vh`` of shape
        ``(..., k, m)``, with ``(u * s) @ vh == a``.

    Source:
        ``torch.linalg.svd`` with ``full_matrices=False``.
    """
    check_accepts("svd", a, INEXACT)
    check_matrices("svd", a)
    k = _lesser(a)
    *batch, rows, columns = a.shape
    return (
        a.like(shape=(*batch, rows, k)),  # type: ignore[arg-type]
        a.like(shape=(*batch, k), dtype=dtypes.float_of(a.dtype)),  # type: ignore[arg-type]
        a.like(shape=(*batch, k, columns)),  # type: ignore[arg-type]
    )


def _skew(a: Any) -> Any:
    return a - adjoint(a)


@vjp_rule(svd)
def svd_vjp(a: TensorProxy) -> tuple[Any, Pullback]:
    """Pull back through the rotations of ``u`` and ``v``, the scaling, and what lies outside of their spans.

    For different singular values that are not zero.

    Source:
        J. Townsend, *Differentiating the Singular Value Decomposition*, 2016, equations 30 to 32.
    """
    u, s, vh = svd(a)

    def pullback(du: Any, ds: Any, dvh: Any) -> Any:
        inner = _inner_of_svd(u, s, vh, du, ds, dvh)
        left = None if inner is None else matmul(u, inner)
        if du is not None and a.shape[-2] > s.shape[-1]:
            scaled = du / _as_rows(s, du)
            left = _plus(left, scaled - matmul(u, matmul(adjoint(u), scaled)))
        da = None if left is None else matmul(left, vh)
        if dvh is not None and a.shape[-1] > s.shape[-1]:
            scaled = dvh / _as_columns(s, dvh)
            da = _plus(da, matmul(u, scaled - matmul(matmul(scaled, adjoint(vh)), vh)))
        return da

    return (u, s, vh), pullback


def _plus(a: Any, b: Any) -> Any:
    return b if a is None else a + b


def _inner_of_svd(u: Any, s: Any, vh: Any, du: Any, ds: Any, dvh: Any) -> Any:
    """Return ``m`` such that ``u @ m @ vh`` is the gradient, as far as it lies in the spans of ``u`` and ``v``."""
    inner = None
    if ds is not None:
        inner = diagonal_matrix(of_dtype(ds, u.dtype))
    squares = s * s
    if du is not None:
        turned = _skew(matmul(adjoint(u), du))
        inner = _plus(inner, _over_differences(turned * _as_rows(s, turned), squares))
        if u.dtype.is_complex:  # a common phase of a pair of singular vectors, which a real one has not
            half = diagonal_matrix(sum(triangle(turned, "diagonal"), (turned.ndim - 1,)) * 0.5)
            inner = inner + half / _as_rows(s, half)
    if dvh is not None:
        turned = _skew(matmul(vh, adjoint(dvh)))
        inner = _plus(inner, _over_differences(_as_columns(s, turned) * turned, squares))
    return inner


@jvp_rule(svd)
def svd_jvp(a: TensorProxy, da: TensorProxy) -> tuple[Any, Any]:
    """Turn ``u`` and ``v`` by the solutions of the two by two systems of each pair of singular values, and out of their
    spans by what ``da`` does there. For different singular values that are not zero."""
    u, s, vh = svd(a)
    v = adjoint(vh)
    inner = matmul(adjoint(u), matmul(da, v))
    rows, columns = _as_rows(s, inner), _as_columns(s, inner)
    squares = s * s
    turn_u = _over_differences(inner * rows + columns * adjoint(inner), squares)
    turn_v = _over_differences(columns * inner + adjoint(inner) * rows, squares)
    if a.dtype.is_complex:
        turn_u = turn_u + triangle(_skew(inner), "diagonal") * 0.5 / rows
    du, dv = matmul(u, turn_u), matmul(v, turn_v)
    if a.shape[-2] > s.shape[-1]:
        outside = matmul(da, v) - matmul(u, inner)
        du = du + outside / _as_rows(s, outside)
    if a.shape[-1] > s.shape[-1]:
        outside = matmul(adjoint(da), u) - matmul(v, adjoint(inner))
        dv = dv + outside / _as_rows(s, outside)
    return (u, s, vh), (du, _real_diagonal(inner), adjoint(dv))


@prim()
def qr(a: TensorProxy) -> tuple[TensorProxy, TensorProxy]:
    """Return the reduced QR decomposition.

    Args:
        a: shape ``(..., n, m)``; ``k`` is the lesser of ``n`` and ``m``.

    Returns:
        ``q`` with orthonormal columns, of shape ``(..., n, k)``, and the upper triangular ``r`` of shape
        ``(..., k, m)``, with ``q @ r == a``.

    Source:
        ``torch.linalg.qr`` with ``mode="reduced"``.
    """
    check_accepts("qr", a, INEXACT)
    check_matrices("qr", a)
    k = _lesser(a)
    *batch, rows, columns = a.shape
    return a.like(shape=(*batch, rows, k)), a.like(shape=(*batch, k, columns))  # type: ignore[arg-type]


def _split_columns(a: Any, k: Any) -> tuple[Any, Any]:
    """Return the first ``k`` columns of ``a``, and the others."""
    return part_along(a, a.ndim - 1, 0, k), part_along(a, a.ndim - 1, k, a.shape[-1])


@vjp_rule(qr)
def qr_vjp(a: TensorProxy) -> tuple[Any, Pullback]:
    """``da = (dq + q @ h(dr @ r.mH - q.mH @ dq)) @ r.mH^-1``, where ``h`` makes its upper triangle Hermitian.

    Of a wide ``a``, that holds for the square part on the left; the rest of ``r`` is ``q.mH`` times the rest of ``a``.

    Source:
        H.-J. Liao et al., *Differentiable Programming Tensor Networks*, 2019, equation 15.
    """
    q, r = qr(a)

    def pullback(dq: Any, dr: Any) -> Any:
        if a.shape[-1] <= a.shape[-2]:
            return _qr_pullback(q, r, dq, dr)
        k = q.shape[-1]
        square = part_along(r, r.ndim - 1, 0, k)
        if dr is None:
            left = _qr_pullback(q, square, dq, None)
            return cat([left, filled(a, 0, (*a.shape[:-1], a.shape[-1] - k))], a.ndim - 1)
        _, rest = _split_columns(a, k)
        dr, dr_rest = _split_columns(dr, k)
        through_q = matmul(rest, adjoint(dr_rest))
        left = _qr_pullback(q, square, _plus(dq, through_q), dr)
        return cat([left, matmul(q, dr_rest)], a.ndim - 1)

    return (q, r), pullback


def _qr_pullback(q: Any, r: Any, dq: Any, dr: Any) -> Any:
    inner = matmul(dr, adjoint(r)) if dr is not None else filled(r, 0)
    if dq is not None:
        inner = inner - matmul(adjoint(q), dq)
    upper = triangle(inner, "strictly upper")
    left = matmul(q, upper + adjoint(upper) + diagonal_matrix(of_dtype(_real_diagonal(inner), inner.dtype)))
    return triangular_solve(adjoint(r), left if dq is None else left + dq, False, False, False)


@jvp_rule(qr)
def qr_jvp(a: TensorProxy, da: TensorProxy) -> tuple[Any, Any]:
    """``dq = q @ o + (1 - q @ q.mH) @ da @ r^-1`` and ``dr = (x - o) @ r``, where ``x = q.mH @ da @ r^-1`` and ``o`` is
    the skew matrix with the lower triangle of ``x``; of a wide ``a``, for the square part on the left."""
    q, r = qr(a)
    if a.shape[-1] <= a.shape[-2]:
        return (q, r), _qr_tangents(q, r, da)
    k = q.shape[-1]
    _, rest = _split_columns(a, k)
    da, da_rest = _split_columns(da, k)
    dq, dr = _qr_tangents(q, part_along(r, r.ndim - 1, 0, k), da)
    return (q, r), (dq, cat([dr, matmul(adjoint(dq), rest) + matmul(adjoint(q), da_rest)], r.ndim - 1))


def _qr_tangents(q: Any, r: Any, da: Any) -> tuple[Any, Any]:
    scaled = triangular_solve(r, da, True, False, False)
    x = matmul(adjoint(q), scaled)
    lower = triangle(x, "strictly lower")
    turn = lower - adjoint(lower)
    if x.dtype.is_complex:
        turn = turn + triangle(_skew(x), "diagonal") * 0.5
    return matmul(q, turn) + (scaled - matmul(q, x)), matmul(x - turn, r)


batches_in_front(eigh, svd, qr)
