"""Printing a loop plan as a function of LLVM. Nothing is decided here but how wide vectors are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from thunder_executors_llvm.conversion import convert, to_bfloat16
from thunder_executors_llvm.emitter import RARELY, Emitter, Value
from thunder_executors_llvm.folding import accumulator
from thunder_executors_llvm.memory import Memory
from thunder_executors_llvm.rounding import exact, rounded_at_once, with_short_nans
from thunder_executors_llvm.rows import ROWS, Row
from thunder_executors_llvm.target import Target
from thunder_ir import dtypes
from thunder_loops import (
    ACROSS,
    SHORT,
    Compute,
    Constant,
    Load,
    LoopPlan,
    Position,
    Reduce,
    Scan,
    Statement,
    Store,
    operation_cost,
    reads,
)


@dataclass(frozen=True, slots=True)
class Rendered:
    """A kernel in LLVM's text.

    Args:
        declarations: of what it calls.
        body: of the function.
        attributes: of functions, and what else stands at the end of a module.
        imports: addresses of the functions that it calls.
    """

    declarations: tuple[str, ...]
    body: str
    attributes: str
    imports: dict[str, int]

    @property
    def text(self) -> str:
        """A module with this kernel alone."""
        return module_of({NAME: self})


NAME = "kernel"


def module_of(kernels: Mapping[str, Rendered]) -> str:
    """Return the text of a module with kernels for one target, by their names."""
    declarations = dict.fromkeys([line for kernel in kernels.values() for line in kernel.declarations])
    functions = [
        f"define void @{name}(ptr noalias %pointers, ptr noalias %numbers, i64 %begin, i64 %end) #0 {{\n"
        f"{kernel.body}\n}}\n"
        for name, kernel in kernels.items()
    ]
    attributes = dict.fromkeys([kernel.attributes for kernel in kernels.values()])
    return "\n".join([*declarations, "", *functions, *attributes])


def render(plan: LoopPlan, target: Target) -> Rendered:
    """Print a plan.

    The function takes pointers to an array of the buffers' addresses and to an array of numbers: the sizes of the
    loops, the elements in a block, and the offsets and steps of the accesses; and the tasks from which to which it
    shall go.
    """
    emit = Emitter(target, lanes_of(plan, target) * registers_of(plan))
    _Kernel(plan, emit).write()
    body = "\n".join(["entry:", *emit.rooms, *emit.lines])
    width = f'"prefer-vector-width"="{target.bits}" "min-legal-vector-width"="{target.bits}"'
    attributes = (
        f'attributes #0 = {{ nounwind "stackrealign" {width} }}\n'
        f"attributes #1 = {{ nounwind willreturn memory(none) }}\n{RARELY}\n"
    )
    return Rendered(tuple(emit.declarations.values()), body, attributes, emit.imports)


LONG, LONG_BEFORE_SUMS = 15, 20
"""Additions one after the other from which on the next elements come too late for the processor to fill its pauses;
there are fewer pauses where elements are added up."""

SIDE_BY_SIDE = 4
"""Registers of elements that stand side by side then: as many chains of instructions that wait for no other one."""

MOST = 1024
"""Statements, counted once for each register, beyond which compiling takes longer than is won."""


def lanes_of(plan: LoopPlan, target: Target) -> int:
    """Return how many elements an accumulator has: a register of what is computed, be it narrower in memory."""
    floats = {s.dtype for s in plan.statements if isinstance(s, (Compute, Load)) and s.dtype.is_floating}
    return target.lanes // 2 if floats == {dtypes.float64} else target.lanes


def registers_of(plan: LoopPlan) -> int:
    """Return how many registers of elements a vector has: several where much is computed one after the other."""
    scans, reduces = (any([isinstance(s, kind) for s in plan.statements]) for kind in (Scan, Reduce))
    stepping = any([a is not None and a.inner in SHORT for a in plan.accesses])  # whose reads take the time
    if scans or stepping or _longest(plan.statements) < (LONG_BEFORE_SUMS if reduces else LONG):
        return 1
    return next((n for n in (SIDE_BY_SIDE, SIDE_BY_SIDE // 2) if n * len(plan.statements) <= MOST), 1)


def _longest(statements: Sequence[Statement]) -> float:
    """Return what the longest chain of operations costs, in additions."""
    found: dict[str, float] = {}
    for statement in statements:
        if not isinstance(statement, Store):
            before = max([found[name] for name in reads(statement)], default=0.0)
            own = operation_cost(statement.operation) if isinstance(statement, Compute) else 0.0
            found[statement.name] = before + own
    return max(found.values(), default=0.0)


class _Kernel:
    """The loops over tasks, and the statements of one."""

    def __init__(self, plan: LoopPlan, emit: Emitter) -> None:
        self.plan = plan
        self.emit = emit
        self.count = 0
        self.values: dict[str, Value] = {}
        self.statements = list(enumerate(plan.statements))
        self.dtypes = {s.name: s.dtype for s in plan.statements if not isinstance(s, Store)}
        self.short = with_short_nans(plan.statements)
        self.exact = exact(plan.statements)
        self.brief = rounded_at_once(plan.statements)
        self.sizes = [self.number() for _ in range(plan.outer + (not plan.by_rows) + plan.reduced)]
        self.block = self.number()
        self.memory = Memory(plan, emit, self.number)
        self.accumulators = {
            s.name: accumulator(
                emit,
                s,
                self.dtypes[s.operand],
                emit.lanes if not plan.by_rows else 1 if isinstance(s, Scan) else lanes_of(plan, emit.target),
                -(-ACROSS // emit.lanes) if plan.across else 1,
            )
            for s in plan.statements
            if isinstance(s, (Reduce, Scan))
        }

    @property
    def reduced(self) -> list[str]:
        """The sizes of the reduced loops."""
        return self.sizes[len(self.sizes) - self.plan.reduced :]

    def number(self) -> str:
        """Write a read of the next number of the call."""
        place = self.emit.define(f"getelementptr i64, ptr %numbers, i64 {self.count}")
        self.count += 1
        return self.emit.define(f"load i64, ptr {place}")

    def write(self) -> None:
        """Write the loop over tasks; the variables of the outer loops count on from one to the next."""
        emit = self.emit
        counts = self.sizes[: self.plan.outer]
        if not self.plan.by_rows:
            rounded = emit.define(f"add i64 {self.sizes[self.plan.outer]}, {emit.define(f'sub i64 {self.block}, 1')}")
            counts = [*counts, emit.define(f"udiv i64 {rounded}, {self.block}")]
        slots = [emit.room("i64") for _ in counts]
        rest = "%begin"
        for slot, size in zip(reversed(slots), reversed(counts), strict=True):
            emit.line(f"store i64 {emit.define(f'urem i64 {rest}, {size}')}, ptr {slot}")
            rest = emit.define(f"udiv i64 {rest}, {size}")
        emit.loop("%begin", "%end", "1", lambda _: self.task(slots, counts))
        emit.line("ret void")

    def task(self, slots: list[str], counts: list[str]) -> None:
        emit = self.emit
        places = [emit.define(f"load i64, ptr {slot}") for slot in slots]
        self.memory.enter(places[: self.plan.outer])
        if self.plan.by_rows:
            self.cell("", "")
        else:
            low = emit.define(f"mul i64 {places[-1]}, {self.block}")
            end = emit.define(f"add i64 {low}, {self.block}")
            emit.declare("i64 @llvm.smin.i64(i64, i64)")
            high = emit.define(f"call i64 @llvm.smin.i64(i64 {end}, i64 {self.sizes[self.plan.outer]})")
            for position, statement in self.statements:
                if self.is_common(position, statement):
                    self.values[statement.name] = self.statement(position, statement, "", "")  # type: ignore[union-attr]
            if self.plan.across:
                self.rows_across(low, high)
            else:
                self.vectors(low, high, self.cell)
        carry = "true"
        for slot, place, size in reversed(list(zip(slots, places, counts, strict=True))):
            moved = emit.define(f"add i64 {place}, {emit.define(f'zext i1 {carry} to i64')}")
            carry = emit.define(f"icmp eq i64 {moved}, {size}")
            emit.line(f"store i64 {emit.define(f'select i1 {carry}, i64 0, i64 {moved}')}, ptr {slot}")

    def rows_across(self, low: str, high: str) -> None:
        """Write the reduced loops outside of the one over neighbours, and what follows from what they find."""
        emit = self.emit
        whole = self.accumulators

        def with_accumulators(body: Callable[[str, str], None]) -> Callable[[str, str], None]:
            def inside(index: str, mask: str) -> None:
                neighbour = emit.define(f"sub i64 {index}, {low}")
                self.accumulators = {name: one.at(emit, neighbour) for name, one in whole.items()}
                body(index, mask)

            return inside

        def start(index: str, mask: str) -> None:
            for one in self.accumulators.values():
                one.start(emit)

        due = self.due(0)
        of_rows = self.needed([s for _, s in due]) - self.plan.varies

        def add(index: str, mask: str) -> None:
            self.cell_values(0, index, mask, stores=False)
            self.body(due, of_rows)(index, mask)

        def row() -> None:
            for position, statement in self.statements:
                if not isinstance(statement, (Store, Reduce)) and statement.name in of_rows:
                    self.values[statement.name] = self.statement(position, statement, "", "")
            self.vectors(low, high, with_accumulators(add))

        def finish(index: str, mask: str) -> None:
            for name, one in self.accumulators.items():
                if isinstance(one.statement, Reduce):
                    self.values[name] = one.result(emit, False)
            for stage in range(max(self.plan.stages) + 1):
                self.cell_values(stage, index, mask)

        if whole:
            self.vectors(low, high, with_accumulators(start))
        self.loops(self.reduced, row)
        self.memory.variables = []
        if whole:  # there are none in a nest that adds to memory, and nothing is left to do
            self.vectors(low, high, with_accumulators(finish))
        self.accumulators = whole

    def is_common(self, position: int, statement: Statement) -> bool:
        """Whether a statement is computed once for all neighbours of a task."""
        if isinstance(statement, (Store, Reduce)) or self.plan.by_rows:
            return False
        return not {statement.name} & (self.plan.varies | self.plan.inside) and self.plan.stages[position] == 0

    def vectors(self, low: str, high: str, body: Callable[[str, str], None], backwards: bool = False) -> None:
        """Write a loop in whole vectors, and what is left with a mask; backwards, that comes first."""
        emit = self.emit
        whole = high
        if not self.plan.whole:
            length = emit.define(f"and i64 {emit.define(f'sub i64 {high}, {low}')}, {-emit.lanes}")
            whole = emit.define(f"add i64 {low}, {length}")
        if not backwards:
            emit.loop(low, whole, str(emit.lanes), lambda index: body(index, ""))
        if not self.plan.whole:
            left = emit.define(f"sub i64 {high}, {whole}")
            emit.conditionally(emit.define(f"icmp sgt i64 {left}, 0"), lambda: body(whole, self.mask(left)))
        if backwards:
            last = emit.define(f"sub i64 {emit.define(f'add i64 {low}, {whole}')}, {emit.lanes}")
            emit.loop(low, whole, str(emit.lanes), lambda index: body(emit.define(f"sub i64 {last}, {index}"), ""))

    def mask(self, left: str) -> str:
        """Write the mask of the lanes below ``left``."""
        emit, lanes = self.emit, self.emit.lanes
        every = f"<{', '.join([f'i64 {i}' for i in range(lanes)])}>"
        return emit.define(f"icmp slt <{lanes} x i64> {every}, {emit.widened(Value(left, dtypes.int64), lanes).text}")

    def cell(self, index: str, mask: str) -> None:
        """Write the statements of a cell, or of a vector of them, and the sweeps between."""
        for stage in range(max(self.plan.stages, default=0) + 1):
            self.cell_values(stage, index, mask)
            self.sweep(stage, index, mask)

    def cell_values(self, stage: int, index: str, mask: str, stores: bool = True) -> None:
        """Write the statements of a stage that do not differ along reduced loops."""
        for position, statement in self.statements:
            if self.plan.stages[position] != stage or isinstance(statement, Reduce):
                continue
            if isinstance(statement, Store):
                if stores and not self.plan.swept[position]:
                    self.memory.store(position, self.values[statement.value], index, mask, self.values)
            elif statement.name not in self.plan.inside and not self.is_common(position, statement):
                self.values[statement.name] = self.statement(position, statement, index, mask)

    def sweep(self, stage: int, index: str, mask: str) -> None:
        """Write the loops over what is reduced, with all that is due in a stage."""
        due = self.due(stage)
        if not due:
            return
        found = [self.accumulators[s.name] for _, s in due if isinstance(s, Reduce)]
        needed = self.needed([s for _, s in due], self.waiting(stage))
        for one in (*found, *[self.accumulators[name] for name in self.accumulators if name in needed]):
            one.start(self.emit)
        self.loops(self.reduced, lambda: self.innermost(index, mask, self.body(due, stage=stage)))
        self.memory.variables = []
        for one in found:
            self.values[one.statement.name] = one.result(self.emit, self.plan.by_rows)

    def due(self, stage: int) -> list[tuple[int, Statement]]:
        """Return the reductions of a stage, and the writes of what differs along reduced loops."""
        return [(p, s) for p, s in self.statements if self.plan.stages[p] == stage and self.is_due(p, s)]

    def waiting(self, stage: int) -> dict[str, int]:
        """Return the values that an earlier sweep has left, each with the position of the write where they are."""
        return {h.value: h.store for h in self.plan.held if h.stage < stage}

    def body(
        self, due: list[tuple[int, Statement]], known: frozenset[str] | set[str] = frozenset(), stage: int = 0
    ) -> Callable[[str, str], None]:
        """Return what writes the statements inside of reduced loops that are due, and what they need but is known."""
        waiting = self.waiting(stage)
        needed = self.needed([s for _, s in due], waiting) - known

        def write(at: str, lanes: str) -> None:
            for name in [n for n in waiting if n in needed]:  # before anything is written where they are
                self.values[name] = self.memory.neighbours(waiting[name], self.dtypes[name], at, lanes, self.values)
            for position, statement in self.statements:
                if isinstance(statement, Store) and (position, statement) in due:
                    self.memory.store(position, self.values[statement.value], at, lanes, self.values)
                elif isinstance(statement, Reduce) and (position, statement) in due:
                    one = self.accumulators[statement.name]
                    place = self.memory.position(position, at, self.values) if one.finds_place else None
                    one.add(self.emit, self.values[statement.operand], place, lanes)
                elif not isinstance(statement, Store) and statement.name in needed and statement.name not in waiting:
                    self.values[statement.name] = self.statement(position, statement, at, lanes)
            for hold in self.plan.held:
                if hold.stage == stage:
                    self.memory.store(hold.store, self.values[hold.value], at, lanes, self.values)

        return write

    def is_due(self, position: int, statement: Statement) -> bool:
        """Whether a statement needs a sweep."""
        return self.plan.swept[position] or isinstance(statement, Reduce)

    def loops(self, sizes: list[str], body: Callable[[], None]) -> None:
        """Write the reduced loops that do not run in vectors."""
        if len(sizes) == (1 if self.plan.by_rows else 0):
            body()
            return

        def inside(variable: str) -> None:
            if self.plan.backwards:  # then this loop is the only one
                variable = self.emit.define(f"sub i64 {self.emit.define(f'sub i64 {sizes[0]}, 1')}, {variable}")
            self.memory.variables = [*self.memory.variables, variable]
            had = self.memory.variables
            self.loops(sizes[1:], body)
            self.memory.variables = had[:-1]

        self.emit.loop("0", sizes[0], "1", inside)

    def innermost(self, index: str, mask: str, body: Callable[[str, str], None]) -> None:
        if self.plan.by_rows:
            self.vectors("0", self.reduced[-1], body, self.plan.backwards)
        else:
            body(index, mask)

    def needed(self, wanted: list[Statement], waiting: Collection[str] = ()) -> set[str]:
        """Return the values that differ along reduced loops and that statements need; waiting ones need no others."""
        names = {name for s in wanted for name in reads(s)}
        for position, statement in self.statements:
            if statement in wanted and (access := self.plan.accesses[position]) is not None:
                names.update(access.terms)
        for position, statement in reversed(self.statements):
            if not isinstance(statement, (Store, Reduce)) and statement.name in names and statement.name not in waiting:
                access = self.plan.accesses[position]
                names.update(reads(statement), access.terms if access is not None else ())
        return names & self.plan.inside

    def statement(self, position: int, statement: Statement, index: str, mask: str) -> Value:
        """Write a statement with a value."""
        emit = self.emit
        if isinstance(statement, Load):
            return self.memory.load(position, statement, index, mask, self.values)
        if isinstance(statement, Position):
            return self.memory.position(position, index, self.values, statement.dtype)
        if isinstance(statement, Constant):
            return emit.constant(statement.value, statement.dtype)
        if isinstance(statement, Scan):
            one = self.accumulators[statement.name]
            return one.scanned(emit, self.values[statement.operand], mask, statement.reverse)
        assert isinstance(statement, Compute), "stores and reductions are written elsewhere"
        operands = [self.values[name] for name in statement.operands]
        if statement.operation == "to":
            (name,) = statement.operands
            if statement.dtype is dtypes.bfloat16 and self.dtypes[name] is dtypes.float32:
                return to_bfloat16(emit, operands[0], name in self.exact, name in self.short)
            return convert(emit, operands[0], statement.dtype)
        brief = ROWS.find(statement.operation, dtypes.bfloat16, emit.target) if statement.name in self.brief else ""
        row = brief if isinstance(brief, Row) else ROWS.find(statement.operation, operands[-1].dtype, emit.target)
        assert isinstance(row, Row), row
        return row.write(emit, *operands)
