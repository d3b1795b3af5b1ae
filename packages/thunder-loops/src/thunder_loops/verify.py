"""Checking loop programs: what a renderer may rely on."""

from __future__ import annotations

from thunder_ir import VerificationError, dtypes
from thunder_loops.index import Index, bounds
from thunder_loops.nest import Add, Buffer, Compute, Load, LoopProgram, Nest, Position, Reduce, Scan, Statement, Store
from thunder_loops.operations import OPERATIONS, REDUCTIONS, SCANS


def verify(program: LoopProgram) -> None:
    """Check that values and buffers are there before they are read, and that no access leaves its buffer.

    Accesses are checked as far as sizes are known; those whose index depends on values, or which have a condition, are
    not.

    Raises:
        VerificationError: something is not so; the message names the statement.
    """
    written = {b.name for b in program.inputs}
    for nest in program.nests:
        _Check(program, nest, written).run()
        written |= {s.buffer for s in nest.stores}
    for buffer in program.outputs:
        if buffer.name not in written:
            raise VerificationError(f"{program.name} never writes its output {buffer.name}")


class _Check:
    def __init__(self, program: LoopProgram, nest: Nest, written: set[str]) -> None:
        self.program = program
        self.buffers = program.buffers
        self.written = written
        self.nest = nest
        self.axes = {a.name for a in nest.axes}
        self.extents = {a.name: a.size for a in nest.axes if isinstance(a.size, int)}
        self.values: dict[str, Statement] = {}

    def run(self) -> None:
        for statement in self.nest.statements:
            self.check(statement)
            if not isinstance(statement, Store):
                if statement.name in self.values or statement.name in self.axes:
                    self.fail(statement, f"defines {statement.name} again")
                self.values[statement.name] = statement

    def check(self, statement: Statement) -> None:
        if isinstance(statement, Load):
            if statement.buffer not in self.written:
                self.fail(statement, f"reads {statement.buffer}, which nothing has written")
            self.access(statement, self.buffers[statement.buffer], statement.index, bool(statement.when))
            self.known(statement, *([statement.when] if statement.when else []))
        elif isinstance(statement, Store):
            self.known(statement, statement.value)
            self.access(statement, self.buffers[statement.buffer], statement.index, False)
            have = self.values[statement.value].dtype  # type: ignore[union-attr]
            if have is not self.buffers[statement.buffer].dtype:
                self.fail(statement, f"writes {have} to {self.buffers[statement.buffer].type_string}")
            if isinstance(statement, Add):
                self.addition(statement)
        elif isinstance(statement, Position):
            self.index(statement, statement.index)
        elif isinstance(statement, Compute):
            self.known(statement, *statement.operands)
            if statement.operation != "to" and statement.operation not in OPERATIONS:
                self.fail(statement, f"has no operation {statement.operation}")
        elif isinstance(statement, Reduce):
            self.known(statement, statement.operand)
            if statement.operation not in REDUCTIONS or not self.axes.issuperset(statement.axes):
                self.fail(statement, "is no reduction over axes of the nest")
        elif isinstance(statement, Scan):
            self.known(statement, statement.operand)
            if statement.operation not in SCANS or self.nest.reduced != self.axes & {statement.axis}:
                self.fail(statement, "is no scan along the one axis that the nest walks along")
            if any([s.reverse is not statement.reverse for s in self.nest.scans]):
                self.fail(statement, "does not run in the direction of the nest's other scans")

    def addition(self, statement: Add) -> None:
        self.known(statement, *([statement.when] if statement.when else []))
        if statement.buffer not in self.written:
            self.fail(statement, f"adds to {statement.buffer}, which nothing has written")
        if not self.axes.issuperset(statement.over) or statement.dtype is not self.buffers[statement.buffer].dtype:
            self.fail(statement, "is no addition over axes of the nest in the dtype of its buffer")
        if len([s for s in self.nest.statements if isinstance(s, (Store, Reduce, Scan))]) > 1:
            self.fail(statement, "is not alone in its nest with what it reads")
        if any([load.buffer == statement.buffer for load in self.nest.loads]):
            self.fail(statement, f"adds to {statement.buffer} while it is read")

    def access(self, statement: Load | Store, buffer: Buffer, index: tuple[Index, ...], conditional: bool) -> None:
        if len(index) != len(buffer.shape):
            self.fail(statement, f"has {len(index)} indices for {buffer.type_string}")
        for one, size in zip(index, buffer.shape, strict=True):
            self.index(statement, one)
            if conditional or not self.axes.issuperset(one.names) or 0 in self.extents.values():
                continue
            found = bounds(one, self.extents)
            if found is not None and isinstance(size, int) and not (found[0] >= 0 and found[1] < size):
                self.fail(statement, f"goes from {found[0]} to {found[1]} in a dimension of {size}")

    def index(self, statement: Statement, index: Index) -> None:
        if not index.is_affine:
            self.fail(statement, f"has a division in its index {index}")
        for name in index.names - self.axes:
            self.known(statement, name)
            value = self.values[name]
            if isinstance(value, Store) or not value.dtype.is_integer or value.dtype is dtypes.bool8:
                self.fail(statement, f"has an index {name} that is no integer")

    def known(self, statement: Statement, *names: str) -> None:
        for name in names:
            if name not in self.values:
                self.fail(statement, f"reads {name}, which is not defined before")

    def fail(self, statement: Statement, reason: str) -> None:
        raise VerificationError(f"{self.program.name}: {statement} {reason}")
