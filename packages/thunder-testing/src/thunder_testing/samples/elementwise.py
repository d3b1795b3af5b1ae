"""Samples of the elementwise prims: each within its domain, over dtypes and shapes, and with numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import thunder_prims as prims
from thunder_ir import Symbol, dtypes
from thunder_testing.samples.sample import Sample, samples
from thunder_testing.samples.values import FLOATS, INTEGERS, SHAPES, values

_REAL_LINE = (-2.0, 3.0)
_DOMAINS: dict[tuple[float, float], tuple[str, ...]] = {
    _REAL_LINE: (
        "asinh",
        "atan",
        "cos",
        "cosh",
        "erf",
        "erfc",
        "erfcx",
        "exp",
        "exp2",
        "expm1",
        "i0",
        "i0e",
        "i1",
        "i1e",
        "log_ndtr",
        "sigmoid",
        "sin",
        "sinc",
        "sinh",
        "tanh",
        "bessel_j0",
        "bessel_j1",
    ),
    (-0.9, 0.9): ("acos", "asin", "atanh", "erfinv", "log1p", "tan"),
    (0.1, 0.9): ("ndtri",),
    (0.1, 1.9): ("erfcinv",),
    (1.1, 4.0): ("acosh",),
    (0.3, 4.0): (
        "bessel_y0",
        "bessel_y1",
        "digamma",
        "lgamma",
        "log",
        "log10",
        "log2",
        "modified_bessel_k0",
        "modified_bessel_k1",
        "reciprocal",
        "rsqrt",
        "scaled_modified_bessel_k0",
        "scaled_modified_bessel_k1",
        "sqrt",
    ),
}
_EXACT = ("ceil", "floor", "round", "sign", "trunc", "neg", "abs")
_TESTS = ("isfinite", "isinf", "isnan", "signbit")


def _unary(domain: tuple[float, float], dtypes_: tuple[str, ...], exact: bool) -> Callable[[], Iterator[Sample]]:
    def generate() -> Iterator[Sample]:
        for dtype in dtypes_:
            for shape in SHAPES:
                yield Sample((values(dtype, shape, *domain),), exact=exact)

    return generate


for _domain, _names in _DOMAINS.items():
    for _name in _names:
        samples(getattr(prims, _name))(_unary(_domain, FLOATS, False))
for _name in (*_EXACT, *_TESTS):
    samples(getattr(prims, _name))(_unary(_REAL_LINE, FLOATS, True))
samples(prims.bitwise_not)(_unary(_REAL_LINE, ("bool", *INTEGERS), True))
for _name in ("real", "imag", "conj"):
    samples(getattr(prims, _name))(_unary(_REAL_LINE, ("complex64", "complex128"), True))

_ARITHMETIC = ("add", "sub", "mul", "maximum", "minimum")
_OF_FLOATS = ("div", "atan2", "copysign", "hypot", "logaddexp", "logaddexp2")
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_OF_BITS = ("bitwise_and", "bitwise_or", "bitwise_xor")


def _binary(dtypes_: tuple[str, ...], number: Any, exact: bool, low: float = -2.0) -> Callable[[], Iterator[Sample]]:
    def generate() -> Iterator[Sample]:
        for dtype in dtypes_:
            for shape in SHAPES:
                yield Sample((values(dtype, shape, low), values(dtype, shape, low, seed=1)), exact=exact)
            a = values(dtype, low=low)
            yield Sample((a, number), exact=exact)
            yield Sample((number, a), exact=exact)

    return generate


for _name in _ARITHMETIC:
    samples(getattr(prims, _name))(_binary((*FLOATS, "int32", "int64"), 2, False))
for _name in _OF_FLOATS:
    samples(getattr(prims, _name))(_binary(FLOATS, 1.5, False))
for _name in _COMPARISONS:
    samples(getattr(prims, _name))(_binary((*FLOATS, *INTEGERS), 1, True))
for _name in _OF_BITS:
    samples(getattr(prims, _name))(_binary(INTEGERS, 3, True))
for _name in ("floor_divide", "remainder", "fmod"):
    samples(getattr(prims, _name))(_binary((*FLOATS, "int32"), 2, False, low=0.5))
samples(prims.pow)(_binary(FLOATS, 2, False, low=0.5))
for _name in ("bitwise_left_shift", "bitwise_right_shift"):

    @samples(getattr(prims, _name))
    def _shifts() -> Iterator[Sample]:
        for dtype in ("int32", "int64"):
            yield Sample((values(dtype), values(dtype, low=0, high=0.5, seed=1)), exact=True)


for _name, _low in (("igamma", 0.2), ("igammac", 0.2), ("zeta", 1.2), ("xlogy", 0.2), ("xlog1py", 0.2)):

    @samples(getattr(prims, _name))
    def _special(low: float = _low) -> Iterator[Sample]:
        yield Sample((values("float64", low=low), values("float64", low=0.3, seed=1)))


@samples(prims.where)
def where() -> Iterator[Sample]:
    """Tensors, and a number on either side."""
    for dtype in (*FLOATS, "int64", "bool"):
        mask = values("bool")
        a, b = values(dtype), values(dtype, seed=1)
        number = {"int64": 3, "bool": True}.get(dtype, 1.5)
        yield from (Sample(args, exact=True) for args in ((mask, a, b), (mask, a, number), (mask, number, b)))


@samples(prims.clamp)
def clamp() -> Iterator[Sample]:
    """Bounds that are tensors, numbers, missing or contradictory."""
    a = values("float32")
    for low, high in ((-1.0, 1.0), (None, 0.5), (0.5, None), (values("float32", seed=1), None), (2.0, 1.0)):
        yield Sample((a, low, high), exact=True)


@samples(prims.lerp)
def lerp() -> Iterator[Sample]:
    """A weight that is a tensor, or a number."""
    a, b, weight = (values("float64", seed=i) for i in range(3))
    yield Sample((a, b, weight))
    yield Sample((a, b, 0.25))


@samples(prims.convert_element_type)
def convert_element_type() -> Iterator[Sample]:
    """From each of some dtypes to each."""
    for source in ("bool", "int32", "float32", "float64", "complex64"):
        for target in (dtypes.bool8, dtypes.int64, dtypes.float32, dtypes.float64, dtypes.complex128):
            yield Sample((values(source), target))


def _keep(symbol: Symbol) -> None:
    @samples(symbol)
    def generate() -> Iterator[Sample]:
        for dtype in ("bool", "int64", "float32"):
            yield Sample((values(dtype),), exact=True)


_keep(prims.clone)
