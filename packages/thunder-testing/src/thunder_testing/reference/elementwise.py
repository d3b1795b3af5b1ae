"""Reference of the elementwise prims."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
import scipy.special as special  # type: ignore[import-untyped]

import thunder_prims as prims
from thunder_testing.reference.machine import numpy_dtype, reference

_FUNCTIONS: dict[Any, Any] = {
    prims.abs: np.abs, prims.acos: np.arccos, prims.acosh: np.arccosh, prims.asin: np.arcsin,
    prims.asinh: np.arcsinh, prims.atan: np.arctan, prims.atanh: np.arctanh, prims.bitwise_not: np.invert,
    prims.ceil: np.ceil, prims.conj: np.conj, prims.cos: np.cos, prims.cosh: np.cosh, prims.exp: np.exp,
    prims.exp2: np.exp2, prims.expm1: np.expm1, prims.floor: np.floor, prims.frexp: np.frexp, prims.imag: np.imag,
    prims.log: np.log, prims.log10: np.log10, prims.log1p: np.log1p, prims.log2: np.log2, prims.neg: np.negative,
    prims.real: np.real, prims.reciprocal: np.reciprocal, prims.round: np.round, prims.rsqrt: lambda a: 1 / np.sqrt(a),
    prims.sigmoid: lambda a: 1 / (1 + np.exp(-a)), prims.sign: np.sign, prims.sin: np.sin, prims.sinc: np.sinc,
    prims.sinh: np.sinh, prims.sqrt: np.sqrt, prims.tan: np.tan, prims.tanh: np.tanh, prims.trunc: np.trunc,
    prims.add: np.add, prims.sub: np.subtract, prims.mul: np.multiply, prims.div: np.true_divide,
    prims.floor_divide: np.floor_divide, prims.remainder: np.remainder, prims.fmod: np.fmod, prims.pow: np.power,
    prims.trunc_divide: lambda a, b: np.trunc(np.true_divide(a, b)).astype(a.dtype),
    prims.maximum: np.maximum, prims.minimum: np.minimum, prims.atan2: np.arctan2, prims.copysign: np.copysign,
    prims.nextafter: np.nextafter, prims.hypot: np.hypot, prims.logaddexp: np.logaddexp,
    prims.logaddexp2: np.logaddexp2, prims.gcd: np.gcd, prims.lcm: np.lcm, prims.complex: lambda a, b: a + 1j * b,
    prims.bitwise_and: np.bitwise_and, prims.bitwise_or: np.bitwise_or, prims.bitwise_xor: np.bitwise_xor,
    prims.bitwise_left_shift: np.left_shift, prims.bitwise_right_shift: np.right_shift,
    prims.eq: np.equal, prims.ne: np.not_equal, prims.lt: np.less, prims.le: np.less_equal, prims.gt: np.greater,
    prims.ge: np.greater_equal, prims.isfinite: np.isfinite, prims.isinf: np.isinf, prims.isnan: np.isnan,
    prims.signbit: np.signbit, prims.where: np.where,
    prims.lerp: lambda start, end, weight: start + weight * (end - start),
}  # fmt: skip

_OTHERS: dict[Any, Any] = {
    prims.clone: np.copy, prims.shallow_copy: lambda a: a, prims.device_put: lambda a, device: a,
    prims.number_abs: abs, prims.number_add: operator.add, prims.number_floordiv: operator.floordiv,
    prims.number_math: lambda function, a: getattr(math, function)(a),
    prims.number_round: round,
    prims.number_mod: operator.mod, prims.number_mul: operator.mul, prims.number_neg: operator.neg,
    prims.number_pow: operator.pow, prims.number_sub: operator.sub, prims.number_truediv: operator.truediv,
    prims.stride_order: lambda a, order: a, prims.item: lambda a: np.asarray(a).item(),
}  # fmt: skip

_SPECIAL = {
    "bessel_j0": "j0", "bessel_j1": "j1", "bessel_y0": "y0", "bessel_y1": "y1", "digamma": "digamma", "erf": "erf",
    "erfc": "erfc", "erfcx": "erfcx", "erfinv": "erfinv", "erfcinv": "erfcinv", "i0": "i0", "i0e": "i0e", "i1": "i1",
    "i1e": "i1e", "igamma": "gammainc", "igammac": "gammaincc", "lgamma": "gammaln", "log_ndtr": "log_ndtr",
    "modified_bessel_k0": "k0", "modified_bessel_k1": "k1", "ndtri": "ndtri", "scaled_modified_bessel_k0": "k0e",
    "scaled_modified_bessel_k1": "k1e", "xlog1py": "xlog1py", "xlogy": "xlogy", "zeta": "zeta",
}  # fmt: skip


def _fitting(function: Any) -> Any:
    """The function with numbers as arrays of the other operand's dtype, wrapped around where they do not fit."""

    def run(*operands: Any) -> Any:
        arrays = [o for o in operands if isinstance(o, np.ndarray)]
        if len(arrays) == len(operands) or not arrays:
            return function(*operands)
        dtype = arrays[-1].dtype
        return function(*[o if isinstance(o, np.ndarray) else np.array(o).astype(dtype) for o in operands])

    return run


for _symbol, _function in _FUNCTIONS.items():
    reference(_symbol)(_fitting(_function))
for _symbol, _function in _OTHERS.items():
    reference(_symbol)(_function)
for _name, _theirs in _SPECIAL.items():
    reference(getattr(prims, _name))(getattr(special, _theirs))


@reference(prims.polygamma)
def polygamma(a: Any, n: int) -> Any:
    """SciPy takes the order first."""
    return special.polygamma(n, a)


@reference(prims.clamp)
def clamp(a: Any, low: Any, high: Any) -> Any:
    """``low`` first, so that ``high`` wins."""
    if low is not None:
        a = np.maximum(a, low)
    return a if high is None else np.minimum(a, high)


@reference(prims.convert_element_type)
def convert_element_type(a: Any, dtype: Any) -> Any:
    """NumPy warns where complex numbers lose a part."""
    wanted = numpy_dtype(dtype)
    return (np.real(a) if wanted.kind not in "cb" else a).astype(wanted)


@reference(prims.bitcast)
def bitcast(a: Any, dtype: Any) -> Any:
    """The same bits, read otherwise."""
    return np.ascontiguousarray(a).view(numpy_dtype(dtype))
