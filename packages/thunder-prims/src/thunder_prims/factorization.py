"""Prims that factor matrices: eigenvalues, singular values, QR."""

from __future__ import annotations

from thunder_ir import TensorProxy, dtypes
from thunder_prims.checks import INEXACT, check_accepts
from thunder_prims.operands import check_matrices
from thunder_prims.prim import prim

__all__ = ["eigh", "qr", "svd"]


def _lesser(a: TensorProxy) -> object:
    rows, columns = a.shape[-2:]
    return rows if rows <= columns else columns


@prim(method="eigh")
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


@prim(method="svd")
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


@prim(method="qr")
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
