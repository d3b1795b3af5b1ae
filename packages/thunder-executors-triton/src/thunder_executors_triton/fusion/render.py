"""A loop nest as the text of a Triton kernel.

Without reductions, a program computes a block of points. With them, a program computes one row: all points that its
reductions are over, held in registers, so that each element is read once. A nest that looks at indices computes blocks
of points, too, and writes only where one of them leads out of its tensor.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from thunder_executors_triton.fusion.operations import INDICES, NEUTRAL, REDUCTIONS, TYPES, row
from thunder_ir import DType, dtypes
from thunder_loops import (
    Axis,
    Buffer,
    CannotLower,
    Compute,
    Constant,
    Index,
    Load,
    LoopProgram,
    Nest,
    Position,
    Reduce,
    Scan,
    Statement,
    Store,
    axes_of,
)

INDENT = "    "


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel as text.

    Args:
        name: of the function.
        text: its definition.
        buffers: names of those that it takes, in order; each is followed by its strides.
        sizes: names of the open sizes that it takes next.
        free: axes whose points are shared out among programs; the kernel takes the number of these points last.
        reduced: axes that one program has all points of; empty without reductions.
    """

    name: str
    text: str
    buffers: tuple[str, ...]
    sizes: tuple[str, ...]
    free: tuple[Axis, ...]
    reduced: tuple[Axis, ...]

    @property
    def digest(self) -> str:
        """What tells the kernel from others, whatever it is called."""
        return hashlib.sha256(self.text.replace(self.name, "kernel").encode()).hexdigest()[:16]


def render(program: LoopProgram, position: int) -> Kernel:
    """Return the kernel of one nest of a program.

    Raises:
        CannotLower: something in it has no row in the tables, or reductions are over different axes.
    """
    return _Writer(program, position).kernel()


