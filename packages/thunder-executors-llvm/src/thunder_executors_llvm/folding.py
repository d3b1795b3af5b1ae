"""Reductions and scans: accumulators in vectors, and the fixed tree that makes one value of their lanes.

A scan goes on from lane to lane where vectors run along it: in the order of its elements, and no faster than that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from thunder_executors_llvm.emitter import SCALARS, Emitter, Value, part, type_of
from thunder_executors_llvm.rows import ROWS, Row
from thunder_executors_llvm.target import Target
from thunder_ir import DType, dtypes
from thunder_loops import Reduce, Scan

STEP = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum"}
"""The operations on elements that reductions and scans repeat."""

LAST = 2**63 - 1
"""A place behind all others."""


def missing(operation: str, dtype: DType, target: Target) -> str | None:
    """Return why elements of a dtype cannot be reduced, or ``None``."""
    found = ROWS.find(STEP.get(operation, "gt"), dtype, target)
    return found if isinstance(found, str) else None


def begin(operation: str, dtype: DType) -> float:
    """Return what a reduction begins with: what changes no value."""
    if operation in ("sum", "prod"):
        return float(operation == "prod")
    low, high = _range(dtype)
    return low if operation in ("max", "argmax") else high


def _range(dtype: DType) -> tuple[float, float]:
    if dtype.is_floating:
        return -float("inf"), float("inf")
    if dtype is dtypes.bool8 or not dtype.signed:
        return 0, 2**dtype.bits - 1 if dtype.is_integer else 1
    return -(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1


@dataclass(frozen=True, slots=True)
class Accumulator:
    """What a reduction or a scan has found so far, in memory that becomes registers.

    Args:
        statement: the reduction or the scan.
        dtype: of its operand.
        slot: where the values are.
        places: where their places are, if these are wanted.
        lanes: how many values there are: 1 of a scan that goes on from lane to lane.
    """

    statement: Reduce | Scan
    dtype: DType
    slot: str
    places: str
    lanes: int

    @property
    def finds_place(self) -> bool:
        """Whether the result is a place."""
        return bool(self.places)

    def at(self, emit: Emitter, neighbour: str) -> Accumulator:
        """Return that of a vector of neighbours, of those which an array holds."""
        slot = emit.define(f"getelementptr {SCALARS[self.dtype]}, ptr {self.slot}, i64 {neighbour}")
        places = emit.define(f"getelementptr i64, ptr {self.places}, i64 {neighbour}") if self.finds_place else ""
        return replace(self, slot=slot, places=places)

    def start(self, emit: Emitter) -> None:
        """Write the value to begin with."""
        first = emit.constant(begin(self.statement.operation, self.dtype), self.dtype, self.lanes)
        emit.line(f"store {first}, ptr {self.slot}, align 4")
        if self.finds_place:
            emit.line(f"store {emit.constant(LAST, dtypes.int64, self.lanes)}, ptr {self.places}, align 4")

    def add(self, emit: Emitter, value: Value, place: Value | None, mask: str) -> None:
        """Write how values come in; those of lanes that the mask leaves out do not.

        Of more lanes than there are values here, the first ones come in first: as if they had come in by and by.
        """
        value = emit.widened(value, emit.lanes)
        place = emit.widened(place, emit.lanes) if place is not None else None
        chosen = Value(mask, dtypes.bool8, emit.lanes) if mask else None
        for start in range(0, emit.lanes, self.lanes):
            some = [part(emit, v, start, self.lanes) if v is not None else None for v in (value, place, chosen)]
            assert some[0] is not None, "that is always given"
            self._add(emit, some[0], some[1], some[2])

    def _add(self, emit: Emitter, value: Value, place: Value | None, chosen: Value | None) -> None:
        have = self._held(emit, self.slot, self.dtype)
        if place is None:
            made = step(emit, self.statement.operation, have, value)
            made = emit.select(chosen, made, have) if chosen is not None else made
            emit.line(f"store {made}, ptr {self.slot}, align 4")
            return
        at = self._held(emit, self.places, dtypes.int64)
        better = _better(emit, self.statement.operation, value, place, have, at)
        if chosen is not None:
            better = emit.binary("and", better, chosen)
        emit.line(f"store {emit.select(better, value, have)}, ptr {self.slot}, align 4")
        emit.line(f"store {emit.select(better, place, at)}, ptr {self.places}, align 4")

    def _held(self, emit: Emitter, slot: str, dtype: DType) -> Value:
        return emit.value(f"load {type_of(SCALARS[dtype], self.lanes)}, ptr {slot}, align 4", dtype, self.lanes)

    def scanned(self, emit: Emitter, value: Value, mask: str, reverse: bool) -> Value:
        """Write how the next values come in, and return what is found at each of them."""
        operation, value = self.statement.operation, emit.widened(value, emit.lanes)
        held = self._held(emit, self.slot, self.dtype)
        if self.lanes > 1:  # lanes are scans of their own
            held = made = step(emit, operation, held, value)
        else:
            if mask:  # what is there has to begin with nothing where the loop begins at its end
                neutral = emit.like(begin(operation, self.dtype), value)
                value = emit.select(Value(mask, dtypes.bool8, emit.lanes), value, neutral)
            made = Value("poison", self.dtype, emit.lanes)
            for lane in reversed(range(emit.lanes)) if reverse else range(emit.lanes):
                held = step(emit, operation, held, emit.value(f"extractelement {value}, i64 {lane}", self.dtype, 1))
                made = emit.value(f"insertelement {made}, {held}, i64 {lane}", self.dtype, emit.lanes)
        emit.line(f"store {held}, ptr {self.slot}, align 4")
        return made

    def result(self, emit: Emitter, of_lanes: bool) -> Value:
        """Write the result: one for each lane, or one of all lanes."""
        value = self._held(emit, self.slot, self.dtype)
        if not self.finds_place:
            return tree(emit, self.statement.operation, value) if of_lanes else value
        at = self._held(emit, self.places, dtypes.int64)
        while of_lanes and value.lanes > 1:
            (low, high), (low_at, high_at) = _halves(emit, value), _halves(emit, at)
            better = _better(emit, self.statement.operation, high, high_at, low, low_at)
            value, at = emit.select(better, high, low), emit.select(better, high_at, low_at)
        return at


def accumulator(emit: Emitter, statement: Reduce | Scan, dtype: DType, lanes: int, vectors: int = 1) -> Accumulator:
    """Make room for a reduction or a scan of values of a dtype, in as many vectors of so many lanes."""
    kinds = [SCALARS[dtype], *(["i64"] if statement.operation.startswith("arg") else [])]
    slots = [emit.room(f"[{vectors} x {type_of(kind, lanes)}], align 64") for kind in kinds]
    return Accumulator(statement, dtype, slots[0], slots[1] if len(slots) > 1 else "", lanes)


def step(emit: Emitter, operation: str, a: Value, b: Value) -> Value:
    """Write one step of a reduction."""
    row = ROWS.find(STEP[operation], a.dtype, emit.target)
    assert isinstance(row, Row), row
    return row.write(emit, a, b)


def tree(emit: Emitter, operation: str, value: Value) -> Value:
    """Write the reduction of the lanes of a vector, half by half."""
    while value.lanes > 1:
        low, high = _halves(emit, value)
        value = step(emit, operation, low, high)
    return value


def _halves(emit: Emitter, value: Value) -> tuple[Value, Value]:
    half = value.lanes // 2
    if half == 1:
        low, high = (emit.value(f"extractelement {value}, i64 {i}", value.dtype, 1) for i in range(2))
        return low, high
    parts = []
    for start in (0, half):
        chosen = ", ".join([f"i32 {start + i}" for i in range(half)])
        parts.append(
            emit.value(f"shufflevector {value}, {value.type} poison, <{half} x i32> <{chosen}>", value.dtype, half)
        )
    return parts[0], parts[1]


def _better(emit: Emitter, operation: str, value: Value, place: Value, have: Value, at: Value) -> Value:
    """Write whether a value wins over the one that was found: NaN over numbers, and the first of equal ones."""
    kind = "fcmp o" if value.dtype.is_floating else f"icmp {'s' if _signed(value.dtype) else 'u'}"
    wins = emit.compare(f"{kind}{'gt' if operation == 'argmax' else 'lt'}", value, have)
    equal = emit.compare("fcmp oeq" if value.dtype.is_floating else "icmp eq", value, have)
    if value.dtype.is_floating:
        is_nan, was_nan = emit.compare("fcmp uno", value, value), emit.compare("fcmp uno", have, have)
        wins = emit.binary("or", wins, emit.binary("and", is_nan, emit.binary("xor", was_nan, emit.like(1, was_nan))))
        equal = emit.binary("or", equal, emit.binary("and", is_nan, was_nan))
    return emit.binary("or", wins, emit.binary("and", equal, emit.compare("icmp slt", place, at)))


def _signed(dtype: DType) -> bool:
    return dtype.is_integer and dtype.signed
