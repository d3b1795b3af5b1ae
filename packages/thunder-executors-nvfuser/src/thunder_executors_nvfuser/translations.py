"""From prims to operations of nvFuser. To teach it one, add a row to a table, or a function below ``@translation``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

import thunder_prims as prims
from thunder_executors import Declined
from thunder_executors_nvfuser.types import HALVES
from thunder_executors_nvfuser.writer import Writer, number_text
from thunder_ir import BoundSymbol, NumberProxy, Symbol, TensorProxy, dtypes

Translation: TypeAlias = Callable[..., "str | list[str]"]
T = TypeVar("T", bound=Translation)
TRANSLATIONS: dict[Symbol, Translation] = {}
CONDITIONS: dict[Symbol, Callable[[BoundSymbol], bool | Declined]] = {}

SAME = (
    prims.abs, prims.acos, prims.acosh, prims.asin, prims.asinh, prims.atan, prims.atanh, prims.ceil, prims.cos,
    prims.cosh, prims.erf, prims.erfc, prims.erfcinv, prims.erfinv, prims.exp, prims.exp2, prims.expm1, prims.floor,
    prims.isfinite, prims.isinf, prims.isnan, prims.lgamma, prims.log, prims.log10, prims.log1p, prims.log2, prims.neg,
    prims.reciprocal, prims.round, prims.rsqrt, prims.sigmoid, prims.sign, prims.signbit, prims.sin, prims.sinh,
    prims.sqrt, prims.tan, prims.tanh, prims.trunc, prims.bitwise_not,
    prims.add, prims.atan2, prims.bitwise_and, prims.bitwise_or, prims.bitwise_xor, prims.eq, prims.fmod, prims.ge,
    prims.gt, prims.le, prims.lt, prims.maximum, prims.minimum, prims.mul, prims.ne, prims.nextafter, prims.pow,
    prims.remainder, prims.sub, prims.where,
)  # fmt: skip
"""Operations that are called the same, and take the same arguments."""

ANSWERS_BOOL = frozenset({"eq", "ge", "gt", "isfinite", "isinf", "isnan", "le", "lt", "ne", "signbit"})
OTHERS = {prims.div: "truediv", prims.bitwise_left_shift: "bitwise_left_shift",
          prims.bitwise_right_shift: "bitwise_right_shift"}  # fmt: skip
REDUCTIONS = {prims.sum: "sum", prims.prod: "prod", prims.amax: "max", prims.amin: "min"}


def translation(symbol: Symbol, when: Callable[[BoundSymbol], bool | Declined] | None = None) -> Callable[[T], T]:
    """Let the decorated function write the calls of a prim: it takes the writer and the prim's arguments."""

    def register(function: T) -> T:
        TRANSLATIONS[symbol] = function
        if when is not None:
            CONDITIONS[symbol] = when
        return function

    return register


def _call(name: str) -> Translation:
    return lambda write, *args: write.call(name, *[write.operand(a) for a in args])


TRANSLATIONS |= {symbol: _call(symbol.name) for symbol in SAME}
TRANSLATIONS |= {symbol: _call(name) for symbol, name in OTHERS.items()}


def _reduce(name: str) -> Translation:
    def run(write: Writer, a: TensorProxy, dims: Sequence[int]) -> str:
        return write.call(name, write.wide(a), str(list(dims)), "keepdim=False") if dims else write.wide(a)

    return run


TRANSLATIONS |= {symbol: _reduce(name) for symbol, name in REDUCTIONS.items()}


def whole_correction(bound: BoundSymbol) -> bool | Declined:
    """Whether a variance is divided by a whole number of elements, over at least one dimension."""
    _, dims, correction = bound.args
    return True if dims and float(correction).is_integer() else Declined("its correction is no whole number")


@translation(prims.var, whole_correction)
def var(write: Writer, a: TensorProxy, dims: Sequence[int], correction: float) -> str:
    return write.call("var", write.wide(a), str(list(dims)), f"correction={int(correction)}", "keepdim=False")


@translation(prims.var_mean, whole_correction)
def var_mean(write: Writer, a: TensorProxy, dims: Sequence[int], correction: float) -> list[str]:
    options = f"correction={int(correction)}, keepdim=False"
    return write.line(f"fd.ops.var_mean({write.wide(a)}, {list(dims)}, {options})", 2)


@translation(prims.clamp)
def clamp(write: Writer, a: TensorProxy, low: Any, high: Any) -> str:
    """A NaN stays one, and of bounds that cross the upper one holds: two calls, as ``clamp`` promises neither."""
    name = write.operand(a)
    for operation, bound in (("maximum", low), ("minimum", high)):
        if bound is not None:
            name = write.call(operation, name, write.operand(bound))
    return name


