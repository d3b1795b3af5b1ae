"""Tracebacks of interpreted frames: real traceback objects that show the user's frames only."""

import dis
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import Any

from thunder_interpreter._decode import CO_GENERATOR, CO_NEWLOCALS, CO_OPTIMIZED
from thunder_interpreter._frame import Frame
from thunder_interpreter._locals import bound_variables
from thunder_interpreter._native_stack import strip
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
    variables = frame.namespace if type(frame.namespace) is dict else bound_variables(frame)
    names = tuple(name for name in variables if isinstance(name, str))
    made: Any = FunctionType(frame_code(frame.program.code, names), frame.globals)(*(variables[n] for n in names))
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


__all__ = ["entry", "interpreted_frame", "stand_in", "strip"]
