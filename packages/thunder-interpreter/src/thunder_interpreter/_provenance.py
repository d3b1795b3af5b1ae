"""Where values came from, as records while code runs and as what a user sees of them.

A record is a tuple, ``(kind, key, *records it was made from)``; a user sees :class:`Provenance`.
"""

from dataclasses import dataclass
from types import CellType
from typing import Any, TypeAlias

from thunder_interpreter._frame import AnyFrame, Frame
from thunder_interpreter._null import NULL
from thunder_interpreter._pristine import keep_builtins

keep_builtins(globals())


Record: TypeAlias = tuple[Any, ...]


NO_VALUE: Record = ("null", None)


@dataclass(frozen=True, slots=True, repr=False)
class Provenance:
    """How a value was obtained.

    Args:
        kind: ``argument``, ``parameter`` (of a function called by native code), ``global`` (or builtin), ``closure``,
            ``constant``, ``attribute``, ``item``, ``slice``,
            ``element``, ``operator``, ``call``, ``container`` or ``other``.
        key: the name, the constant, the symbol, the names of keyword arguments, the index of an element, the opcode.
        inputs: what it was obtained from.

    Example:
        >>> from thunder_interpreter import interpret
        >>> scaled = eval("lambda x: x.real * 2", {"__name__": "example"})
        >>> run = interpret(scaled, provenance=True)
        >>> run(3)
        6
        >>> print(run.result_provenance())
        x.real * 2
    """

    kind: str
    key: Any
    inputs: tuple["Provenance", ...] = ()

    def __str__(self) -> str:
        return render(self)

    __repr__ = __str__


ATOMS = frozenset(
    "argument parameter global closure constant attribute item slice element call container".split(),
)


def render(provenance: Provenance) -> str:
    """The Python expression that a record stands for."""
    kind, key, inputs = provenance.kind, provenance.key, provenance.inputs
    parts = [render(part) if part.kind in ATOMS else f"({render(part)})" for part in inputs]
    if kind in ("argument", "parameter", "global", "closure"):
        return str(key)
    if kind == "constant":
        return repr(key)
    if kind == "attribute":
        return f"{parts[0]}.{key}"
    if kind == "item":
        return f"{parts[0]}[{render(inputs[1])}]"
    if kind == "slice":
        return f"{parts[0]}[{render(inputs[1])}:{render(inputs[2])}]"
    if kind == "element":
        return f"{parts[0]}[{key}]"
    if kind == "operator":
        return f" {key} ".join(parts) if len(parts) == 2 else f"{key}{parts[0]}"
    if kind == "call":
        named = len(inputs) - len(key)
        shown = [render(part) for part in inputs[1:named]]
        shown += [f"{name}={render(part)}" for name, part in zip(key, inputs[named:], strict=True)]
        return f"{parts[0]}({', '.join(shown)})"
    if kind == "container":
        return f"{key}({', '.join(render(part) for part in inputs)})"
    return f"<{key}>({', '.join(parts)})" if parts else f"<{key}>"


def exposed(record: Record, seen: dict[int, Provenance] | None = None) -> Provenance:
    """The :class:`Provenance` of a record; shared parts are shared."""
    seen = {} if seen is None else seen
    pending = [record]
    while pending:
        top = pending[-1]
        if id(top) in seen:
            pending.pop()
            continue
        missing = [part for part in top[2:] if id(part) not in seen]
        if missing:
            pending.extend(missing)
            continue
        seen[id(top)] = Provenance(top[0], top[1], tuple(seen[id(part)] for part in top[2:]))
        pending.pop()
    return seen[id(record)]


def find(frame: AnyFrame, value: Any) -> Record | None:
    """The record of ``value`` in the innermost frame that holds it."""
    while frame is not None:
        if type(frame) is Frame and hasattr(frame, "sources"):
            found = find_in(frame, value)
            if found is not None:
                return found
        frame = frame.back
    return None


def find_in(frame: Any, value: Any) -> Record | None:
    """The record of ``value`` among the variables and the stack of a frame."""
    passed = [held for held in getattr(frame, "values", ()) if held is not NULL]
    known: list[tuple[Any, Record]] = list(zip(passed, getattr(frame, "operands", ()), strict=False))
    known += zip(frame.stack, frame.shadow, strict=False)
    variables: list[tuple[Any, Record]] = list(zip(frame.locals, frame.sources, strict=False))
    for held, record in known + variables:
        if held is value:
            return record
    cells = frame.machine.cells
    for held, _ in variables:
        if type(held) is CellType and id(held) in cells and holds(held, value):
            found: Record = cells[id(held)][1]
            return found
    return None


def holds(cell: CellType, value: Any) -> bool:
    """Whether a cell holds ``value``."""
    try:
        return cell.cell_contents is value
    except ValueError:
        return False