@translation(prims.convert_element_type)
def convert_element_type(write: Writer, a: TensorProxy, dtype: Any) -> str:
    return write.cast(write.operand(a), dtype)


@translation(prims.clone)
def clone(write: Writer, a: TensorProxy) -> str:
    return write.call("set", write.operand(a))


@translation(prims.stride_order)
def stride_order(write: Writer, a: TensorProxy, order: tuple[int, ...]) -> str:
    """The value itself: how a fusion's outputs lie is said for each of them."""
    return clone(write, a)


@translation(prims.broadcast_in_dim)
def broadcast_in_dim(write: Writer, a: TensorProxy, shape: Any, dims: Sequence[int]) -> str:
    return write.call("broadcast_in_dim", write.operand(a), write.sizes(shape), str(list(dims)))


@translation(prims.reshape)
@translation(prims.view)
def reshape(write: Writer, a: TensorProxy, shape: Any) -> str:
    return write.call("reshape", write.operand(a), write.sizes(shape))


@translation(prims.transpose)
def transpose(write: Writer, a: TensorProxy, permutation: Sequence[int]) -> str:
    return write.call("permute", write.operand(a), str(list(permutation)))


@translation(prims.squeeze)
def squeeze(write: Writer, a: TensorProxy, dims: Sequence[int]) -> str:
    return write.call("squeeze", write.operand(a), str(list(dims)), "squeeze_expanded=True")


@translation(prims.cat)
def cat(write: Writer, tensors: Sequence[TensorProxy], dim: int) -> str:
    return write.call("cat", f"[{', '.join([write.operand(t) for t in tensors])}]", str(dim))


def steps_of_one(bound: BoundSymbol) -> bool | Declined:
    """Whether a slice leaves out nothing between its ends."""
    _, starts, ends, *rest = bound.args
    strides = bound.kwargs.get("strides", rest[0] if rest else None)
    if any([isinstance(d, NumberProxy) for d in (*starts, *ends)]):
        return Declined("an end of a slice is known only when the program runs")
    return True if strides is None or all([s == 1 for s in strides]) else Declined("a slice has steps")


@translation(prims.slice, steps_of_one)
def slice_(write: Writer, a: TensorProxy, starts: Any, ends: Any, strides: Any = None) -> str:
    return write.call("slice", write.operand(a), str(list(starts)), str(list(ends)))


def pads_outside(bound: BoundSymbol) -> bool | Declined:
    """Whether padding adds elements around, and none between."""
    plain = all([type(n) is int and n >= 0 for n in sum([tuple(c) for c in bound.args[2]], ())])
    return True if plain and all([c[2] == 0 for c in bound.args[2]]) else Declined("it pads with whole borders only")


@translation(prims.pad, pads_outside)
def pad(write: Writer, a: TensorProxy, value: Any, config: Sequence[tuple[int, int, int]]) -> str:
    widths = [width for low, high, _ in reversed(config) for width in (low, high)]
    return write.call("pad", write.operand(a), str(widths), number_text(_of_dtype(value, a.dtype)))


def _flat(write: Writer, indices: TensorProxy, count: Any) -> str:
    """Return the name of indices, and let the definition find whether one leads out of ``count`` elements."""
    name = write.operand(indices)
    below, beyond = write.call("lt", name, "0"), write.call("ge", name, write.size(count))
    outside = write.cast(write.call("bitwise_or", below, beyond), dtypes.int32)
    write.flags.append(write.call("max", outside, str(list(range(indices.ndim))), "keepdim=False"))
    return name


def has_dimensions(bound: BoundSymbol, place: int = 1) -> bool | Declined:
    """Whether indices have at least one dimension, of which all sizes are known if there are several."""
    indices = bound.args[place]
    if indices.ndim == 0:
        return Declined("its index has no dimension")
    known = all([not isinstance(d, NumberProxy) for d in indices.shape])
    return True if known or indices.ndim == 1 else Declined("a size of its indices is known only when the program runs")


@translation(prims.take, has_dimensions)
def take(write: Writer, a: TensorProxy, indices: TensorProxy, dim: int) -> str:
    """By ``index_select``, whose indices have one dimension."""
    length = a.shape[dim]
    if indices.ndim == 1:
        return write.call("index_select", write.operand(a), _flat(write, indices, length), str(dim))
    flat = write.call("reshape", _flat(write, indices, length), f"[{write.size(indices.numel)}]")
    found = write.call("index_select", write.operand(a), flat, str(dim))
    return write.call("reshape", found, write.sizes([*a.shape[:dim], *indices.shape, *a.shape[dim + 1 :]]))


