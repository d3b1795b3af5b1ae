"""Suspends the frames of a run and goes on with them in another one."""

import functools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import CellType, CodeType, FunctionType
from typing import Any

from thunder_interpreter._decode import RESUMABLE
from thunder_interpreter._displays import unfinished_displays
from thunder_interpreter._frame import AnyFrame, BaseFrame, Frame
from thunder_interpreter._liveness import live_variables
from thunder_interpreter._machine import Outcome
from thunder_interpreter._null import NULL
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._waiting import RaiseFrame

keep_builtins(globals())

CO_OPTIMIZED = 0x1


@dataclass(frozen=True, slots=True)
class Place:
    """Where a frame waits for the result of a call.

    Args:
        function: whose frame it is.
        code: that runs.
        index: the step that called.
        variables: which of its fast locals and of its own cells' contents the frame goes on with.
        cells: which of them stand in a cell.
        stack: which slots of its stack hold a value.
        displays: which of the values that it goes on with are containers that it is still building. They are values
            of the frame alone: whoever goes on in another run hands over copies, so that they are filled in that run.
    """

    function: FunctionType
    code: CodeType
    index: int
    variables: tuple[bool, ...]
    cells: tuple[bool, ...]
    stack: tuple[bool, ...]
    displays: tuple[bool, ...]

    @property
    def count(self) -> int:
        """How many values it goes on with."""
        return sum(self.variables) + sum(self.stack)


@dataclass(frozen=True, slots=True)
class Left:
    """What a lookaside's replacement returns to end the run with a value: the code that called goes on no more.

    Args:
        value: what the run returns.
    """

    value: Any


def suspended(frame: AnyFrame) -> tuple[tuple[Place, ...], list[Any]] | None:
    """Return where a frame and those that called it go on, and with which values, outermost first.

    Variables that are not read any more are left out. ``None`` if there is more to them than frames of functions:
    code in C that waits for them, generators, an exception that is being handled, cells that closures hold, too.
    """
    places: list[Place] = []
    values: list[list[Any]] = []
    while type(frame) is Frame:
        found = _place(frame)
        if found is None:
            return None
        places.append(found[0])
        values.append(found[1])
        frame = frame.back
    if type(frame) is not BaseFrame or frame.back is not None:
        return None
    return tuple(places[::-1]), [value for part in reversed(values) for value in part]


def _place(frame: Frame) -> tuple[Place, list[Any]] | None:
    program = frame.program
    code = program.code
    plain = code.co_flags & CO_OPTIMIZED and not code.co_flags & RESUMABLE
    if not plain or frame.namespace is not None or frame.handled is not None or frame.reraising is not None:
        return None
    if frame.__dict__ or frame.index < 0 or code.co_cellvars and _shares_cells(frame):
        return None
    live = _live(code, program.offsets[frame.index])
    own = list(_variables(frame))
    cells = tuple([is_cell for _, is_cell, _ in own])
    kept = tuple([value is not NULL and name in live for name, _, value in own])
    stack = tuple([value is not NULL for value in frame.stack])
    values = [v for v, keep in zip([*[v for _, _, v in own], *frame.stack], [*kept, *stack], strict=True) if keep]
    unfinished = _unfinished(code, program.offsets[frame.index], len(stack))
    displays = [False] * sum(kept) + [i in unfinished for i, there in enumerate(stack) if there]
    return Place(frame.function, code, frame.index, kept, cells, stack, tuple(displays)), values


def _variables(frame: Frame) -> Iterator[tuple[str, bool, Any]]:
    """Yield the name of each local variable, whether it stands in a cell of the frame's own, and its value."""
    program = frame.program
    cells = program.code.co_cellvars
    for name, value in zip(program.local_names[: program.free], frame.locals, strict=False):
        if name not in cells or type(value) is not CellType:
            yield name, False, value
            continue
        try:
            yield name, True, value.cell_contents
        except ValueError:
            yield name, True, NULL


def _shares_cells(frame: Frame) -> bool:
    """Whether anything else holds a cell of a frame's own: a closure."""
    names = frame.program.local_names[: frame.program.free]
    own = [i for i, name in enumerate(names) if name in frame.program.code.co_cellvars]
    cells = [frame.locals[i] for i in own if type(frame.locals[i]) is CellType]
    alone = [CellType()]
    beside = [*alone]  # as often held as those of the frame are, if nothing else holds them
    counts = [sys.getrefcount(cell) for cell in (*cells, *beside)]
    return any([count > counts[-1] for count in counts[:-1]])


_live = functools.lru_cache(maxsize=1000)(live_variables)
_unfinished = functools.lru_cache(maxsize=1000)(unfinished_displays)


def _rebuilt(back: AnyFrame, places: Sequence[Place], values: Sequence[Any]) -> Frame:
    """Return the innermost of frames in front of one that called for them."""
    machine = back.machine
    given = iter(values)
    for place in places:
        program = machine.decode(place.code)
        slots = [next(given) if keep else NULL for keep in place.variables]
        if machine.on_call is not None:
            count = place.code.co_argcount + place.code.co_kwonlyargcount
            machine.on_call(place.function, [None if v is NULL else v for v in slots[:count]], {})
        slots = [_in_a_cell(v) if is_cell else v for v, is_cell in zip(slots, place.cells, strict=True)]
        back = frame = Frame(machine, program, place.function, [*slots, *(place.function.__closure__ or ())], back)
        frame.index = place.index
        frame.stack += [next(given) if there else NULL for there in place.stack]
    return frame


def _in_a_cell(value: Any) -> CellType:
    return CellType() if value is NULL else CellType(value)


def special_resume(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """Run ``resume``."""
    places, values, result = args
    innermost = _rebuilt(frame, places, values)
    innermost.stack.append(result)
    return innermost


def special_resume_raising(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """Run ``resume_raising``."""
    places, values, error = args
    return RaiseFrame(_rebuilt(frame, places, values), error)
