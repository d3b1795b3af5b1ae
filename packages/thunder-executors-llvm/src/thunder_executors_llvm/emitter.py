"""Writing LLVM's textual form: values with a dtype and a number of lanes, and the instructions between them."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from thunder_executors_llvm.target import Target
from thunder_ir import DType, dtypes

SCALARS = {
    dtypes.bool8: "i1", dtypes.uint8: "i8", dtypes.int8: "i8", dtypes.int16: "i16", dtypes.int32: "i32",
    dtypes.int64: "i64", dtypes.float16: "half", dtypes.bfloat16: "i16", dtypes.float32: "float",
    dtypes.float64: "double",
}  # fmt: skip
"""How values are kept. ``bfloat16`` is its bits: instructions that convert it lose denormals."""

RARELY = '!0 = !{!"branch_weights", i32 1, i32 1000}'
"""Metadata of jumps to what is executed rarely."""

MANGLED = {
    "i1": "i1",
    "i8": "i8",
    "i16": "i16",
    "i32": "i32",
    "i64": "i64",
    "half": "f16",
    "float": "f32",
    "double": "f64",
}


def type_of(scalar: str, lanes: int) -> str:
    """Return the type of a vector of scalars; of one lane, the scalar's."""
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


@dataclass(frozen=True, slots=True)
class Value:
    """A value in a register.

    Args:
        text: its name, or a constant.
        dtype: of each lane.
        lanes: 1 for what is the same along the innermost loop.
    """

    text: str
    dtype: DType
    lanes: int = 1

    @property
    def scalar(self) -> str:
        """The type of a lane."""
        return SCALARS[self.dtype]

    @property
    def type(self) -> str:
        """Its type."""
        return type_of(self.scalar, self.lanes)

    def __str__(self) -> str:
        return f"{self.type} {self.text}"


class Emitter:
    """Writes the lines of one function.

    Args:
        target: what for.
        lanes: of vectors.
    """

    def __init__(self, target: Target, lanes: int) -> None:
        self.target = target
        self.lanes = lanes
        self.lines: list[str] = []
        self.declarations: dict[str, str] = {}
        self.imports: dict[str, int] = {}
        self.rooms: list[str] = []
        self._count = 0

    def fresh(self) -> str:
        """Return a name that was not used."""
        self._count += 1
        return f"%v{self._count}"

    def line(self, text: str) -> None:
        """Write a line."""
        self.lines.append(f"  {text}")

    def label(self, name: str) -> None:
        """Begin a block."""
        self.lines.append(f"{name}:")

    def define(self, text: str) -> str:
        """Write an instruction with a result, and return the name of that."""
        name = self.fresh()
        self.line(f"{name} = {text}")
        return name

    def room(self, type: str) -> str:
        """Make room for a value that changes in a loop; it becomes a register."""
        name = self.fresh()
        self.rooms.append(f"  {name} = alloca {type}")
        return name

    def loop(self, begin: str, end: str, step: str, body: Callable[[str], None]) -> None:
        """Write a loop from ``begin`` to before ``end``, whose body is written by a function of the variable."""
        before, inside, latch, after = (self.fresh()[1:] for _ in range(4))
        variable, following = self.fresh(), self.fresh()
        self.line(f"br label %{before}")
        self.label(before)
        self.line(f"br i1 {self.define(f'icmp slt i64 {begin}, {end}')}, label %{inside}, label %{after}")
        self.label(inside)
        self.line(f"{variable} = phi i64 [ {begin}, %{before} ], [ {following}, %{latch} ]")
        body(self.opaque(variable))
        self.line(f"br label %{latch}")
        self.label(latch)
        self.line(f"{following} = add i64 {variable}, {step}")
        self.line(f"br i1 {self.define(f'icmp slt i64 {following}, {end}')}, label %{inside}, label %{after}")
        self.label(after)

    def opaque(self, number: str) -> str:
        """Write what gives a number and emits no instruction, so that LLVM does not know where it is from.

        Of a loop variable that is known, LLVM looks for the cheapest pointers to count on for all accesses of the loop.
        That finds no faster code, and where there are many takes more time than all else that LLVM does.
        """
        return self.define(f'call i64 asm "", "=r,0"(i64 {number})')

    def conditionally(self, condition: str, body: Callable[[], None], rarely: bool = False) -> None:
        """Write what is executed where a condition holds, which it does rarely if that is said."""
        inside, after = self.fresh()[1:], self.fresh()[1:]
        self.line(f"br i1 {condition}, label %{inside}, label %{after}{', !prof !0' if rarely else ''}")
        self.label(inside)
        body()
        self.line(f"br label %{after}")
        self.label(after)

    def value(self, text: str, dtype: DType, lanes: int) -> Value:
        """Write an instruction with a value as its result."""
        return Value(self.define(text), dtype, lanes)

    def constant(self, number: float, dtype: DType, lanes: int = 1) -> Value:
        """Return a number; of vectors, in all lanes."""
        text = literal(number, dtype)
        return Value(text if lanes == 1 else splat(SCALARS[dtype], text), dtype, lanes)

    def like(self, number: float, value: Value) -> Value:
        """Return a number of the same type as a value."""
        return self.constant(number, value.dtype, value.lanes)

    def widened(self, value: Value, lanes: int) -> Value:
        """Return a value in all lanes."""
        if value.lanes == lanes:
            return value
        text = broadcast(self, value.scalar, value.text, lanes)
        return Value(text, value.dtype, lanes)

    def alike(self, *values: Value) -> list[Value]:
        """Return values with the same number of lanes."""
        lanes = max([v.lanes for v in values])
        return [self.widened(v, lanes) for v in values]

    def binary(self, instruction: str, a: Value, b: Value) -> Value:
        """Write an instruction of two operands with a result like them."""
        a, b = self.alike(a, b)
        return self.value(f"{instruction} {a}, {b.text}", a.dtype, a.lanes)

    def compare(self, predicate: str, a: Value, b: Value) -> Value:
        """Write a comparison: ``"fcmp olt"``."""
        a, b = self.alike(a, b)
        return self.value(f"{predicate} {a}, {b.text}", dtypes.bool8, a.lanes)

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """Write a choice. It does no arithmetic: a NaN on the side not taken does not leak."""
        condition, a, b = self.alike(condition, a, b)
        return self.value(f"select {condition}, {a}, {b}", a.dtype, a.lanes)

    def replaced(self, value: Value, where: Value, other: Callable[[], Value]) -> Value:
        """Write a choice of something else for lanes that are rare: it is computed only where there are any."""
        value, where = self.alike(value, where)
        room = self.room(value.type)
        self.line(f"store {value}, ptr {room}")
        found = where.text
        if where.lanes > 1:
            found = self.define(f"icmp ne i{where.lanes} {self.define(f'bitcast {where} to i{where.lanes}')}, 0")

        def choose() -> None:
            self.line(f"store {self.select(where, other(), value)}, ptr {room}")

        self.conditionally(found, choose, rarely=True)
        return self.value(f"load {value.type}, ptr {room}", value.dtype, value.lanes)

    def convert(self, instruction: str, a: Value, dtype: DType) -> Value:
        """Write a conversion: ``"fpext"``."""
        return self.value(f"{instruction} {a} to {type_of(SCALARS[dtype], a.lanes)}", dtype, a.lanes)

    def intrinsic(self, name: str, *operands: Value, flags: str = "") -> Value:
        """Write a call of an intrinsic function whose result is like its operands: ``"llvm.fabs"``."""
        operands = tuple(self.alike(*operands))
        first = operands[0]
        full = f"{name}.{'' if first.lanes == 1 else f'v{first.lanes}'}{MANGLED[first.scalar]}"
        extra = f", {flags}" if flags else ""
        types = ", ".join([o.type for o in operands]) + (", i1" if flags else "")
        self.declare(f"{first.type} @{full}({types})")
        return self.value(
            f"call {first.type} @{full}({', '.join(map(str, operands))}{extra})", first.dtype, first.lanes
        )

    def declare(self, signature: str) -> None:
        """Declare a function that is called."""
        self.declarations[signature.partition("(")[0]] = f"declare {signature}"

    def external(self, name: str, address: int) -> None:
        """Note the address of a function that is called."""
        self.imports[name] = address


