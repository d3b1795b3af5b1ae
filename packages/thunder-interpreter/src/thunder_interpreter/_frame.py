"""Frames: of interpreted functions, of protocols (Python generators that ask for calls), and of entries from C."""

import sys
from collections.abc import Callable, Generator, Iterator, Mapping, MutableMapping
from types import CellType, CodeType, FrameType, FunctionType, TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias

from thunder_interpreter._decode import CO_OPTIMIZED, Program
from thunder_interpreter._null import NOTHING, NULL
from thunder_interpreter._pristine import keep_builtins

if TYPE_CHECKING:
    from thunder_interpreter._machine import Machine

keep_builtins(globals())


class Leave:
    """What a handler returns to end the dispatch loop with a value."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Call:
    """What a protocol yields to have something called; the result is sent back to it."""

    __slots__ = ("args", "fn", "kwargs")

    def __init__(self, fn: Any, /, *args: Any, **kwargs: Any) -> None:
        self.fn = fn
        self.args = args
        self.kwargs = kwargs


Protocol: TypeAlias = Generator[Call, Any, Any]


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
        shadow: with provenance, a record for each value on the stack; what lies beyond its depth is of no meaning.
        sources: with provenance, a record for each of ``locals``.
        operands: with provenance, the records of the operands of the last call or operation.
        values: with provenance, the operands themselves, of the last call.
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
        "operands",
        "program",
        "reraising",
        "shadow",
        "sources",
        "stack",
        "values",
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

    @property
    def f_trace(self) -> Any:
        """Trace functions are not called in interpreted frames."""
        return getattr(self, "trace", None)

    @f_trace.setter
    def f_trace(self, value: Any) -> None:
        self.trace = value

    held_by_caller: Any = None  # the generator, which a call of next() may be the last to hold, while it runs

    finish: Any
    finished: bool | None
    generator: Any
    kept_locals: dict[str, Any]
    looked_up: tuple[Any, str]
    origin: Any
    registered: int
    trace: Any
    operands: list[Any]
    shadow: list[Any]
    sources: list[Any]
    values: list[Any]

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
            self.finished = True
        self.locals[:] = [NULL] * len(self.locals)
        self.stack.clear()


class ProtocolFrame:
    """Runs a protocol: a Python generator that yields :class:`Call` and receives results."""

    __slots__ = ("back", "depth", "index", "machine", "protocol", "stack")

    program = Steps(lambda frame, stack, _: resume_protocol(frame, stack))
    handled: BaseException | None = None

    def __init__(self, machine: "Machine", protocol: Protocol, back: "AnyFrame") -> None:
        self.machine = machine
        self.protocol = protocol
        self.back = back
        self.depth = back.depth + 1
        self.stack: list[Any] = []
        self.index = -1


def raise_pending(frame: "RaiseFrame", stack: list[Any], _: Any) -> None:
    """Raise what the frame was made for."""
    raise frame.error


class RaiseFrame:
    """Raises an exception in the frame behind it, once the dispatch loop has come to that frame."""

    __slots__ = ("back", "depth", "error", "index", "machine", "stack")

    program = Steps(raise_pending)
    handled: BaseException | None = None

    def __init__(self, back: "AnyFrame", error: BaseException) -> None:
        self.machine = back.machine
        self.back = back
        self.error = error
        self.depth = back.depth
        self.stack: list[Any] = []
        self.index = -1


def initialised(frame: "InitFrame", stack: list[Any], _: Any) -> Any:
    """Give the new instance to the frame that called the class."""
    result = stack.pop()
    if result is not None:
        raise TypeError(f"__init__() should return None, not '{type(result).__name__}'")
    back = frame.back
    back.stack.append(frame.created)
    return back


class InitFrame:
    """Waits for ``__init__`` of a new instance."""

    __slots__ = ("back", "created", "depth", "index", "machine", "stack")

    program = Steps(initialised)
    handled: BaseException | None = None

    def __init__(self, back: "AnyFrame", created: Any) -> None:
        self.machine = back.machine
        self.back = back
        self.created = created
        self.depth = back.depth
        self.stack: list[Any] = []
        self.index = -1


def answered(frame: "AnswerFrame", stack: list[Any], _: Any) -> Any:
    """Give the result of an operator's method to the frame that needs it, unless it is ``NotImplemented``."""
    result = stack.pop()
    back = frame.back
    if result is NotImplemented:
        outcome = start(back, frame.otherwise)
        return back if outcome is None else outcome
    frame.otherwise.close()
    back.stack.append(result)
    return back


