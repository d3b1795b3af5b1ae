"""What values can be computed: each operation with what it means, in NumPy, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from thunder_ir import DType, dtypes

Array = Any
"""A NumPy array, or a scalar of NumPy."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation on elements.

    Args:
        name: in programs.
        meaning: from NumPy arrays to one.
        cost: how many additions it is worth.
    """

    name: str
    meaning: Callable[..., Array]
    cost: float


def _by_element(function: Callable[..., float]) -> Callable[..., Array]:
    vectorised = np.vectorize(function, otypes=[np.float64])

    def apply(*operands: Array) -> Array:
        return vectorised(*operands).astype(np.result_type(*operands))

    return apply


def _maximum_number(a: Array, b: Array) -> Array:
    return np.maximum(a, b)  # a NaN wins


def _sigmoid(a: Array) -> Array:
    one = a.dtype.type(1)
    return one / (one + np.exp(-a))


def _floor_divide(a: Array, b: Array) -> Array:
    if a.dtype.kind != "f":
        return np.floor_divide(a, b)
    whole = np.floor_divide(a, b)
    return np.where(b == 0, a / b, whole)


def _trunc_divide(a: Array, b: Array) -> Array:
    return (
        np.trunc(a / b) if a.dtype.kind == "f" else np.where((a < 0) != (b < 0), -(abs(a) // abs(b)), abs(a) // abs(b))
    )


def _shift_left(a: Array, b: Array) -> Array:
    bits = a.dtype.itemsize * 8
    fits = (b >= 0) & (b < bits)
    return np.where(fits, np.left_shift(a, np.where(fits, b, 0)), 0).astype(a.dtype)


def _shift_right(a: Array, b: Array) -> Array:
    bits = a.dtype.itemsize * 8
    return np.right_shift(a, np.where((b >= 0) & (b < bits), b, bits - 1).astype(a.dtype))


def _lgamma(x: float) -> float:
    if math.isinf(x):
        return math.inf
    return math.inf if x <= 0 and x == math.floor(x) else math.lgamma(x)


_TABLE: tuple[tuple[str, Callable[..., Array], float], ...] = (
    ("abs", np.abs, 1), ("acos", np.arccos, 20), ("acosh", np.arccosh, 30), ("add", np.add, 1), ("asin", np.arcsin, 20),
    ("asinh", np.arcsinh, 30), ("atan", np.arctan, 20), ("atan2", np.arctan2, 30), ("atanh", np.arctanh, 30),
    ("bitwise_and", np.bitwise_and, 1), ("bitwise_left_shift", _shift_left, 2), ("bitwise_not", np.bitwise_not, 1),
    ("bitwise_or", np.bitwise_or, 1), ("bitwise_right_shift", _shift_right, 2), ("bitwise_xor", np.bitwise_xor, 1),
    ("ceil", np.ceil, 1), ("copysign", np.copysign, 1), ("cos", np.cos, 20), ("cosh", np.cosh, 20),
    ("div", np.divide, 4), ("eq", np.equal, 1),
    ("erf", _by_element(math.erf), 15), ("erfc", _by_element(math.erfc), 30),
    ("exp", np.exp, 10), ("exp2", np.exp2, 10), ("expm1", np.expm1, 20), ("floor", np.floor, 1),
    ("floor_divide", _floor_divide, 20), ("fmod", np.fmod, 20), ("ge", np.greater_equal, 1), ("gt", np.greater, 1),
    ("hypot", np.hypot, 10), ("isfinite", np.isfinite, 1), ("isinf", np.isinf, 1), ("isnan", np.isnan, 1),
    ("le", np.less_equal, 1), ("lgamma", _by_element(_lgamma), 40), ("log", np.log, 12), ("log10", np.log10, 15),
    ("log1p", np.log1p, 20), ("log2", np.log2, 15), ("lt", np.less, 1), ("maximum", _maximum_number, 2),
    ("minimum", lambda a, b: -_maximum_number(-a, -b) if a.dtype.kind == "f" else np.minimum(a, b), 2),
    ("mul", np.multiply, 1), ("ne", np.not_equal, 1), ("neg", np.negative, 1), ("nextafter", np.nextafter, 4),
    ("pow", np.power, 40), ("reciprocal", lambda a: a.dtype.type(1) / a, 4), ("remainder", np.remainder, 20),
    ("round", np.rint, 1), ("rsqrt", lambda a: a.dtype.type(1) / np.sqrt(a), 8), ("sigmoid", _sigmoid, 16),
    ("sign", lambda a: np.where(a > 0, 1, np.where(a < 0, -1, 0)).astype(a.dtype), 2), ("signbit", np.signbit, 1),
    ("sin", np.sin, 20), ("sinh", np.sinh, 20), ("sqrt", np.sqrt, 4), ("sub", np.subtract, 1), ("tan", np.tan, 25),
    ("tanh", np.tanh, 15), ("trunc", np.trunc, 1), ("trunc_divide", _trunc_divide, 10),
    ("where", lambda p, a, b: np.where(p, a, b), 1),
)  # fmt: skip

OPERATIONS: Mapping[str, Operation] = MappingProxyType({n: Operation(n, meaning, cost) for n, meaning, cost in _TABLE})
"""The operations on elements, by name. Beside these there is ``to``, which converts to another dtype."""


def _first_place(choose: Callable[..., Array]) -> Callable[[Array, tuple[int, ...]], Array]:
    def apply(a: Array, axes: tuple[int, ...]) -> Array:
        kept = [d for d in range(a.ndim) if d not in axes]
        flat = np.transpose(a, (*kept, *axes)).reshape(*[a.shape[d] for d in kept], -1)
        return np.expand_dims(choose(flat, axis=-1), axes).astype(np.int64)

    return apply


@dataclass(frozen=True, slots=True)
class Reduction:
    """One value of many.

    Args:
        name: in programs, behind ``reduce_``.
        meaning: from a NumPy array and axes to the array with size 1 along these.
        empty: of no elements; ``None`` where there is no such value.
    """

    name: str
    meaning: Callable[[Array, tuple[int, ...]], Array]
    empty: float | None


def _kept(function: Any) -> Callable[[Array, tuple[int, ...]], Array]:
    return lambda a, axes: function(a, axis=axes, keepdims=True, dtype=a.dtype)


REDUCTIONS: Mapping[str, Reduction] = MappingProxyType({
    "sum": Reduction("sum", _kept(np.sum), 0),
    "prod": Reduction("prod", _kept(np.prod), 1),
    "max": Reduction("max", lambda a, axes: np.max(a, axis=axes, keepdims=True), None),
    "min": Reduction("min", lambda a, axes: np.min(a, axis=axes, keepdims=True), None),
    "argmax": Reduction("argmax", _first_place(np.argmax), None),
    "argmin": Reduction("argmin", _first_place(np.argmin), None),
})  # fmt: skip
"""The reductions by name. A NaN wins every comparison; of equal elements the first one is found."""

SCANS: Mapping[str, Callable[..., Array]] = MappingProxyType({"sum": np.cumsum, "prod": np.cumprod})
"""The scans by name: functions of NumPy that take an array, an axis and a dtype, and go on from element to element."""

NUMPY: Mapping[DType, Any] = MappingProxyType({
    dtypes.bool8: np.bool_, dtypes.uint8: np.uint8, dtypes.int8: np.int8, dtypes.int16: np.int16,
    dtypes.int32: np.int32, dtypes.int64: np.int64, dtypes.float16: np.float16, dtypes.float32: np.float32,
    dtypes.float64: np.float64, dtypes.bfloat16: np.float32,
})  # fmt: skip
"""How the reference machine keeps elements: NumPy has no ``bfloat16``, whose values all are ones of ``float32``."""


def to_bfloat16(a: Array) -> Array:
    """Round ``float32`` to the nearest value that ``bfloat16`` has, of two the even one."""
    bits = np.asarray(a, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(a), np.float32(np.nan), rounded.view(np.float32)).astype(np.float32)


def converted(a: Array, to: DType) -> Array:
    """Return an array in another dtype; what becomes ``bool8`` is whether it is not 0."""
    if to is dtypes.bool8:
        return np.asarray(a != 0)
    return to_bfloat16(np.asarray(a, np.float32)) if to is dtypes.bfloat16 else np.asarray(a).astype(NUMPY[to])