def literal(number: float, dtype: DType) -> str:
    """Return a number as LLVM writes it."""
    if dtype is dtypes.bool8:
        return "true" if number else "false"
    if dtype.is_integer:
        return str(int(number))
    if dtype is dtypes.bfloat16:
        return str(bfloat16_bits(float(number)))
    if dtype is dtypes.float16:
        return f"0xH{int.from_bytes(struct.pack('>e', _half(number)), 'big'):04X}"
    rounded = _single(number) if dtype is dtypes.float32 else float(number)
    return f"0x{int.from_bytes(struct.pack('>d', rounded), 'big'):016X}"


def _single(number: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return float("inf") if number > 0 else -float("inf")


def _half(number: float) -> float:
    try:
        struct.pack(">e", number)
    except OverflowError:
        return float("inf") if number > 0 else -float("inf")
    return float(number)


def bfloat16_bits(number: float) -> int:
    """Return the bits of the ``bfloat16`` nearest to a number."""
    if number != number:
        return 0x7FC0
    (bits,) = struct.unpack("I", struct.pack("f", _single(number)))
    return int((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16)


def splat(scalar: str, text: str) -> str:
    """Return a constant in all lanes of a vector."""
    return f"splat ({scalar} {text})"


def broadcast(emit: Emitter, scalar: str, text: str, lanes: int) -> str:
    """Write what puts a scalar into all lanes, and return the name of the vector."""
    if not text.startswith("%"):
        return splat(scalar, text)
    vector = type_of(scalar, lanes)
    first = emit.define(f"insertelement {vector} poison, {scalar} {text}, i64 0")
    return emit.define(f"shufflevector {vector} {first}, {vector} poison, <{lanes} x i32> zeroinitializer")


def part(emit: Emitter, a: Value, start: int, count: int) -> Value:
    """Write what takes some lanes, or return all; those beyond the vector are of no meaning."""
    if count == a.lanes:
        return a
    chosen = ", ".join([f"i32 {start + i if start + i < a.lanes else 0}" for i in range(count)])
    return emit.value(f"shufflevector {a}, {a.type} poison, <{count} x i32> <{chosen}>", a.dtype, count)


def joined(emit: Emitter, parts: list[Value]) -> Value:
    """Write what puts vectors behind each other; their number is a power of two."""
    while len(parts) > 1:
        lanes = parts[0].lanes
        chosen = ", ".join([f"i32 {i}" for i in range(2 * lanes)])
        parts = [
            emit.value(f"shufflevector {a}, {b}, <{2 * lanes} x i32> <{chosen}>", a.dtype, 2 * lanes)
            for a, b in zip(parts[::2], parts[1::2], strict=True)
        ]
    return parts[0]
