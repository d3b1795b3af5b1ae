"""Loop nests as data: buffers, axes, and statements over an iteration space."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from thunder_ir import DType
from thunder_loops.index import Index

Size = int | str
"""A size that is known, or the name of one that the call tells."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One loop.

    Args:
        name: of its variable.
        size: number of iterations.
    """

    name: str
    size: Size


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory that a program reads or writes, however it lies there.

    Args:
        name: in the program.
        dtype: of its elements.
        shape: a size per dimension.
        is_number: whether it is a number of the call, handed over by value.
    """

    name: str
    dtype: DType
    shape: tuple[Size, ...]
    is_number: bool = False

    @property
    def type_string(self) -> str:
        """Dtype and shape, ``"float32[n0, 4]"``."""
        return f"{self.dtype.name}[{', '.join(map(str, self.shape))}]"

    def shape_for(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Return its shape, those sizes known that the call tells."""
        return tuple([sizes[n] if isinstance(n, str) else n for n in self.shape])


@dataclass(frozen=True, slots=True)
class Load:
    """``name = load(buffer, *index)``; where ``when`` is given and false, nothing is read and the value is 0."""

    name: str
    buffer: str
    index: tuple[Index, ...]
    dtype: DType
    when: str = ""


@dataclass(frozen=True, slots=True)
class Constant:
    """A number.

    Args:
        text: as Python writes it: 0.0 and -0.0 are equal, and are different numbers.
    """

    name: str
    text: str
    dtype: DType

    @property
    def value(self) -> bool | int | float:
        """The number."""
        if self.dtype.is_bool:
            return self.text == "True"
        return int(self.text) if self.dtype.is_integer else float(self.text)


@dataclass(frozen=True, slots=True)
class Position:
    """The value of an index expression, as an integer."""

    name: str
    index: Index
    dtype: DType


@dataclass(frozen=True, slots=True)
class Compute:
    """One operation on values at the same place; see :data:`thunder_loops.OPERATIONS`.

    Args:
        operation: its name.
        operands: names of values.
        dtype: of the result.
    """

    name: str
    operation: str
    operands: tuple[str, ...]
    dtype: DType


@dataclass(frozen=True, slots=True)
class Reduce:
    """One value of many: the operand's over ``axes``; see :data:`thunder_loops.REDUCTIONS`."""

    name: str
    operation: str
    operand: str
    axes: tuple[str, ...]
    dtype: DType


@dataclass(frozen=True, slots=True)
class Scan:
    """At each place along ``axis`` one value of all up to there, one after the other; see :data:`thunder_loops.SCANS`.

    Args:
        reverse: whether it begins at the end.
    """

    name: str
    operation: str
    operand: str
    axis: str
    dtype: DType
    reverse: bool = False


@dataclass(frozen=True, slots=True)
class Store:
    """Write a value to a place in a buffer; no two iterations write to one place."""

    buffer: str
    index: tuple[Index, ...]
    value: str


@dataclass(frozen=True, slots=True)
class Add(Store):
    """Add a value to what is at a place in a buffer, where an earlier nest wrote it.

    Iterations that differ along ``over`` alone may come to one place, and do so one after the other, in row-major order
    of these axes; others do not.

    Args:
        dtype: of the elements of the buffer: each sum is rounded to it.
        over: axes of the space.
        when: the condition under which something is added, if there is one.
    """

    dtype: DType
    over: tuple[str, ...] = ()
    when: str = ""


Statement = Load | Constant | Position | Compute | Reduce | Scan | Store


@dataclass(frozen=True, slots=True)
class Nest:
    """Statements that are executed for every point of a space, in any order but for reductions and scans.

    A value depends on the axes that its operands depend on; a reduction's no longer on those it is over, a scan's on
    its own, too. So a schedule may execute each statement in the loop where its axes end. Where there is a scan, all
    scans run along one axis in one direction, and all reductions are over that axis alone. What adds to a buffer is the
    one write of its nest, which neither reduces nor scans.

    Args:
        axes: the space.
        statements: each value is defined once, before it is read.
    """

    axes: tuple[Axis, ...]
    statements: tuple[Statement, ...]

    @property
    def stores(self) -> tuple[Store, ...]:
        """What it writes."""
        return tuple([s for s in self.statements if isinstance(s, Store)])

    @property
    def loads(self) -> tuple[Load, ...]:
        """What it reads."""
        return tuple([s for s in self.statements if isinstance(s, Load)])

    @property
    def reduced(self) -> frozenset[str]:
        """The axes that reductions are over, that scans run along, and along which is added."""
        return frozenset([axis for s in self.statements for axis in walked(s)])

    @property
    def adds(self) -> bool:
        """Whether it adds to a buffer."""
        return any([isinstance(s, Add) for s in self.statements])

    @property
    def scans(self) -> tuple[Scan, ...]:
        """What is scanned."""
        return tuple([s for s in self.statements if isinstance(s, Scan)])


def walked(statement: Statement) -> tuple[str, ...]:
    """Return the axes along which a statement has to do with other points: of a reduction, a scan or an addition."""
    if isinstance(statement, Reduce):
        return statement.axes
    if isinstance(statement, Add):
        return statement.over
    return (statement.axis,) if isinstance(statement, Scan) else ()


@dataclass(frozen=True, slots=True)
class LoopProgram:
    """Loop nests that are executed one after the other.

    Args:
        name: of the function that it prints as.
        inputs: buffers that are read.
        outputs: buffers that are written, each of their elements once, and added to.
        temporaries: buffers that one nest writes and later ones read.
        nests: in order.
        checks: buffers that the first nests write: where one of them is true, an index leads out of its tensor, and
            what comes after these nests must not be executed.
    """

    name: str
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    temporaries: tuple[Buffer, ...]
    nests: tuple[Nest, ...]
    checks: tuple[Buffer, ...] = ()

    @property
    def buffers(self) -> dict[str, Buffer]:
        """All buffers by name."""
        return {b.name: b for b in (*self.inputs, *self.outputs, *self.temporaries, *self.checks)}

    @property
    def checking(self) -> int:
        """How many nests come first, to write what ``checks`` are."""
        names = {b.name for b in self.checks}
        return len([nest for nest in self.nests if not names.isdisjoint([s.buffer for s in nest.stores])])

    def __str__(self) -> str:
        return printed(self)


def reads(statement: Statement) -> tuple[str, ...]:
    """Return the names of the values that a statement of a nest, or of a plan, reads; not those in its index."""
    if isinstance(statement, Compute):
        return statement.operands
    if isinstance(statement, (Reduce, Scan)):
        return (statement.operand,)
    if isinstance(statement, Store):
        condition = (statement.when,) if isinstance(statement, Add) and statement.when else ()
        return (statement.value, *condition)
    return (statement.when,) if isinstance(statement, Load) and statement.when else ()


def axes_of(nest: Nest) -> dict[str, frozenset[str]]:
    """Return for each value the axes that it depends on; for each store, under ``""``, nothing."""
    space = {a.name for a in nest.axes}
    found: dict[str, frozenset[str]] = {}

    def of_index(index: Index) -> frozenset[str]:
        return frozenset().union(*[{n} if n in space else found[n] for n in index.names])

    for s in nest.statements:
        if isinstance(s, Load):
            when = found[s.when] if s.when else frozenset()
            found[s.name] = when.union(*map(of_index, s.index))
        elif isinstance(s, Position):
            found[s.name] = of_index(s.index)
        elif isinstance(s, Constant):
            found[s.name] = frozenset()
        elif isinstance(s, Compute):
            found[s.name] = frozenset().union(*[found[o] for o in s.operands])
        elif isinstance(s, Reduce):
            found[s.name] = found[s.operand] - frozenset(s.axes)
        elif isinstance(s, Scan):
            found[s.name] = found[s.operand] | {s.axis}
    return found


def printed(program: LoopProgram) -> str:
    """Return the program as the text of a Python function; :func:`thunder_loops.run` executes it.

    The body of a ``for`` stands for all points of its space.
    """
    parameters = ", ".join([f'{b.name}: "{b.type_string}"' for b in (*program.inputs, *program.outputs)])
    lines = [f"def {program.name}({parameters}):"]
    lines += [f"    {b.name} = temporary({b.dtype.name}, {b.shape})" for b in (*program.temporaries, *program.checks)]
    for number, nest in enumerate(program.nests):
        names = "".join([f"{a.name}, " for a in nest.axes]) or "_, "
        sizes = "".join([f"{a.name}={a.size}, " for a in nest.axes]).removesuffix(", ")
        lines.append(f"    for ({names.removesuffix(' ')}) in space({sizes}):")
        lines += [f"        {_line(s)}" for s in nest.statements]
        if number + 1 == program.checking:
            lines += [f"    within({b.name})" for b in program.checks]
    return "\n".join(lines if program.nests else [*lines, "    pass"])


def _line(s: Statement) -> str:
    if isinstance(s, Add):
        when = f", when={s.when}" if s.when else ""
        return f"add_to({', '.join([s.buffer, _tuple(s.index), s.value, s.dtype.name, *s.over])}{when})"
    if isinstance(s, Store):
        return f"store({s.buffer}, {_tuple(s.index)}, {s.value})"
    if isinstance(s, Load):
        when = f", when={s.when}" if s.when else ""
        text = f"load({s.buffer}, {_tuple(s.index)}{when})"
    elif isinstance(s, Constant):
        number = f'float("{s.text}")' if s.text.lstrip("-") in ("inf", "nan") else s.text
        text = f"constant({number}, {s.dtype.name})"
    elif isinstance(s, Position):
        text = f"position({s.index}, {s.dtype.name})"
    elif isinstance(s, Reduce):
        text = f"reduce_{s.operation}({s.operand}, {', '.join(s.axes)})"
    elif isinstance(s, Scan):
        text = f"scan_{s.operation}({s.operand}, {s.axis}{', reverse=True' if s.reverse else ''})"
    elif s.operation == "to":
        return f"{s.name} = to({s.operands[0]}, {s.dtype.name})"
    else:
        text = f"{s.operation}({', '.join(s.operands)})"
    return f"{s.name} = {text}  # {s.dtype.name}"


def _tuple(index: tuple[Index, ...]) -> str:
    return f"({', '.join(map(str, index))}{',' if len(index) == 1 else ''})"
