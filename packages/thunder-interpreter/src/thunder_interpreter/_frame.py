"""Frames: of interpreted functions, and of entries from C."""

import sys
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FrameType, FunctionType, MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from thunder_interpreter._decode import Program
from thunder_interpreter._locals import local_mapping
from thunder_interpreter._native_stack import native_depth, native_frames
from thunder_interpreter._null import NULL
from thunder_interpreter._pristine import keep_builtins

if TYPE_CHECKING:
    from thunder_interpreter._machine import Machine

keep_builtins(globals())


class Leave:
    """What a handler returns to end the dispatch loop with a value."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


class Steps:
    """A program that is no code object: just steps."""

    __slots__ = ("steps",)

    hidden = True

    def __init__(self, handler: Callable[..., Any]) -> None:
        self.steps = [(handler, None)]


class Frame:
    """The activation of an interpreted code object.

    It answers to the attributes of a CPython frame (``f_code``, ``f_back``, ...), and user code sees it as one.

    Attributes:
        locals: fast locals, cells and free variables, in CPython's order; unbound ones are ``NULL``.
        namespace: the mapping of a class body, a module or ``exec``; ``None`` for functions.
        index: the step that is executing.
        handled: the exception that is being handled in this frame.
        looked_up: ``(object, name)`` when the frame computes an attribute.
        reraising: set while an exception is raised again, which leaves the traceback alone: the step it was first
            raised at, or -1.
        finish: what a generator's frame does to its resumer when it returns.
    """

    __slots__ = (
        "__dict__",  # for what few frames have
        "__weakref__",
        "back",
        "depth",
        "finish",
        "finished",
        "function",
        "globals",
        "handled",
        "index",
        "locals",
        "machine",
        "program",
        "reraising",
        "stack",
    )

    namespace: Any = None

    def __init__(
        self, machine: "Machine", program: Program, function: FunctionType, locals: list[Any], back: "AnyFrame"
    ) -> None:
        self.machine = machine
        self.program = program
        self.function = function
        self.globals = function.__globals__
        self.locals = locals
        self.back: AnyFrame | None = back
        self.depth = back.depth + 1
        self.stack: list[Any] = []
        self.index = -1
        self.handled: BaseException | None = None
        self.reraising: int | None = None

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return FrameType

    def __repr__(self) -> str:
        code = self.program.code
        return f"<frame at {id(self):#x}, file {code.co_filename!r}, line {self.f_lineno}, code {code.co_name}>"

    @property
    def f_code(self) -> CodeType:
        """The code object."""
        return self.program.code

    @property
    def f_globals(self) -> dict[str, Any]:
        """The globals of the function."""
        return self.globals

    @property
    def f_builtins(self) -> dict[str, Any]:
        """The builtins of the function."""
        return builtins_of(self.function)

    @property
    def f_lasti(self) -> int:
        """Byte offset of the instruction that is executing."""
        return self.program.offsets[self.index] if self.index >= 0 else -1

    @property
    def f_lineno(self) -> int | None:
        """Source line that is executing."""
        return self.program.line(self.index)

    @property
    def f_locals(self) -> Any:
        """The namespace, or the bound variables of a function."""
        return local_mapping(self)

    @property
    def f_back(self) -> Any:
        """The user's frame that called this one."""
        return next(user_frames(self.back), None)

    if sys.version_info >= (3, 14):

        @property
        def f_generator(self) -> Any:
            """The generator or coroutine that owns the frame."""
            found = getattr(self, "generator", None)
            return None if found is None else found()

    @property
    def f_trace(self) -> Any:
        """Trace functions are not called in interpreted frames."""
        return getattr(self, "trace", None)

    @f_trace.setter
    def f_trace(self, value: object) -> None:
        self.trace = value

    @f_trace.deleter
    def f_trace(self) -> None:
        self.trace = None

    held_by_caller: Any = None  # the generator, which a call of next() may be the last to hold, while it runs

    extra_locals: Mapping[str, Any] = MappingProxyType({})  # set through ``f_locals``, and no variables

    finish: Any
    finished: bool | None
    generator: Any
    kept_locals: dict[str, Any]
    looked_up: tuple[Any, str]
    origin: Any
    registered: int
    trace: Any

    f_trace_lines = True
    f_trace_opcodes = False

    def clear(self) -> None:
        """Drop the references that a finished or suspended frame holds."""
        active: AnyFrame = self.machine.frame
        while active is not None:
            if active is self:
                raise RuntimeError("cannot clear an executing frame")
            active = active.back
        if self.program.resumable and not self.finished:
            if self.finished is None:
                self.machine.run.never_awaited(self)
            elif sys.version_info >= (3, 13):
                raise RuntimeError("cannot clear a suspended frame")
            else:
                self.machine.run.close(self)
            self.finished = True
        self.locals[:] = [NULL] * len(self.locals)
        self.stack.clear()


class BaseFrame:
    """Where native code entered the interpreter: a result that reaches it ends the dispatch loop."""

    __slots__ = ("back", "depth", "index", "machine", "native", "stack")

    program = Steps(lambda frame, stack, _: Leave(stack.pop()))
    handled: BaseException | None = None

    def __init__(self, machine: "Machine") -> None:
        self.machine = machine
        self.native: FrameType | None = sys._getframe(1)
        back = self.back = machine.frame
        self.depth = native_depth() if back is None else back.depth
        self.stack: list[Any] = []
        self.index = -1


AnyFrame: TypeAlias = Any  # Frame | ProtocolFrame | BaseFrame, spelt Any since all three are duck-typed in hot code


def builtins_of(function: FunctionType) -> dict[str, Any]:
    """The builtins that a function sees."""
    found: dict[str, Any] = getattr(function, "__builtins__")  # noqa: B009 - stubs differ on whether it is there
    return found


def user_frames(frame: AnyFrame) -> Iterator[Any]:
    """The user's frames from ``frame`` outwards: interpreted ones, and native ones between and below them."""
    while frame is not None:
        if type(frame) is Frame:
            if not frame.program.hidden:
                yield frame
        elif type(frame) is BaseFrame:
            yield from native_frames(frame)
        frame = frame.back
