"""Elementwise prims that take complex numbers apart and put them together."""

from __future__ import annotations

from thunder_autograd import Pullback, jvp_rule, vjp_rule
from thunder_ir import DType, DTypeError, OpTags, TensorProxy, dtypes
from thunder_prims.batching import elementwise_prim
from thunder_prims.checks import ANY, COMPLEX, FLOATING, elementwise, unary
from thunder_prims.creation import zeros_like
from thunder_prims.derivatives import linear

__all__ = ["complex", "conj", "imag", "real"]

COMPLEX_OF = (dtypes.float16, dtypes.float32, dtypes.float64)


def part_dtype(a: TensorProxy) -> DType | None:
    """Return the dtype of the parts of a complex tensor; ``None`` keeps the dtype of others."""
    return dtypes.float_of(a.dtype) if isinstance(a, TensorProxy) else None


@elementwise_prim()
def complex(a: TensorProxy, b: TensorProxy) -> TensorProxy:
    """``a + b*1j``: a complex tensor of its real and imaginary parts.

    Args:
        a, b: ``float16``, ``float32`` or ``float64``, of one dtype.

    Returns:
        the complex dtype with parts of that dtype.
    """
    result = elementwise("complex", FLOATING, a, b)
    if result.dtype not in COMPLEX_OF:
        raise DTypeError(f"complex of {result.type_string} needs float16, float32 or float64; convert it first")
    return result.like(dtype=dtypes.complex_of(result.dtype))


@vjp_rule(complex)
def complex_vjp(a: TensorProxy, b: TensorProxy) -> tuple[TensorProxy, Pullback]:
    """``da = real(dy), db = imag(dy)``."""
    return complex(a, b), lambda dy: (real(dy), imag(dy))


@jvp_rule(complex)
def complex_jvp(
    a: TensorProxy, b: TensorProxy, da: TensorProxy | None, db: TensorProxy | None
) -> tuple[TensorProxy, TensorProxy | None]:
    """``dy = complex(da, db)``."""
    y = complex(a, b)
    if da is None and db is None:
        return y, None
    return y, complex(zeros_like(a) if da is None else da, zeros_like(b) if db is None else db)


@elementwise_prim(OpTags.VIEW, method="conj")
def conj(a: TensorProxy) -> TensorProxy:
    """Complex conjugate of ``a``; a real ``a`` itself."""
    return unary("conj", ANY, a) if not isinstance(a, TensorProxy) or a.dtype.is_complex else a


@vjp_rule(conj)
def conj_vjp(a: TensorProxy) -> tuple[TensorProxy, Pullback]:
    """``da = conj(dy)``."""
    return conj(a), lambda dy: conj(dy)


@jvp_rule(conj)
def conj_jvp(a: TensorProxy, da: TensorProxy | None) -> tuple[TensorProxy, TensorProxy | None]:
    """``dy = conj(da)``."""
    return conj(a), None if da is None else conj(da)


@elementwise_prim(OpTags.VIEW)
def imag(a: TensorProxy) -> TensorProxy:
    """Imaginary part of a complex ``a``, in the dtype of its parts."""
    return unary("imag", COMPLEX, a, part_dtype(a))


@vjp_rule(imag)
def imag_vjp(a: TensorProxy) -> tuple[TensorProxy, Pullback]:
    """``da = dy * 1j``."""
    return imag(a), lambda dy: complex(zeros_like(dy), dy)


linear(imag)


@elementwise_prim(OpTags.VIEW)
def real(a: TensorProxy) -> TensorProxy:
    """Real part of a complex ``a``, in the dtype of its parts; a real ``a`` itself."""
    return unary("real", ANY, a, part_dtype(a)) if not isinstance(a, TensorProxy) or a.dtype.is_complex else a


@vjp_rule(real)
def real_vjp(a: TensorProxy) -> tuple[TensorProxy, Pullback]:
    """``da = dy``, with an imaginary part of 0 if ``a`` is complex."""
    return real(a), lambda dy: widened(dy, a)


linear(real)


def widened(real_part: TensorProxy, a: TensorProxy) -> TensorProxy:
    """Return ``real_part`` in the dtype of ``a``, with an imaginary part of 0 if that is complex."""
    return complex(real_part, zeros_like(real_part)) if a.dtype.is_complex else real_part
