"""How the prims of shape, arithmetic, comparison, creation, conversion and chance run with NumPy and SciPy."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from prims_machine import numpy_dtype, runs
from scipy import special

import thunder_prims as prims

FUNCTIONS = {
    prims.abs: np.abs, prims.acos: np.arccos, prims.acosh: np.arccosh, prims.asin: np.arcsin,
    prims.asinh: np.arcsinh, prims.atan: np.arctan, prims.atanh: np.arctanh, prims.bitwise_not: np.invert,
    prims.ceil: np.ceil, prims.conj: np.conj, prims.cos: np.cos, prims.cosh: np.cosh, prims.exp: np.exp,
    prims.exp2: np.exp2, prims.expm1: np.expm1, prims.floor: np.floor, prims.frexp: np.frexp, prims.imag: np.imag,
    prims.log: np.log, prims.log10: np.log10, prims.log1p: np.log1p, prims.log2: np.log2, prims.neg: np.negative,
    prims.real: np.real, prims.reciprocal: lambda a: 1 / a, prims.round: np.round,
    prims.rsqrt: lambda a: 1 / np.sqrt(a), prims.sigmoid: lambda a: 1 / (1 + np.exp(-a)), prims.sin: np.sin,
    prims.sinc: np.sinc, prims.sinh: np.sinh, prims.sqrt: np.sqrt, prims.tan: np.tan, prims.tanh: np.tanh,
    prims.trunc: np.trunc,
    prims.bessel_j0: special.j0, prims.bessel_j1: special.j1, prims.bessel_y0: special.y0, prims.bessel_y1: special.y1,
    prims.digamma: special.digamma, prims.erf: special.erf, prims.erfc: special.erfc, prims.erfcinv: special.erfcinv,
    prims.erfcx: special.erfcx, prims.erfinv: special.erfinv, prims.i0: special.i0, prims.i0e: special.i0e,
    prims.i1: special.i1, prims.i1e: special.i1e, prims.igamma: special.gammainc, prims.igammac: special.gammaincc,
    prims.lgamma: special.gammaln, prims.log_ndtr: special.log_ndtr, prims.modified_bessel_k0: special.k0,
    prims.modified_bessel_k1: special.k1, prims.ndtri: special.ndtri,
    prims.polygamma: lambda a, n: special.polygamma(n, a), prims.scaled_modified_bessel_k0: special.k0e,
    prims.scaled_modified_bessel_k1: special.k1e, prims.spherical_bessel_j0: lambda a: np.sinc(a / np.pi),
    prims.xlog1py: special.xlog1py, prims.xlogy: special.xlogy, prims.zeta: special.zeta,
    prims.add: np.add, prims.atan2: np.arctan2, prims.bitwise_and: np.bitwise_and,
    prims.bitwise_left_shift: np.left_shift, prims.bitwise_or: np.bitwise_or,
    prims.bitwise_right_shift: np.right_shift, prims.bitwise_xor: np.bitwise_xor,
    prims.complex: lambda a, b: a + 1j * b, prims.copysign: np.copysign, prims.div: np.true_divide,
    prims.floor_divide: np.floor_divide, prims.fmod: np.fmod, prims.gcd: np.gcd, prims.hypot: np.hypot,
    prims.lcm: np.lcm, prims.logaddexp: np.logaddexp, prims.logaddexp2: np.logaddexp2, prims.maximum: np.maximum,
    prims.minimum: np.minimum, prims.mul: np.multiply, prims.nextafter: np.nextafter, prims.pow: np.power,
    prims.remainder: np.remainder, prims.sub: np.subtract,
    prims.eq: np.equal, prims.ge: np.greater_equal, prims.gt: np.greater, prims.isfinite: np.isfinite,
    prims.isinf: np.isinf, prims.isnan: np.isnan, prims.le: np.less_equal, prims.lt: np.less, prims.ne: np.not_equal,
    prims.signbit: np.signbit,
    prims.clone: np.copy, prims.shallow_copy: lambda a: a, prims.device_put: lambda a, device: a,
    prims.stride_order: lambda a, order: a, prims.item: lambda a: a.item(),
    prims.number_abs: operator.abs, prims.number_add: operator.add, prims.number_floordiv: operator.floordiv,
    prims.number_mod: operator.mod, prims.number_mul: operator.mul, prims.number_neg: operator.neg,
    prims.number_pow: operator.pow, prims.number_sub: operator.sub, prims.number_truediv: operator.truediv,
    prims.transpose: np.transpose, prims.reshape: np.reshape, prims.view: np.reshape, prims.flip: np.flip,
    prims.squeeze: lambda a, dims: np.squeeze(a, tuple(dims)), prims.cat: np.concatenate, prims.shape_of: np.shape,
    prims.print: print,
}  # fmt: skip
for _symbol, _function in FUNCTIONS.items():
    runs(_symbol)(_function)


def _dtype_of(*operands: Any) -> Any:
    return next(a.dtype for a in operands if isinstance(a, np.ndarray))


@runs(prims.sign)
def sign(a: Any) -> Any:
    return np.where(a == 0, 0, a / np.where(a == 0, 1, np.abs(a))) if a.dtype.kind == "c" else np.sign(a)


@runs(prims.trunc_divide)
def trunc_divide(a: Any, b: Any) -> Any:
    return np.trunc(np.true_divide(a, b)).astype(_dtype_of(a, b))


@runs(prims.where)
def where(pred: Any, a: Any, b: Any) -> Any:
    return np.where(pred, a, b).astype(_dtype_of(a, b))


@runs(prims.clamp)
def clamp(a: Any, low: Any, high: Any) -> Any:
    a = a if low is None else np.maximum(a, low)
    return a if high is None else np.minimum(a, high)


@runs(prims.lerp)
def lerp(start: Any, end: Any, weight: Any) -> Any:
    return start + weight * (end - start)


@runs(prims.broadcast_in_dim)
def broadcast_in_dim(a: Any, shape: Any, dims: Any) -> Any:
    return np.broadcast_to(a.reshape([a.shape[dims.index(d)] if d in dims else 1 for d in range(len(shape))]), shape)


@runs(prims.slice)
def slice_(a: Any, starts: Any, ends: Any, strides: Any = None) -> Any:
    return a[tuple(map(slice, starts, ends, strides or (1,) * a.ndim))]


@runs(prims.pad)
def pad(a: Any, value: Any, config: Any) -> Any:
    for dim, (before, behind, between) in enumerate(config):
        size = a.shape[dim]
        inner = size + max(size - 1, 0) * between
        whole = np.full(
            (*a.shape[:dim], max(before, 0) + inner + max(behind, 0), *a.shape[dim + 1 :]), value, dtype=a.dtype
        )
        start = max(before, 0)
        whole[(slice(None),) * dim + (slice(start, start + inner, between + 1),)] = a
        a = whole[(slice(None),) * dim + (slice(max(-before, 0), whole.shape[dim] - max(-behind, 0)),)]
    return a


@runs(prims.unfold)
def unfold(a: Any, dim: int, size: int, step: int) -> Any:
    windows = np.lib.stride_tricks.sliding_window_view(a, size, axis=dim)
    return windows[(slice(None),) * dim + (slice(None, None, step),)]


@runs(prims.full)
def full(shape: Any, value: Any, dtype: Any, device: Any) -> Any:
    return np.full(shape, value, numpy_dtype(dtype))


@runs(prims.empty)
def empty(shape: Any, dtype: Any, device: Any) -> Any:
    return np.empty(shape, numpy_dtype(dtype))


@runs(prims.iota)
def iota(length: int, start: Any, step: Any, dtype: Any, device: Any) -> Any:
    return (start + step * np.arange(length)).astype(numpy_dtype(dtype))


@runs(prims.tensor_from_sequence)
def tensor_from_sequence(sequence: Any, dtype: Any, device: Any) -> Any:
    return np.array(sequence, numpy_dtype(dtype))


@runs(prims.convert_element_type)
def convert_element_type(a: Any, dtype: Any) -> Any:
    return (a.real if a.dtype.kind == "c" and not dtype.is_complex else a).astype(numpy_dtype(dtype))


@runs(prims.bitcast)
def bitcast(a: Any, dtype: Any) -> Any:
    return np.ascontiguousarray(a).view(numpy_dtype(dtype))


@runs(prims.uniform)
def uniform(shape: Any, low: Any, high: Any, dtype: Any, device: Any) -> Any:
    return np.random.default_rng().uniform(low, high, shape).astype(numpy_dtype(dtype))


@runs(prims.uniform_philox)
def uniform_philox(shape: Any, low: Any, high: Any, dtype: Any, device: Any, seed: Any, offset: Any) -> Any:
    generator = np.random.Generator(np.random.Philox(key=np.asarray(seed).item(), counter=np.asarray(offset).item()))
    return generator.uniform(low, high, shape).astype(numpy_dtype(dtype))


@runs(prims.randn)
def randn(shape: Any, dtype: Any, device: Any) -> Any:
    return np.random.default_rng().standard_normal(shape).astype(numpy_dtype(dtype))


@runs(prims.randint)
def randint(shape: Any, low: Any, high: Any, dtype: Any, device: Any) -> Any:
    return np.random.default_rng().integers(low, high, shape).astype(numpy_dtype(dtype))


@runs(prims.randperm)
def randperm(length: int, dtype: Any, device: Any) -> Any:
    return np.random.default_rng().permutation(length).astype(numpy_dtype(dtype))


@runs(prims.poisson)
def poisson(a: Any) -> Any:
    return np.random.default_rng().poisson(a).astype(a.dtype)


@runs(prims.multinomial)
def multinomial(a: Any, samples: int, replacement: bool) -> Any:
    generator = np.random.default_rng()
    rows = [generator.choice(a.shape[-1], samples, replacement, w / w.sum()) for w in a.reshape(-1, a.shape[-1])]
    return np.array(rows).reshape(*a.shape[:-1], samples)


@runs(prims.assert_tensor_metadata)
def assert_tensor_metadata(a: Any, shape: Any, dtype: Any, device: Any) -> None:
    assert (a.shape, a.dtype) == (tuple(shape), numpy_dtype(dtype))


@runs(prims.comment)
def comment(text: str) -> None:
    """Nothing runs."""


@runs(prims.sum)
def sum_(a: Any, dims: Any) -> Any:
    return np.sum(a, axis=tuple(dims), dtype=a.dtype)


@runs(prims.index_add)
def index_add(a: Any, indices: Any, values: Any, dim: int) -> Any:
    result = a.copy()
    np.add.at(result, (slice(None),) * dim + (np.atleast_1d(indices),), values)
    return result
