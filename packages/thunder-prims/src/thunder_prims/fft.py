"""Prims of discrete Fourier transforms."""

from __future__ import annotations

from typing import Any, Literal

from thunder_autograd import Pullback, vjp_rule
from thunder_ir import ShapeError, Symbol, TensorProxy, dtypes
from thunder_ir.number_proxies import Dimension
from thunder_prims.axes import part_along, shifted_dims
from thunder_prims.checks import COMPLEX, FLOATING, check_accepts, check_dims
from thunder_prims.derivatives import linear
from thunder_prims.operands import replaced
from thunder_prims.prim import prim
from thunder_prims.shape import cat
from thunder_vmap import batching_rule

__all__ = ["fft_c2c", "fft_c2r", "fft_r2c"]

Normalization = Literal["none", "root", "full"]
"""What the sum is divided by: nothing, the root of the number of its terms, or that number."""


def _check_transformable(operation: str, a: TensorProxy, dims: tuple[int, ...], normalization: str) -> None:
    check_dims(operation, a, dims)
    if not dims:
        raise ShapeError(f"{operation} of {a.type_string} needs at least one dimension")
    if normalization not in ("none", "root", "full"):
        raise ValueError(f'{operation} normalizes by "none", "root" or "full", got {normalization!r}')
    for dim in dims:
        if a.shape[dim] == 0:
            raise ShapeError(f"{operation} of {a.type_string} along dimension {dim}, which is empty, has no value")


def _check_complex(operation: str, a: TensorProxy) -> None:
    check_accepts(operation, a, COMPLEX)


@prim()
def fft_c2c(a: TensorProxy, dims: tuple[int, ...], normalization: Normalization, forward: bool) -> TensorProxy:
    """Return ``sum_j a_j exp(-2 pi i j k / n)`` along ``dims``; with a plus sign unless ``forward``.

    Args:
        a: complex.
        dims: different dimensions of ``a``.
        normalization: ``"none"``, ``"root"`` or ``"full"``: the sum is divided by 1, by the root of the product of the
            lengths of ``dims``, or by that product.
        forward: the sign of the exponent is minus.

    Source:
        ``torch.fft.fftn`` and ``torch.fft.ifftn``.
    """
    _check_complex("fft_c2c", a)
    _check_transformable("fft_c2c", a, dims, normalization)
    return a.like()


@vjp_rule(fft_c2c)
def fft_c2c_vjp(a: TensorProxy, dims: Any, normalization: Any, forward: bool) -> tuple[TensorProxy, Pullback]:
    """``da`` is the transform of ``dy`` in the other direction."""
    return fft_c2c(a, dims, normalization, forward), lambda dy: fft_c2c(dy, dims, normalization, not forward)


@prim()
def fft_r2c(a: TensorProxy, dims: tuple[int, ...], normalization: Normalization) -> TensorProxy:
    """Return the half of ``fft_c2c`` of a real tensor that determines the whole.

    Args:
        a: floating-point.
        dims: different dimensions of ``a``; the last of them, of length ``n``, is halved.
        normalization: as for ``fft_c2c``.

    Returns:
        Complex, with ``n // 2 + 1`` elements along the last of ``dims``.

    Source:
        ``torch.fft.rfftn``.
    """
    check_accepts("fft_r2c", a, FLOATING)
    _check_transformable("fft_r2c", a, dims, normalization)
    return a.like(shape=replaced(a.shape, dims[-1], a.shape[dims[-1]] // 2 + 1), dtype=dtypes.complex_of(a.dtype))


def _scaled_inside(a: Any, dim: int, length: Any, factor: float) -> Any:
    """Multiply by ``factor`` those elements of a half spectrum that stand for two elements of the whole."""
    end = (length + 1) // 2
    inside = part_along(a, dim, 1, end) * factor
    parts = [part_along(a, dim, 0, 1), inside]
    return cat(parts if length % 2 else [*parts, part_along(a, dim, end, a.shape[dim])], dim)


@vjp_rule(fft_r2c)
def fft_r2c_vjp(a: TensorProxy, dims: Any, normalization: Any) -> tuple[TensorProxy, Pullback]:
    """``da`` is the backward transform of ``dy``, with what that counts twice halved."""
    length = a.shape[dims[-1]]

    def pullback(dy: TensorProxy) -> Any:
        return fft_c2r(_scaled_inside(dy, dims[-1], length, 0.5), dims, normalization, length)

    return fft_r2c(a, dims, normalization), pullback


@prim()
def fft_c2r(a: TensorProxy, dims: tuple[int, ...], normalization: Normalization, last_length: Dimension) -> TensorProxy:
    """Return the backward transform of the half of a Hermitian tensor: it is real.

    Args:
        a: complex, with ``last_length // 2 + 1`` elements along the last of ``dims``. Imaginary parts that a Hermitian
            tensor could not have are ignored.
        dims: different dimensions of ``a``.
        normalization: as for ``fft_c2c``.
        last_length: the length of the result along the last of ``dims``.

    Source:
        ``torch.fft.irfftn``.
    """
    _check_complex("fft_c2r", a)
    _check_transformable("fft_c2r", a, dims, normalization)
    if last_length < 1 or a.shape[dims[-1]] != last_length // 2 + 1:
        raise ShapeError(
            f"fft_c2r of {a.type_string} to length {last_length} along dimension {dims[-1]} "
            f"needs {last_length // 2 + 1} elements there"
        )
    return a.like(shape=replaced(a.shape, dims[-1], last_length), dtype=dtypes.float_of(a.dtype))


@vjp_rule(fft_c2r)
def fft_c2r_vjp(a: Any, dims: Any, normalization: Any, last_length: Any) -> tuple[TensorProxy, Pullback]:
    """``da`` is the forward transform of ``dy``, doubled where an element counted twice."""

    def pullback(dy: TensorProxy) -> Any:
        return _scaled_inside(fft_r2c(dy, dims, normalization), dims[-1], last_length, 2.0)

    return fft_c2r(a, dims, normalization, last_length), pullback


linear(fft_c2c, fft_r2c, fft_c2r)


def _batches_transform(*symbols: Symbol) -> None:
    """Give transforms their batching rule: the batch dimension stays in place."""

    def register(symbol: Symbol) -> None:
        @batching_rule(symbol)
        def rule(size: Any, args: Any, dims: Any) -> tuple[Any, Any]:
            a, over, *rest = args
            return symbol(a, shifted_dims(over, dims[0]), *rest), dims[0]

    for symbol in symbols:
        register(symbol)


_batches_transform(fft_c2c, fft_r2c, fft_c2r)
