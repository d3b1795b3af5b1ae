"""A loop nest as the text of a Triton kernel.

Without reductions, a program of the grid computes a block of points. With them, it computes a few points, and for each
of them all elements that the reductions are over: a tile, points along its first dimension. A tile may be held in
registers, so that each element is read once; or elements are walked in blocks, once for each reduction that another one
depends on. A nest that looks at indices computes blocks of points, too, and writes only where one of them leads out of
its tensor.
"""

from __future__ import annotations

from dataclasses import dataclass

from thunder_executors_triton.fusion.statements import INDENT, Writer
from thunder_loops import Axis, Load, LoopProgram, Nest, Reduce, Statement, Store


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel as text.

    Args:
        name: of the function.
        text: its definition, tiles held in registers.
        looped: its definition, elements walked in blocks; ``""`` without reductions, and where one has no such form.
        buffers: names of those that it takes, in order; each is followed by its strides.
        sizes: names of the symbolic sizes that it takes next.
        free: axes whose points are shared out among programs; the kernel takes the number of these points last.
        reduced: axes that a tile has elements along; empty without reductions.
        across: whether neighbours in memory are points, not elements of one point, as when columns are added up.
    """

    name: str
    text: str
    looped: str
    buffers: tuple[str, ...]
    sizes: tuple[str, ...]
    free: tuple[Axis, ...]
    reduced: tuple[Axis, ...]
    across: bool


def render(program: LoopProgram, position: int) -> Kernel:
    """Return the kernel of one nest of a program.

    Raises:
        CannotLower: something in it has no row in the tables, or reductions are over different axes.
    """
    writer = Writer(program, position)
    nest = writer.nest
    buffers = tuple(dict.fromkeys([s.buffer for s in nest.statements if isinstance(s, (Load, Store))]))
    sizes = tuple(dict.fromkeys([a.size for a in nest.axes if isinstance(a.size, str)]))
    name = f"{program.name}_{position}"
    blocks = ("POINTS: tl.constexpr", "ELEMENTS: tl.constexpr") if writer.reduced else ("BLOCK: tl.constexpr",)
    taken = [p for b in buffers for p in (b, *writer.strides(b))]
    head = f"@triton.jit\ndef {name}({', '.join([*taken, *sizes, 'total', 'WIDE: tl.constexpr', *blocks])}):\n"
    return Kernel(
        name, head + _body(writer.points() + _held(writer)), _looped(writer, head), buffers, sizes, writer.free,
        writer.reduced, _across(writer),
    )  # fmt: skip


def _body(lines: list[str]) -> str:
    return "".join([f"{INDENT}{line}\n" for line in lines])


def _held(writer: Writer) -> list[str]:
    """Return each statement, one after the other."""
    lines = writer.elements("0") if writer.reduced else []
    return lines + [line for s in writer.nest.statements for line in writer.line(s)]


def _looped(writer: Writer, head: str) -> str:
    """Return the form that walks elements; ``""`` if there is none."""
    reductions = [s for s in writer.nest.statements if isinstance(s, Reduce)]
    if not writer.reduced or not all([writer.accumulates(r) for r in reductions]):
        return ""
    stages = stages_of(writer.nest)
    lines = writer.points()
    for stage in range(max(stages.values()) + 1):
        at_points = [s for s in writer.nest.statements if stages[key(s)] == stage and not writer.is_walked(s)]
        lines += [line for s in at_points if not isinstance(s, Reduce) for line in writer.line(s)]
        lines += _walk(writer, stages, stage)
    return head + _body(lines)


def _walk(writer: Writer, stages: dict[str, int], stage: int) -> list[str]:
    """Return the loop over elements that gives the reductions of a stage, and writes what is known in it."""
    statements = writer.nest.statements
    over = [s for s in statements if isinstance(s, Reduce) and stages[key(s)] == stage + 1]
    stored = [s for s in statements if isinstance(s, Store) and writer.is_walked(s) and stages[key(s)] == stage]
    if not over and not stored:
        return []
    ends: list[Statement] = [*over, *stored]
    needed = {name for s in ends for name in reads(s)}
    inside: list[Statement] = []
    for s in reversed(statements):
        if not isinstance(s, (Store, Reduce)) and s.name in needed and writer.is_walked(s):
            inside.append(s)
            needed.update(reads(s))
    block = writer.elements("start")
    block += [line for s in reversed(inside) for line in writer.line(s)]
    block += [writer.accumulated(r) for r in over]
    block += [line for s in stored for line in writer.line(s)]
    return [
        *[writer.neutral(r) for r in over],
        f"for start in range(0, {writer.extent}, ELEMENTS):",
        *[INDENT + line for line in block],
        *[f"{r.name} = {writer.total(r)}" for r in over],
    ]


def key(s: Statement) -> str:
    """Return what tells a statement from others of its nest: the value that it defines, or where it writes."""
    return f"{s.buffer} {s.index} {s.value}" if isinstance(s, Store) else s.name


def reads(s: Statement) -> tuple[str, ...]:
    """Return the names of values and axes that a statement reads."""
    match s:
        case Store():
            return (s.value, *[n for i in s.index for n in i.names])
        case Load():
            return (*([s.when] if s.when else []), *[n for i in s.index for n in i.names])
        case Reduce():
            return (s.operand,)
    return tuple(getattr(s, "operands", ())) or tuple(getattr(getattr(s, "index", None), "names", ()))


def stages_of(nest: Nest) -> dict[str, int]:
    """Return for each statement how many reductions there are, one after the other, that it depends on."""
    found: dict[str, int] = {}
    for s in nest.statements:
        found[key(s)] = max([found.get(name, 0) for name in reads(s)], default=0) + isinstance(s, Reduce)
    return found


def _across(writer: Writer) -> bool:
    """Whether most that is read and written has points as neighbours."""
    elements, votes = {a.name for a in writer.reduced}, 0
    for s in writer.nest.statements:
        if isinstance(s, (Load, Store)) and s.index and writer.is_walked(s):
            last = next((i.names for i in reversed(s.index) if i.names), ())
            votes += 1 if elements.isdisjoint(last) else -1
    return bool(elements) and votes > 0


__all__ = ["Kernel", "render", "stages_of"]