class AnswerFrame:
    """Waits for the first method of a binary operator."""

    __slots__ = ("back", "depth", "index", "machine", "otherwise", "stack")

    program = Steps(answered)
    handled: BaseException | None = None

    def __init__(self, back: "AnyFrame", otherwise: "Protocol") -> None:
        self.machine = back.machine
        self.back = back
        self.otherwise = otherwise
        self.depth = back.depth
        self.stack: list[Any] = []
        self.index = -1


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


def resume_protocol(frame: ProtocolFrame, stack: list[Any]) -> Any:
    """Send the last result to the protocol, and do what it asks for next."""
    return advance(frame, frame.protocol.send, stack.pop())


def advance(frame: ProtocolFrame, step: Callable[[Any], Call], value: Any) -> Any:
    """Run the protocol until it needs an interpreted call, or is done.

    Returns:
        the frame to go on with: that of the call, or the one that started the protocol, with the result on its stack.
    """
    call = frame.machine.call
    stack = frame.stack
    protocol = frame.protocol
    while True:
        try:
            request = step(value)
        except StopIteration as stop:
            back = frame.back
            if stop.value is not NOTHING:
                back.stack.append(stop.value)
            return back
        except RuntimeError as error:
            if error is value or not isinstance(error.__cause__, StopIteration):
                raise
            if error.args != ("generator raised StopIteration",):
                raise
            failure = error.__cause__
            failure.__cause__ = failure.__context__ = None
        else:
            frame.index = -1
            try:
                outcome = call(frame, request.fn, [*request.args], request.kwargs)
            except BaseException as error:
                error.__traceback__ = strip(error.__traceback__)  # which holds this frame, and so the error itself
                step, value = protocol.throw, error
                continue
            if outcome is not None:
                return outcome
            step, value = protocol.send, stack.pop()
            continue
        # A protocol may let StopIteration through, which Python would turn into a RuntimeError.
        raise failure


def start(frame: AnyFrame, protocol: Protocol) -> Any:
    """Run ``protocol`` on behalf of ``frame``; its result lands on the frame's stack."""
    outcome = advance(ProtocolFrame(frame.machine, protocol, frame), protocol.send, None)
    return None if outcome is frame else outcome


def steer(frame: AnyFrame, protocol: Protocol) -> Any:
    """Run ``protocol``, which sets the frame's next step itself and returns ``NOTHING``."""
    return advance(ProtocolFrame(frame.machine, protocol, frame), protocol.send, None)


def builtins_of(function: FunctionType) -> dict[str, Any]:
    """The builtins that a function sees."""
    found: dict[str, Any] = getattr(function, "__builtins__")  # noqa: B009 - stubs differ on whether it is there
    return found


