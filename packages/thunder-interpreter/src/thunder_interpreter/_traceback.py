"""Tracebacks of interpreted frames: real traceback objects that show the user's frames only."""

import dis
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import Any

from thunder_interpreter._decode import CO_GENERATOR, CO_NEWLOCALS, CO_OPTIMIZED
from thunder_interpreter._frame import Frame
from thunder_interpreter._locals import bound_variables
from thunder_interpreter._pristine import keep_builtins

keep_builtins(globals())


_RETURN_GENERATOR = bytes([dis.opmap["RETURN_GENERATOR"], 0])


def entry(frame: Frame, rest: TracebackType | None, error: BaseException) -> TracebackType:
    """The traceback entry of an interpreted frame, in front of ``rest``."""
    program = frame.program
    index = frame.index
    offset = program.offsets[index] if index >= 0 else 0
    if rest is None and isinstance(error, NameError):
        made = stand_in_with_variables(frame)
    else:
        made = stand_in(frame)
    return TracebackType(rest, made, offset, program.line(index) or program.code.co_firstlineno)


def show(error: BaseException) -> None:
    """Give the entries of an error that leaves the interpreter frames as debuggers and notebooks want them.

    Until then they lead to the interpreted frames. Afterwards they have the line and the variables themselves, in the
    error and in all that it came from.
    """
    todo: list[BaseException | None] = [error]
    seen: set[int] = set()
    while todo:
        found = todo.pop()
        if found is None or id(found) in seen:
            continue
        seen.add(id(found))
        found.__traceback__ = _shown(found.__traceback__)
        todo += [found.__cause__, found.__context__]


def _shown(traceback: TracebackType | None) -> TracebackType | None:
    entries = []
    while traceback is not None:
        entries.append(traceback)
        traceback = traceback.tb_next
    for found in reversed(entries):
        frame, offset, made = interpreted_frame(found.tb_frame), found.tb_lasti, found.tb_frame
        if type(frame) is Frame:
            made, offset = whole_stand_in(frame, found.tb_lineno), offset + len(_PREFIX)
        traceback = TracebackType(traceback, made, offset, found.tb_lineno)
    return traceback


def whole_stand_in(frame: Frame, line: int) -> FrameType:
    """As ``stand_in``, with the frame's variables and the line that it stands at."""
    code, variables = frame.program.code, _variables(frame)
    located = code.replace(
        co_code=_PREFIX + code.co_code, co_linetable=_line_of_prefix(line - code.co_firstlineno) + code.co_linetable
    )
    made: Any = FunctionType(frame_code(located, tuple(variables)), frame.globals)(*variables.values())
    found: FrameType = made.gi_frame
    return found


_PREFIX = bytes([dis.opmap["NOP"], 0, dis.opmap["RESUME"], 0, dis.opmap["NOP"], 0])
"""What stands before the code of a frame: two instructions at its line, and one that leads back to the first line.

A generator that never started counts as having reached its first ``RESUME``.
"""


def _line_of_prefix(line: int) -> bytes:
    """The location table of the prefix (``Objects/locations.md`` of CPython).

    Args:
        line: counted from the first line of the code.
    """
    return bytes([_WITHOUT_COLUMNS | 1, *_signed(line), _WITHOUT_COLUMNS, *_signed(-line)])


_WITHOUT_COLUMNS = 0x80 | 13 << 3


def _signed(value: int) -> list[int]:
    """A number in groups of six bits, the lowest first, the sign being the lowest bit of all."""
    rest = -value << 1 | 1 if value < 0 else value << 1
    groups = [rest & 0x3F]
    while rest := rest >> 6:
        groups[-1] |= 0x40
        groups.append(rest & 0x3F)
    return groups


def _variables(frame: Frame) -> dict[str, Any]:
    found = frame.namespace if type(frame.namespace) is dict else bound_variables(frame)
    return {name: value for name, value in found.items() if type(name) is str}


class Meant:
    """The trace function of a frame that stands for an interpreted one; a debugger may have it called."""

    __slots__ = ("frame",)

    def __init__(self, frame: Frame) -> None:
        self.frame = frame

    def __call__(self, frame: FrameType, event: str, argument: object) -> "Meant":
        return self


def stand_in(frame: Frame) -> FrameType:
    """A real frame object of the user's code, for traceback objects, which take no other.

    Python creates frames only by running code; a generator that never starts has a frame with the code's file, name
    and line table, and nothing of it runs. Its trace function, which does nothing, leads back to the interpreted frame
    with its variables.
    """
    program = frame.program
    if program.frame_code is None:
        program.frame_code = frame_code(program.code)
    made: Any = FunctionType(program.frame_code, frame.globals)()
    found: FrameType = made.gi_frame
    found.f_trace = Meant(frame)
    return found


def stand_in_with_variables(frame: Frame) -> FrameType:
    """As ``stand_in``, with the frame's variables: Python suggests similar names out of them."""
    variables = _variables(frame)
    made: Any = FunctionType(frame_code(frame.program.code, tuple(variables)), frame.globals)(*variables.values())
    found: FrameType = made.gi_frame
    found.f_trace = Meant(frame)
    return found


def interpreted_frame(found: FrameType) -> Any:
    """The interpreted frame that a frame of a traceback stands for, or the frame itself."""
    meant: Any = found.f_trace
    return meant.frame if type(meant) is Meant else found


def frame_code(code: CodeType, names: tuple[str, ...] = ()) -> CodeType:
    """``code`` turned into that of a generator which takes ``names``."""
    return code.replace(
        co_argcount=len(names),
        co_posonlyargcount=0,
        co_kwonlyargcount=0,
        co_nlocals=len(names),
        co_varnames=names,
        co_cellvars=(),
        co_freevars=(),
        co_flags=CO_GENERATOR | CO_OPTIMIZED | CO_NEWLOCALS,
        co_code=_RETURN_GENERATOR + code.co_code[2:],
    )
