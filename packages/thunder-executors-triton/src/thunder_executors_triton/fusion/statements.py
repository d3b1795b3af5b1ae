"""Statements of a loop nest as lines of a Triton kernel."""

from __future__ import annotations

from collections.abc import Mapping

from thunder_executors_triton.fusion.operations import COMBINED, INDICES, NEUTRAL, REDUCTIONS, TYPES, row
from thunder_ir import DType, dtypes
from thunder_loops import (
    Add,
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


class Writer:
    """Writes the statements of one nest.

    Values of points are columns, ``(POINTS, 1)``, those of elements that all points share rows, ``(1, ELEMENTS)``;
    without reductions there are points alone, ``(BLOCK,)``.

    Args:
        program: which the nest is of.
        position: the number of the nest.
    """

    def __init__(self, program: LoopProgram, position: int) -> None:
        self.nest: Nest = program.nests[position]
        self.all: Mapping[str, Buffer] = program.buffers
        self.checking = position < program.checking
        over = () if self.checking else self.nest.reduced
        self.free = tuple([a for a in self.nest.axes if a.name not in over])
        self.reduced = tuple([a for a in self.nest.axes if a.name in over])
        self.depends = axes_of(self.nest)
        self.types: dict[str, DType] = {}
        self.indices: set[str] = set()

    @property
    def extent(self) -> str:
        """The number of elements of each point."""
        return " * ".join([str(a.size) for a in self.reduced])

    def strides(self, buffer: str) -> list[str]:
        """Return the names of a buffer's strides."""
        return [f"{buffer}_s{d}" for d in range(len(self.all[buffer].shape))]

    def points(self) -> list[str]:
        """Return what says which points the program computes, and their places along the axes."""
        lines = ["INTEGER: tl.constexpr = tl.int64 if WIDE else tl.int32"]
        if self.reduced:
            lines += ["point = (tl.program_id(0).to(INTEGER) * POINTS + tl.arange(0, POINTS))[:, None]"]
        else:
            lines += ["point = tl.program_id(0).to(INTEGER) * BLOCK + tl.arange(0, BLOCK)"]
        return [*lines, "inside = point < total", *_unravelled("point", self.free)]

    def elements(self, start: str) -> list[str]:
        """Return what says which elements of its points it computes next, and their places."""
        lines = [f"element = ({start} + tl.arange(0, ELEMENTS)).to(INTEGER)[None, :]"]
        return [*lines, f"within = element < {self.extent}", *_unravelled("element", self.reduced)]

    def is_walked(self, s: Statement) -> bool:
        """Whether a statement is for elements, not for points."""
        if isinstance(s, Store):
            return self._lanes(s.value)[1] or not self._elements.isdisjoint([n for i in s.index for n in i.names])
        return self._lanes(s.name)[1]

    @property
    def _elements(self) -> set[str]:
        return {a.name for a in self.reduced}

    def _lanes(self, name: str) -> tuple[bool, bool]:
        """Return whether a value differs from point to point, and from element to element of a point."""
        on = self.depends[name]
        return not on.isdisjoint([a.name for a in self.free]), not on.isdisjoint(self._elements)

    def line(self, s: Statement) -> list[str]:
        """Return the lines of a statement.

        Raises:
            CannotLower: something in it has no row in the tables.
        """
        if isinstance(s, Add):
            raise CannotLower("additions to places that indices tell are not written for Triton")
        if isinstance(s, Store):
            return self._store(s)
        self.types[s.name] = s.dtype
        if isinstance(s, Load):
            return [f"{s.name} = {self._load(s)}"]
        if isinstance(s, Constant):
            return [f"{s.name} = tl.full([], {_number(s)}, {TYPES[s.dtype]})"]
        if isinstance(s, Position):
            self.indices.add(s.name)
            return [f"{s.name} = ({s.index}).to({TYPES[s.dtype]})"]
        if isinstance(s, Reduce):
            return [f"{s.name} = {self._reduced(s)}"]
        if isinstance(s, Scan):
            raise CannotLower(f"scan_{s.operation} is not written for Triton")
        return [f"{s.name} = {self._computed(s)}"]

    def _place(self, buffer: str, index: tuple[Index, ...], points: bool, elements: bool) -> str:
        """Return an address, one for each point and element where they are asked for, even if all are the same."""
        terms = [f"({i}) * {stride}" for i, stride in zip(index, self.strides(buffer), strict=True)]
        return " + ".join([buffer, *terms, *["point * 0"] * points, *["element * 0"] * elements])

    def _load(self, s: Load) -> str:
        if self.all[s.buffer].is_number:
            return f"tl.full([], {s.buffer}, {TYPES[s.dtype]})"
        points, elements = self._lanes(s.name)
        masks = ["inside"] * points + ["within"] * elements + ([s.when] if s.when else [])
        mask = f", mask={' & '.join(masks)}, other=0" if masks else ""
        return f"tl.load({self._place(s.buffer, s.index, points, elements)}{mask})"

    def _store(self, s: Store) -> list[str]:
        if self.checking:
            return [f"tl.store({s.buffer} + point * 0, inside, mask=inside & ({s.value} + point * 0 != 0))"]
        # along axes of one element the index is constant, and so a row's only value is written
        elements = self.is_walked(s)
        mask = "inside & within" if elements else "inside"
        return [f"tl.store({self._place(s.buffer, s.index, True, elements)}, {s.value}, mask={mask})"]

    def accumulates(self, s: Reduce) -> bool:
        """Whether elements can be taken in one block after the other."""
        return s.operation in COMBINED

    def neutral(self, s: Reduce) -> str:
        """Return the line before a loop over elements."""
        return f"{s.name}_all = tl.full([POINTS, ELEMENTS], {NEUTRAL[s.operation]}, {self._type(s)})"

    def accumulated(self, s: Reduce) -> str:
        """Return the line that takes in a block of elements."""
        return f"{s.name}_all = {COMBINED[s.operation].format(f'{s.name}_all', self._kept(s))}"

    def total(self, s: Reduce) -> str:
        """Return what a reduction is after the loop."""
        self.types[s.name] = s.dtype
        return REDUCTIONS[s.operation].format(f"{s.name}_all")

    def _reduced(self, s: Reduce) -> str:
        return s.operand if self.checking else REDUCTIONS[self._known(s).operation].format(self._kept(s))

    def _known(self, s: Reduce) -> Reduce:
        if s.operation not in REDUCTIONS or s.axes != tuple([a.name for a in self.reduced]):
            raise CannotLower(f"reduce_{s.operation} over {', '.join(s.axes)} is not one over whole rows")
        if s.operation != "sum" and not self.types[s.operand].is_floating:
            raise CannotLower(f"reduce_{s.operation} of {self.types[s.operand].name}")
        return s

    def _type(self, s: Reduce) -> str:
        return TYPES[self.types[s.operand]]

    def _kept(self, s: Reduce) -> str:
        """Return a reduction's operand, with what changes nothing beyond the last element."""
        walked = self._lanes(s.operand)[1]
        given = s.operand if walked else f"{s.operand} + tl.zeros([POINTS, ELEMENTS], {s.operand}.dtype)"
        return f"tl.where(within, {given}, {NEUTRAL[s.operation]}).to({self._type(s)})"

    def _computed(self, s: Compute) -> str:
        have = self.types[s.operands[-1]]
        if s.operation == "to":
            return self._converted(s.operands[0], s.dtype)
        text = INDICES.get(s.operation) if s.operands[0] in self.indices else row(s.operation, have)
        if text is None:
            raise CannotLower(f"{s.operation} of {have.name} has no row in the tables of Triton")
        if s.operation in INDICES:
            self.indices.add(s.name)
        return text(*s.operands)

    def _converted(self, operand: str, dtype: DType) -> str:
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


def _number(s: Constant) -> str:
    return f'float("{s.text}")' if s.text.lstrip("-") in ("inf", "nan") else s.text


__all__ = ["INDENT", "Writer"]