class _Writer:
    """Writes the kernel of one nest."""

    def __init__(self, program: LoopProgram, position: int) -> None:
        self.nest: Nest = program.nests[position]
        self.name = f"{program.name}_{position}"
        self.all: Mapping[str, Buffer] = program.buffers
        self.checking = position < program.checking
        over = () if self.checking else self.nest.reduced
        self.free = tuple([a for a in self.nest.axes if a.name not in over])
        self.reduced = tuple([a for a in self.nest.axes if a.name in over])
        self.depends = axes_of(self.nest)
        self.types: dict[str, DType] = {}
        self.indices: set[str] = set()

    def kernel(self) -> Kernel:
        used = dict.fromkeys([s.buffer for s in self.nest.statements if isinstance(s, (Load, Store))])
        buffers = tuple(used)
        sizes = tuple(dict.fromkeys([a.size for a in self.nest.axes if isinstance(a.size, str)]))
        parameters = [p for name in buffers for p in (name, *self.strides(name))]
        head = ", ".join([*parameters, *sizes, "total", "BLOCK: tl.constexpr"])
        lines = [*self.points()]
        for statement in self.nest.statements:
            lines += self.line(statement)
        body = "\n".join([INDENT + line for line in lines])
        text = f"@triton.jit\ndef {self.name}({head}):\n{body}\n"
        return Kernel(self.name, text, buffers, sizes, self.free, self.reduced)

    def strides(self, buffer: str) -> list[str]:
        return [f"{buffer}_s{d}" for d in range(len(self.all[buffer].shape))]

    def points(self) -> list[str]:
        """Write which points the program computes, and their places along the axes."""
        lines = ["point = tl.program_id(0).to(tl.int64)"]
        if not self.reduced:
            lines = ["point = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)", "inside = point < total"]
        lines += _unravelled("point", self.free)
        if self.reduced:
            lines += ["element = tl.arange(0, BLOCK).to(tl.int64)"]
            lines += [f"inside = element < {' * '.join([str(a.size) for a in self.reduced])}"]
            lines += _unravelled("element", self.reduced)
        return lines

    def is_row(self, name: str) -> bool:
        """Whether a value differs along a row; without reductions, whether it differs from point to point."""
        wanted = {a.name for a in self.reduced} if self.reduced else {a.name for a in self.free}
        return not wanted.isdisjoint(self.depends[name])

    def line(self, s: Statement) -> list[str]:
        if isinstance(s, Store):
            return self.store(s)
        self.types[s.name] = s.dtype
        if isinstance(s, Load):
            return [f"{s.name} = {self.load(s)}"]
        if isinstance(s, Constant):
            return [f"{s.name} = tl.full([], {_number(s)}, {TYPES[s.dtype]})"]
        if isinstance(s, Position):
            self.indices.add(s.name)
            return [f"{s.name} = ({_index(s.index)}).to({TYPES[s.dtype]})"]
        if isinstance(s, Reduce):
            return [f"{s.name} = {self.reduction(s)}"]
        if isinstance(s, Scan):
            raise CannotLower(f"scan_{s.operation} is not written for Triton")
        return [f"{s.name} = {self.computed(s)}"]

    def place(self, buffer: str, index: tuple[Index, ...], lanes: bool) -> str:
        """Write an address; ``lanes`` makes it one for each point even where all are the same."""
        terms = [f"({_index(i)}) * {stride}" for i, stride in zip(index, self.strides(buffer), strict=True)]
        lane = ["element * 0" if self.reduced else "point * 0"] if lanes else []
        return " + ".join([buffer, *terms, *lane])

    def load(self, s: Load) -> str:
        if self.all[s.buffer].is_number:
            return f"tl.full([], {s.buffer}, {TYPES[s.dtype]})"
        masks = ["inside"] if self.is_row(s.name) else []
        masks += [s.when] if s.when else []
        mask = f", mask={' & '.join(masks)}, other=0" if masks else ""
        return f"tl.load({self.place(s.buffer, s.index, bool(masks))}{mask})"

    def store(self, s: Store) -> list[str]:
        value = s.value
        if self.checking:
            return [f"tl.store({s.buffer} + point * 0, inside, mask=inside & ({value} + point * 0 != 0))"]
        along = {n for i in s.index for n in i.names}
        # along axes of one element the index is constant, and so a row's only value is written
        lanes = not self.reduced or self.is_row(value) or not along.isdisjoint(a.name for a in self.reduced)
        mask = ", mask=inside" if lanes else ""
        return [f"tl.store({self.place(s.buffer, s.index, lanes)}, {value}{mask})"]

    def reduction(self, s: Reduce) -> str:
        if self.checking:
            return s.operand
        if s.operation not in REDUCTIONS or s.axes != tuple([a.name for a in self.reduced]):
            raise CannotLower(f"reduce_{s.operation} over {', '.join(s.axes)} is not one over whole rows")
        if s.operation != "sum" and not self.types[s.operand].is_floating:
            raise CannotLower(f"reduce_{s.operation} of {self.types[s.operand].name}")
        given = s.operand if self.is_row(s.operand) else f"{s.operand} + tl.zeros([BLOCK], {s.operand}.dtype)"
        kept = f"tl.where(inside, {given}, {NEUTRAL[s.operation]}).to({TYPES[self.types[s.operand]]})"
        return REDUCTIONS[s.operation].format(kept)

    def computed(self, s: Compute) -> str:
        have = self.types[s.operands[-1]]
        if s.operation == "to":
            return self.converted(s.operands[0], s.dtype)
        text = INDICES.get(s.operation) if s.operands[0] in self.indices else row(s.operation, have)
        if text is None:
            raise CannotLower(f"{s.operation} of {have.name} has no row in the tables of Triton")
        if s.operation in INDICES:
            self.indices.add(s.name)
        return text(*s.operands)

    def converted(self, operand: str, dtype: DType) -> str:
        if dtype is dtypes.bool8:
            return f"({operand} != 0)"
        halved = dtype.is_floating and dtype.bytes < 4 and not self.types[operand].is_floating
        # PyTorch rounds integers twice, and Triton's interpreter makes garbage of them in one step
        return f"{operand}{'.to(tl.float32)' if halved else ''}.to({TYPES[dtype]})"


def _unravelled(point: str, axes: tuple[Axis, ...]) -> list[str]:
    lines, rest = [], point
    for axis in reversed(axes[1:]):
        outer = f"{point}_over_{axis.name}"
        lines += [f"{axis.name} = {rest} % {axis.size}", f"{outer} = {rest} // {axis.size}"]
        rest = outer
    return [*lines, *([f"{axes[0].name} = {rest}"] if axes else [])]


def _index(index: Index) -> str:
    return str(index)


def _number(s: Constant) -> str:
    return f'float("{s.text}")' if s.text.lstrip("-") in ("inf", "nan") else s.text