@translation(prims.embedding, lambda bound: has_dimensions(bound, 0))
def embedding(write: Writer, indices: TensorProxy, weight: TensorProxy, *options: Any, **others: Any) -> str:
    """Rows of the weight; options are of its gradient."""
    return take(write, weight, indices, 0)


def _gather(name: str) -> Translation:
    def run(write: Writer, a: TensorProxy, indices: TensorProxy, dim: int) -> str:
        return write.call(name, write.operand(a), _flat(write, indices, a.shape[dim]), str(dim))

    return run


for _symbol in (prims.gather, prims.take_along_axis):
    translation(_symbol, has_dimensions)(_gather(_symbol.name))


def _drawn(write: Writer, name: str, first: Any, second: Any, shape: Any, dtype: Any, *state: str) -> str:
    """By ``state`` or, without one, by PyTorch's generator of the device: each launch moves it on."""
    wide = dtypes.float32 if dtype in HALVES else dtype
    limits = (number_text(float(first)), number_text(float(second)))
    return write.call(name, *limits, write.sizes(shape), *state, f"dtype=DataType.{_TYPE[wide]}")


def uniform(write: Writer, shape: Any, low: Any, high: Any, dtype: Any, device: Any) -> str:
    return _drawn(write, "uniform", low, high, shape, dtype)


def randn(write: Writer, shape: Any, dtype: Any, device: Any) -> str:
    return _drawn(write, "normal", 0, 1, shape, dtype)


def uniform_philox(
    write: Writer, shape: Any, low: Any, high: Any, dtype: Any, device: Any, seed: Any, offset: Any
) -> str:
    state = (f"rng_seed={write.integer(seed)}", f"rng_offset={write.integer(offset)}")
    return _drawn(write, "uniform", low, high, shape, dtype, *state)


def has_plain_state(bound: BoundSymbol) -> bool | Declined:
    """Whether seed and offset are numbers: PyTorch, which says how results lie in memory, reads tensors for it."""
    held = any([isinstance(p, TensorProxy) for p in bound.args[5:]])
    return Declined("its seed or offset is held by a tensor") if held else True


CONDITIONS[prims.uniform_philox] = has_plain_state
RANDOM: dict[Symbol, Translation] = {prims.uniform: uniform, prims.randn: randn, prims.uniform_philox: uniform_philox}
"""Taken only where they are asked for: they draw other numbers than PyTorch's kernels with the same seed."""


def full_of(write: Writer, out: TensorProxy, shape: Any, value: Any) -> str:
    return write.call("full", write.sizes(shape), number_text(_of_dtype(value, out.dtype)), _type(out))


def _of_dtype(value: Any, dtype: Any) -> Any:
    """Return a number as Python has those of a dtype, as nvFuser takes it for what it is there."""
    return bool(value) if dtype.is_bool else float(value) if dtype.is_floating else value


def _type(out: TensorProxy) -> str:
    return f"DataType.{'Float' if out.dtype in HALVES else _TYPE[out.dtype]}"


_TYPE = {
    dtypes.float64: "Double", dtypes.float32: "Float", dtypes.int64: "Int", dtypes.int32: "Int32",
    dtypes.bool8: "Bool",
}  # fmt: skip


def _matmul(write: Writer, a: TensorProxy, b: TensorProxy) -> str:
    return write.call("matmul", write.operand(a), write.operand(b))


def _linear(write: Writer, a: TensorProxy, weight: TensorProxy, bias: TensorProxy | None) -> str:
    operands = [write.operand(t) for t in (a, weight, bias) if t is not None]
    return write.call("linear", *operands)


PRODUCTS: dict[Symbol, Translation] = {prims.matmul: _matmul, prims.linear: _linear}
"""Taken only where they are asked for: libraries of products are faster for most sizes."""


def needs_no_cast(bound: BoundSymbol, out: TensorProxy) -> bool:
    """Whether what nvFuser computes is of the dtype that the program wants, by its rules of promotion."""
    if out.dtype in HALVES or out.dtype is dtypes.int32:
        return bound.symbol in (prims.convert_element_type, *PRODUCTS)
    if bound.symbol.name in ANSWERS_BOOL:
        return True
    if bound.symbol in RANDOM:
        return True
    tensors = [p for p in bound.inputs if isinstance(p, TensorProxy)]
    if bound.symbol is prims.where:
        tensors = [p for p in bound.args[1:] if isinstance(p, TensorProxy)]
    if out.dtype.is_bool and any([isinstance(a, (bool, int)) for a in bound.args]):
        return False  # numbers are integers there, and make results ones
    return bool(tensors) and all([p.dtype is out.dtype for p in tensors])


__all__ = ["CONDITIONS", "PRODUCTS", "RANDOM", "TRANSLATIONS", "full_of", "needs_no_cast", "translation"]
