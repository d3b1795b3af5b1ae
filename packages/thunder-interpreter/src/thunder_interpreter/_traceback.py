"""Tracebacks of interpreted frames: real traceback objects that show the user's frames only."""

import dis
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import Any

from thunder_interpreter._decode import CO_GENERATOR, CO_NEWLOCALS, CO_OPTIMIZED
from thunder_interpreter._frame import Frame, bound_variables, own
from thunder_interpreter._pristine import __builtins__  # noqa: F401 - what is interpreted may patch them

_RETURN_GENERATOR = bytes([dis.opmap["RETURN_GENERATOR"], 0])


def strip(traceback: TracebackType | None) -> TracebackType | None:
    """Drop the interpreter's own entries from the head of a traceback."""
    while traceback is not None and own(traceback.tb_frame):
        traceback = traceback.tb_next
    return traceback


def entry(frame: Frame, rest: TracebackType | None) -> TracebackType:
    """The traceback entry of an interpreted frame, in front of ``rest``."""
    program = frame.program
    index = frame.index
    offset = program.offsets[index] if index >= 0 else 0
    return TracebackType(rest, stand_in(frame), offset, program.line(index) or program.code.co_firstlineno)


def stand_in(frame: Frame) -> FrameType:
    """A real frame object of the user's code with the variables of ``frame``.

    Python creates frames only by running code; a generator that never starts has a frame with the code's file, name
    and line table, and nothing of it runs.
    """
    variables = frame.namespace if frame.namespace is not None else bound_variables(frame)
    names = tuple(variables) if type(variables) is dict and frame.namespace is None else ()
    codes = frame.program.frame_codes
    code = codes.get(names)
    if code is None:
        code = codes[names] = frame_code(frame.program.code, names)
    function = FunctionType(code, frame.globals)
    values = [variables[name] for name in names]
    found: Any = function(*values).gi_frame
    return found


def frame_code(code: CodeType, names: tuple[str, ...]) -> CodeType:
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