class LocalsView(MutableMapping[str, Any]):
    """The variables of a function's frame, read and written through (as frames do since Python 3.13)."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._extra: dict[str, Any] = {}

    def _index(self, key: str) -> int | None:
        names = self._frame.program.local_names
        return names.index(key) if key in names else None

    def __getitem__(self, key: str) -> Any:
        index = self._index(key)
        if index is None:
            return self._extra[key]
        return bound_variables(self._frame)[key]

    def __setitem__(self, key: str, value: Any) -> None:
        index = self._index(key)
        if index is None:
            self._extra[key] = value
            return
        slot = self._frame.locals[index]
        if is_cell(self._frame, index) and type(slot) is CellType:
            slot.cell_contents = value
        else:
            self._frame.locals[index] = value

    def __delitem__(self, key: str) -> None:
        if self._index(key) is not None:
            raise ValueError("cannot remove local variables from FrameLocalsProxy")
        del self._extra[key]

    def __iter__(self) -> Iterator[str]:
        yield from bound_variables(self._frame)
        yield from self._extra

    def __len__(self) -> int:
        return len(bound_variables(self._frame)) + len(self._extra)

    def __repr__(self) -> str:
        return repr(dict(self))

    def copy(self) -> dict[str, Any]:
        """A plain dictionary of the same."""
        return dict(self)

    def __or__(self, other: Mapping[str, Any]) -> dict[str, Any]:
        return dict(self) | dict(other)


def is_cell(frame: Frame, index: int) -> bool:
    """Whether the variable at ``index`` lives in a cell."""
    program = frame.program
    return index >= program.nlocals or program.local_names[index] in program.cell_arguments


def variable(frame: Frame, index: int) -> Any:
    """The value of a variable, looked up in its cell if it has one; ``NULL`` when unbound."""
    value = frame.locals[index]
    if type(value) is CellType and is_cell(frame, index):
        try:
            return value.cell_contents
        except ValueError:
            return NULL
    return value


def bound_variables(frame: Frame) -> dict[str, Any]:
    """The bound variables of a function's frame, by name."""
    found = {}
    for index, name in enumerate(frame.program.local_names):
        if index < len(frame.locals):
            value = variable(frame, index)
            if value is not NULL and not name.startswith("."):
                found[name] = value
    return found


def local_mapping(frame: Frame) -> Any:
    """What ``locals()`` returns in ``frame``: the namespace, or a dictionary of the bound variables."""
    if frame.namespace is not None or not frame.program.flags & CO_OPTIMIZED:
        names = frame.globals if frame.namespace is None else frame.namespace
        hidden = bound_variables(frame) if frame.program.nlocals else None
        return {**names, **hidden} if hidden else names  # hidden: variables of inlined comprehensions
    if sys.version_info >= (3, 13):
        return LocalsView(frame)
    kept: dict[str, Any] = getattr(frame, "kept_locals", None) or {}
    bound = bound_variables(frame)
    for name in frame.program.local_names:
        kept.pop(name, None)
    kept.update(bound)
    frame.kept_locals = kept
    return kept


def user_frames(frame: AnyFrame) -> Iterator[Any]:
    """The user's frames from ``frame`` outwards: interpreted ones, and native ones between and below them."""
    while frame is not None:
        if type(frame) is Frame:
            if not frame.program.hidden:
                yield frame
        elif type(frame) is BaseFrame:
            yield from native_frames(frame)
        frame = frame.back


def native_depth() -> int:
    """How deep the native stack is, as the recursion limit counts."""
    depth = 0
    native: FrameType | None = sys._getframe()
    while native is not None:
        depth += 1
        native = native.f_back
    return depth


ENTRY_CODES: set[CodeType] = set()


def native_frames(base: BaseFrame) -> Iterator[Any]:
    """The native frames outside this package through which the interpreter was entered, innermost first."""
    native: FrameType | None = base.native
    while native is not None:
        native = native.f_back
        if native is not None and native.f_code in ENTRY_CODES and base.back is not None:
            return
        if native is not None and not own(native):
            yield native


def own(native: Any) -> bool:
    """Whether a native frame belongs to the interpreter itself."""
    return str(native.f_globals.get("__name__", "")).startswith("thunder_interpreter")


def strip(traceback: TracebackType | None) -> TracebackType | None:
    """Drop the interpreter's own entries from the head of a traceback."""
    while traceback is not None and own(traceback.tb_frame):
        traceback = traceback.tb_next
    return traceback


def calling(method: Any, receiver: Any, *args: Any) -> Call:
    """The call of a special method, as it was found in a class, on ``receiver``."""
    kind = type(method)
    if kind in UNBOUND:
        return Call(method, receiver, *args)
    if hasattr(kind, "__get__"):
        return Call(method.__get__(receiver, type(receiver)), *args)
    return Call(method, *args)


UNBOUND = frozenset({FunctionType, type(list.append), type(object.__init__)})
