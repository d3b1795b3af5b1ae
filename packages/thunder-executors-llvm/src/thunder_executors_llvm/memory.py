"""Reading and writing memory: neighbours as a vector, others lane by lane, and no more than there is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from thunder_executors_llvm.conversion import convert
from thunder_executors_llvm.emitter import MANGLED, SCALARS, Emitter, Value, splat, type_of
from thunder_ir import DType, dtypes
from thunder_loops import OPEN, SHORT, Access, Add, Load, LoopPlan, Store

ALL = splat("i1", "true")
"""The mask of all lanes."""


@dataclass(slots=True)
class _Place:
    """The names of what an access needs.

    Args:
        pointer: of the buffer; ``""``` for a position.
        offset, outer, along, inner, terms: numbers of the call; the offset is from the access that this goes beside.
        base: where the access is at the begin of the innermost loop, in elements.
    """

    pointer: str
    offset: str
    outer: list[str]
    along: list[str]
    inner: str
    terms: list[str]
    base: str = field(default="")


class Memory:
    """The accesses of one kernel.

    Args:
        plan: of the kernel.
        emit: where they are written.
        number: writes a read of the next number of the call.
    """

    def __init__(self, plan: LoopPlan, emit: Emitter, number: Callable[[], str]) -> None:
        self.plan = plan
        self.emit = emit
        pointers: dict[str, str] = {}
        self.places: dict[int, _Place] = {}
        self.variables: list[str] = []
        for position, (statement, access) in enumerate(zip(plan.statements, plan.accesses, strict=True)):
            if access is None:
                continue
            pointer = ""
            if isinstance(statement, (Load, Store)):
                if statement.buffer not in pointers:
                    place = emit.define(f"getelementptr ptr, ptr %pointers, i64 {statement.buffer}")
                    pointers[statement.buffer] = emit.define(f"load ptr, ptr {place}")
                pointer = pointers[statement.buffer]
            offset = number()
            if access.beside >= 0:
                self.places[position] = replace(self.places[access.beside], offset=offset)
                continue
            outer = [number() for moves in access.outer if moves]
            along = [number() for moves in access.along if moves]
            inner = number() if access.inner == OPEN else str(access.inner)
            self.places[position] = _Place(pointer, offset, outer, along, inner, [number() for _ in access.terms])

    def access(self, position: int) -> Access:
        """Return how an access steps."""
        found = self.plan.accesses[position]
        assert found is not None, "asked of accesses alone"
        return found

    def enter(self, variables: list[str]) -> None:
        """Write where each access is in a task, given the variables of the outer loops."""
        for position, place in self.places.items():
            access = self.access(position)
            if access.beside < 0:
                place.base = self._moved(place.offset, access.outer, place.outer, variables)

    def _moved(self, base: str, moves: tuple[bool, ...], steps: list[str], variables: list[str]) -> str:
        """Write where an access is after the steps along some loops."""
        rest = iter(steps)
        for moving, variable in zip(moves, variables, strict=False):
            if moving:
                base = self.emit.define(f"add i64 {base}, {self.emit.define(f'mul i64 {variable}, {next(rest)}')}")
        return base

    def _first(self, position: int, index: str, values: Mapping[str, Value]) -> str:
        """Write where an access is in the first lane, terms that differ between lanes left out.

        The variables of reduced loops are those that ``variables`` holds: none outside of them.
        """
        place, access, emit = self.places[position], self.access(position), self.emit
        if access.beside >= 0:
            return emit.define(f"add i64 {self._first(access.beside, index, values)}, {place.offset}")
        base = self._moved(place.base, access.along, place.along, self.variables)
        for name, count in zip(access.terms, place.terms, strict=True):
            if values[name].lanes == 1:
                term = convert(emit, values[name], dtypes.int64)
                base = emit.define(f"add i64 {base}, {emit.define(f'mul i64 {term.text}, {count}')}")
        if not access.inner or not index:
            return base
        moved = index if access.inner == 1 else emit.define(f"mul i64 {index}, {place.inner}")
        return emit.define(f"add i64 {base}, {moved}")

    def position(self, position: int, index: str, values: Mapping[str, Value], dtype: DType = dtypes.int64) -> Value:
        """Write where an access is, counted in a dtype of integers: one number, or one in each lane."""
        place, access, emit = self.places[position], self.access(position), self.emit
        found = convert(emit, Value(self._first(position, index, values), dtypes.int64), dtype)
        if access.inner and index:
            every = Value(f"<{', '.join([f'{SCALARS[dtype]} {i}' for i in range(emit.lanes)])}>", dtype, emit.lanes)
            if access.inner > 1:
                every = emit.binary("mul", every, convert(emit, Value(place.inner, dtypes.int64), dtype))
            found = emit.binary("add", found, every)
        for name, count in zip(access.terms, place.terms, strict=True):
            if values[name].lanes == 1:
                continue
            factor = convert(emit, Value(count, dtypes.int64), dtype)
            found = emit.binary("add", found, emit.binary("mul", convert(emit, values[name], dtype), factor))
        return found

    def load(self, position: int, statement: Load, index: str, mask: str, values: Mapping[str, Value]) -> Value:
        """Write a read."""
        when = values[statement.when] if statement.when else None
        return self._read(position, statement.dtype, index, mask, when, values)

    def _read(
        self, position: int, dtype: DType, index: str, mask: str, when: Value | None, values: Mapping[str, Value]
    ) -> Value:
        """Write a read from where an access is, be it a read or a write."""
        emit, access = self.emit, self.access(position)
        if access.inner == 1 and index and not self._scattered(access, values):
            return self.neighbours(position, dtype, index, _both(emit, mask, when), values)
        if access.inner in SHORT and index and not self._scattered(access, values):
            return self._stepping(position, dtype, index, _both(emit, mask, when), values)
        where = self.position(position, index, values)
        lanes = max(where.lanes, when.lanes if when is not None else 1)
        if lanes == 1:
            return self._one(position, dtype, where, when)
        where = emit.widened(where, lanes)
        pointers = self._pointers(position, dtype, where)
        chosen = _both(emit, mask, when) or ALL
        kept = in_memory(dtype)
        vector, name = type_of(kept, lanes), f"llvm.masked.gather.v{lanes}{MANGLED[kept]}.v{lanes}p0"
        emit.declare(f"{vector} @{name}(<{lanes} x ptr>, i32, <{lanes} x i1>, {vector})")
        read = emit.define(
            f"call {vector} @{name}(<{lanes} x ptr> {pointers}, i32 {dtype.bytes}, <{lanes} x i1> {chosen}, "
            f"{vector} zeroinitializer)"
        )
        return self._loaded(read, dtype, lanes)

    def _one(self, position: int, dtype: DType, where: Value, when: Value | None) -> Value:
        emit, kept = self.emit, in_memory(dtype)
        if when is None:
            place = emit.define(f"getelementptr {kept}, ptr {self.places[position].pointer}, i64 {where.text}")
            return self._loaded(emit.define(f"load {kept}, ptr {place}, align {dtype.bytes}"), dtype, 1)
        place = emit.define(f"getelementptr {kept}, ptr {self.places[position].pointer}, i64 {where.text}")
        vector, name = f"<1 x {kept}>", f"llvm.masked.load.v1{MANGLED[kept]}.p0"
        emit.declare(f"{vector} @{name}(ptr, i32, <1 x i1>, {vector})")
        mask = emit.define(f"insertelement <1 x i1> poison, {when}, i64 0")
        read = emit.define(
            f"call {vector} @{name}(ptr {place}, i32 {dtype.bytes}, <1 x i1> {mask}, {vector} zeroinitializer)"
        )
        return self._loaded(emit.define(f"extractelement {vector} {read}, i64 0"), dtype, 1)

    def _scattered(self, access: Access, values: Mapping[str, Value]) -> bool:
        """Whether a value that differs between lanes says where an access goes."""
        return any([values[name].lanes > 1 for name in access.terms])

    def neighbours(self, position: int, dtype: DType, index: str, mask: str, values: Mapping[str, Value]) -> Value:
        """Write a read of a vector from where an access is, be it a read or a write."""
        emit, kept = self.emit, in_memory(dtype)
        lanes, vector = emit.lanes, type_of(kept, emit.lanes)
        first = self._first(position, index, values)
        place = emit.define(f"getelementptr {kept}, ptr {self.places[position].pointer}, i64 {first}")
        if not mask:
            return self._loaded(emit.define(f"load {vector}, ptr {place}, align {dtype.bytes}"), dtype, lanes)
        return self._loaded(self._masked(place, dtype, mask), dtype, lanes)

    def _stepping(self, position: int, dtype: DType, index: str, mask: str, values: Mapping[str, Value]) -> Value:
        """Write a read of every second, third or fourth element: of vectors of neighbours, of which these are chosen.

        The last vector ends with the last element that is chosen: beyond that there may be no memory.
        """
        emit, kept, step = self.emit, in_memory(dtype), self.access(position).inner
        lanes, vector = emit.lanes, type_of(kept, emit.lanes)
        base = self._first(position, index, values)
        found = ""
        for number in range(step):
            start = number * lanes if number < step - 1 else (step - 1) * (lanes - 1)
            at = emit.define(f"add i64 {base}, {start}")
            place = emit.define(f"getelementptr {kept}, ptr {self.places[position].pointer}, i64 {at}")
            if mask:
                wanted = [(start + i) // step if (start + i) % step == 0 else lanes for i in range(lanes)]
                read = self._masked(place, dtype, _shuffled(emit, f"<{lanes} x i1>", mask, "zeroinitializer", wanted))
            else:
                read = emit.define(f"load {vector}, ptr {place}, align {dtype.bytes}")
            if not found:
                found = read
                continue
            have = [i * step if number == 1 else i for i in range(lanes)]  # the first read is still as it lies
            there = -(-start // step)
            found = _shuffled(
                emit,
                vector,
                found,
                read,
                [have[i] if i < there else lanes + min(i * step - start, lanes - 1) for i in range(lanes)],
            )
        return self._loaded(found, dtype, lanes)

    def _masked(self, place: str, dtype: DType, mask: str) -> str:
        """Write a read of the neighbours from a place on for which a mask holds; others are 0."""
        emit, lanes, kept = self.emit, self.emit.lanes, in_memory(dtype)
        vector, name = type_of(kept, lanes), f"llvm.masked.load.v{lanes}{MANGLED[kept]}.p0"
        emit.declare(f"{vector} @{name}(ptr, i32, <{lanes} x i1>, {vector})")
        return emit.define(
            f"call {vector} @{name}(ptr {place}, i32 {dtype.bytes}, <{lanes} x i1> {mask}, {vector} zeroinitializer)"
        )

    def store(self, position: int, value: Value, index: str, mask: str, values: Mapping[str, Value]) -> None:
        """Write a write."""
        statement = self.plan.statements[position]
        if isinstance(statement, Add):
            when = values[statement.when] if statement.when else None
            mask = _both(self.emit, mask, when)
            value = _sum(self.emit, self._read(position, value.dtype, index, mask, None, values), value)
        emit, access = self.emit, self.access(position)
        kept, dtype = in_memory(value.dtype), value.dtype
        if not index:  # of a cell that is alone
            text = emit.define(f"zext {value} to {kept}") if dtype is dtypes.bool8 else value.text
            where = self.position(position, "", values)
            place = emit.define(f"getelementptr {kept}, ptr {self.places[position].pointer}, i64 {where.text}")
            emit.line(f"store {kept} {text}, ptr {place}, align {dtype.bytes}")
            return
        lanes = emit.lanes
        value = emit.widened(value, lanes)
        vector = type_of(kept, lanes)
        text = emit.define(f"zext {value} to {vector}") if dtype is dtypes.bool8 else value.text
        if access.inner == 1 and not self._scattered(access, values):
            first = self._first(position, index, values)
            place = emit.define(f"getelementptr {kept}, ptr {self.places[position].pointer}, i64 {first}")
            if not mask:
                emit.line(f"store {vector} {text}, ptr {place}, align {dtype.bytes}")
                return
            name = f"llvm.masked.store.v{lanes}{MANGLED[kept]}.p0"
            emit.declare(f"void @{name}({vector}, ptr, i32, <{lanes} x i1>)")
            emit.line(f"call void @{name}({vector} {text}, ptr {place}, i32 {dtype.bytes}, <{lanes} x i1> {mask})")
            return
        where = emit.widened(self.position(position, index, values), lanes)
        pointers = self._pointers(position, dtype, where)
        name = f"llvm.masked.scatter.v{lanes}{MANGLED[kept]}.v{lanes}p0"
        emit.declare(f"void @{name}({vector}, <{lanes} x ptr>, i32, <{lanes} x i1>)")
        emit.line(
            f"call void @{name}({vector} {text}, <{lanes} x ptr> {pointers}, i32 {dtype.bytes}, "
            f"<{lanes} x i1> {mask or ALL})"
        )

    def _pointers(self, position: int, dtype: DType, where: Value) -> str:
        return self.emit.define(
            f"getelementptr {in_memory(dtype)}, ptr {self.places[position].pointer}, {where.type} {where.text}"
        )

    def _loaded(self, text: str, dtype: DType, lanes: int) -> Value:
        if dtype is not dtypes.bool8:
            return Value(text, dtype, lanes)
        byte = Value(text, dtypes.uint8, lanes)
        return self.emit.compare("icmp ne", byte, self.emit.like(0, byte))


def _sum(emit: Emitter, a: Value, b: Value) -> Value:
    """Write an addition, in the dtype in which one is computed."""
    wide = dtypes.float32 if a.dtype.bits < 32 else a.dtype
    found = emit.binary("fadd", convert(emit, a, wide), convert(emit, b, wide))
    return convert(emit, found, a.dtype)


def in_memory(dtype: DType) -> str:
    """Return the type of an element in memory."""
    return "i8" if dtype is dtypes.bool8 else SCALARS[dtype]


def _shuffled(emit: Emitter, vector: str, a: str, b: str, chosen: Sequence[int]) -> str:
    """Write what chooses lanes of two vectors of one type: those of the second one are counted behind the first's."""
    lanes = ", ".join([f"i32 {i}" for i in chosen])
    return emit.define(f"shufflevector {vector} {a}, {vector} {b}, <{len(chosen)} x i32> <{lanes}>")


def _both(emit: Emitter, mask: str, when: Value | None) -> str:
    """Write the lanes that are there and wanted; ``""``` for all."""
    if when is None:
        return mask
    wanted = emit.widened(when, emit.lanes)
    return emit.define(f"and {wanted.type} {wanted.text}, {mask}") if mask else wanted.text
