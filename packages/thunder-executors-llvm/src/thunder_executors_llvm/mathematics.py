"""Functions: those of SLEEF that PyTorch's library exports, which its own kernels call too; else the C library's."""

from __future__ import annotations

from collections.abc import Callable

from thunder_executors_llvm import polynomials
from thunder_executors_llvm.emitter import Emitter, Value, joined, part, type_of
from thunder_executors_llvm.library import address_of
from thunder_executors_llvm.rows import FLOATING, Write, lowering
from thunder_executors_llvm.target import Target
from thunder_ir import DType, dtypes

SLEEF = {
    "acos": "u10", "acosh": "u10", "asin": "u10", "asinh": "u10", "atan": "u10", "atanh": "u10", "cos": "u10",
    "cosh": "u10", "erf": "u10", "erfc": "u15", "exp": "u10", "exp2": "u10", "expm1": "u10", "lgamma": "u10",
    "log": "u10", "log10": "u10", "log1p": "u10", "log2": "u10", "sin": "u10", "sinh": "u10", "tan": "u10",
    "tanh": "u10", "atan2": "u10", "hypot": "u05", "pow": "u10", "fmod": "", "nextafter": "",
}  # fmt: skip
"""The functions, each with the worst error that SLEEF states of it, in tenths of a unit in the last place."""


def sleef_name(function: str, dtype: DType, lanes: int) -> str:
    """Return how SLEEF calls a function of vectors."""
    accuracy = SLEEF[function]
    kind = "f" if dtype is dtypes.float32 else "d"
    return f"Sleef_{function}{kind}{lanes}{f'_{accuracy}' if accuracy else ''}"


def lanes_of(target: Target, dtype: DType) -> int:
    """Return how many elements fit a register."""
    return target.bits // dtype.bits


def missing(function: str) -> Callable[[Target, DType], str | None]:
    """Return what says why a function cannot be called for a target."""

    def why(target: Target, dtype: DType) -> str | None:
        name = sleef_name(function, dtype, lanes_of(target, dtype))
        if target.address(name) is not None or _scalar_address(function, dtype) is not None:
            return None
        return f"PyTorch's library exports no {name}"

    return why


def _scalar_name(function: str, dtype: DType) -> str:
    return f"{function}f" if dtype is dtypes.float32 else function


def _scalar_address(function: str, dtype: DType) -> int | None:
    return address_of(_scalar_name(function, dtype))


def call_of(function: str) -> Write:
    """Return what writes a call of a function, in registers of the machine's width."""

    def write(emit: Emitter, *operands: Value) -> Value:
        operands = tuple(emit.alike(*operands))
        dtype, lanes = operands[0].dtype, operands[0].lanes
        width = lanes_of(emit.target, dtype)
        name = sleef_name(function, dtype, width)
        address = emit.target.address(name)
        if address is None:
            return _one_by_one(emit, function, operands)
        if lanes == 1:  # the very function of vectors, so that no result depends on where an element stands
            whole = _called(emit, name, address, [emit.widened(o, width) for o in operands])
            return emit.value(f"extractelement {whole}, i64 0", dtype, 1)
        if lanes <= width:
            padded = [part(emit, o, 0, width) for o in operands] if lanes < width else list(operands)
            return (
                part(emit, _called(emit, name, address, padded), 0, lanes)
                if lanes < width
                else _called(emit, name, address, padded)
            )
        parts = [
            _called(emit, name, address, [part(emit, o, start, width) for o in operands])
            for start in range(0, lanes, width)
        ]
        return joined(emit, parts)

    return write


def _called(emit: Emitter, name: str, address: int, operands: list[Value]) -> Value:
    first = operands[0]
    emit.declare(f"{first.type} @{name}({', '.join([o.type for o in operands])}) #1")
    emit.external(name, address)
    return emit.value(f"call {first.type} @{name}({', '.join(map(str, operands))})", first.dtype, first.lanes)


def _one_by_one(emit: Emitter, function: str, operands: tuple[Value, ...]) -> Value:
    """Write a call of the C library's function for each lane."""
    first = operands[0]
    name = _scalar_name(function, first.dtype)
    address = _scalar_address(function, first.dtype)
    assert address is not None, "asked before"
    emit.declare(f"{first.scalar} @{name}({', '.join([o.scalar for o in operands])}) #1")
    emit.external(name, address)
    result = "poison"
    for lane in range(first.lanes):
        taken = (
            [emit.value(f"extractelement {o}, i64 {lane}", o.dtype, 1) for o in operands]
            if first.lanes > 1
            else operands
        )
        called = emit.value(f"call {first.scalar} @{name}({', '.join(map(str, taken))})", first.dtype, 1)
        if first.lanes == 1:
            return called
        result = emit.define(f"insertelement {type_of(first.scalar, first.lanes)} {result}, {called}, i64 {lane}")
    return Value(result, first.dtype, first.lanes)


assert polynomials, "their rows come first"
for _function in SLEEF:
    lowering(_function, FLOATING, missing(_function))(call_of(_function))

_exp, _fmod = call_of("exp"), call_of("fmod")  # PyTorch's sigmoid calls this very function


@lowering("sigmoid", FLOATING, missing("exp"))
def sigmoid(emit: Emitter, a: Value) -> Value:
    """``1 / (1 + exp(0 - a))``, as PyTorch's kernel computes it."""
    one = emit.like(1, a)
    return emit.binary("fdiv", one, emit.binary("fadd", one, _exp(emit, emit.binary("fsub", emit.like(0, a), a))))


@lowering("remainder", FLOATING, missing("fmod"))
def remainder(emit: Emitter, a: Value, b: Value) -> Value:
    """What is left has the sign of ``b``."""
    a, b = emit.alike(a, b)
    left = _fmod(emit, a, b)
    zero = emit.like(0, left)
    differs = emit.binary("xor", emit.compare("fcmp olt", b, zero), emit.compare("fcmp olt", left, zero))
    moves = emit.binary("and", emit.compare("fcmp une", left, zero), differs)
    return emit.select(moves, emit.binary("fadd", left, b), left)


@lowering("floor_divide", FLOATING, missing("fmod"))
def floor_divide(emit: Emitter, a: Value, b: Value) -> Value:
    """From what is left, so that the quotient is rounded once; the steps of PyTorch's kernel."""
    a, b = emit.alike(a, b)
    zero, one = emit.like(0, a), emit.like(1, a)
    left = _fmod(emit, a, b)
    quotient = emit.binary("fdiv", emit.binary("fsub", a, left), b)
    differs = emit.binary("xor", emit.compare("fcmp olt", b, zero), emit.compare("fcmp olt", left, zero))
    moves = emit.binary("and", emit.compare("fcmp une", left, zero), differs)
    quotient = emit.select(moves, emit.binary("fsub", quotient, one), quotient)
    whole = emit.intrinsic("llvm.floor", quotient)
    above = emit.compare("fcmp ogt", emit.binary("fsub", quotient, whole), emit.like(0.5, a))
    whole = emit.select(above, emit.binary("fadd", whole, one), whole)
    plain = emit.binary("fdiv", a, b)
    whole = emit.select(emit.compare("fcmp une", quotient, zero), whole, emit.intrinsic("llvm.copysign", zero, plain))
    return emit.select(emit.compare("fcmp oeq", b, zero), plain, whole)
