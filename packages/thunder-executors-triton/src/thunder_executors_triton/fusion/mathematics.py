"""Functions that rendered kernels call: rounded as PyTorch's, or as Triton's interpreter knows them."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def quotient(a, b):
    """``a / b``, correctly rounded."""
    if b.dtype == tl.float32:
        return tl.div_rn(tl.zeros_like(b) + a, b)
    return a / b


@triton.jit
def root(a):
    """The square root, correctly rounded."""
    if a.dtype == tl.float32:
        return tl.sqrt_rn(a)
    return tl.sqrt(a)


@triton.jit
def tangent(a):
    """The hyperbolic tangent: a polynomial near zero (Cephes, ``tanhf``), exponentials elsewhere."""
    z = a * a
    p = (((-5.70498872745e-3 * z + 2.06390887954e-2) * z - 5.37397155531e-2) * z + 1.33314422036e-1) * z
    near = a + a * z * (p - 3.33332819422e-1)
    e = tl.exp(-2 * tl.abs(a))
    far = quotient(1 - e, 1 + e)
    return tl.where(tl.abs(a) < 0.625, near, tl.where(a < 0, -far, far))


@triton.jit
def greatest(a):
    """The greatest element of each row; a NaN wins."""
    found = tl.max(a, axis=1, keep_dims=True)
    nan = tl.max((a != a).to(tl.int32), axis=1, keep_dims=True) > 0
    return tl.where(nan, a.dtype.is_fp64() * 0.0 + float("nan"), found).to(a.dtype)


@triton.jit
def first_greatest(a):
    """Where the greatest element of each row is first; a NaN wins."""
    nan = (a != a).to(tl.int32)
    any_nan = tl.max(nan, axis=1, keep_dims=True) > 0
    first_nan, first = tl.argmax(nan, axis=1, keep_dims=True), tl.argmax(a, axis=1, keep_dims=True)
    return tl.where(any_nan, first_nan, first).to(tl.int64)
