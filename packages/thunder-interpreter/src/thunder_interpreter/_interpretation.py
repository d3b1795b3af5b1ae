"""The public entry: ``interpret`` a callable, with lookasides and callbacks."""

import functools
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, MethodWrapperType
from typing import Any, TypeAlias

from thunder_interpreter import (
    _dicts,
    _formatting,
    _generators,
    _handing_over,
    _introspection,
    _source,
    _special_methods,
    opcodes,
)
from thunder_interpreter._callbacks import DECLINED, Callbacks, Interpreted, overridden
from thunder_interpreter._calls import MethodOfClassType, call, call_function, call_native, call_type
from thunder_interpreter._code import is_comprehension
from thunder_interpreter._decode import LOG
from thunder_interpreter._frame import AnyFrame, Frame, Leave, user_frames
from thunder_interpreter._log import Log
from thunder_interpreter._loop import Loop
from thunder_interpreter._machine import BY_NAME, Found, Machine, Special
from thunder_interpreter._native_stack import strip
from thunder_interpreter._natives import NATIVES, replaces
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._registry import FREE_THREADED, RUNNING, SUPPORTED, UnsupportedPython
from thunder_interpreter._suspending import Left, Place, special_resume, special_resume_raising, suspended
from thunder_interpreter._traceback import show
from thunder_interpreter._types import HEAP_TYPE

keep_builtins(globals())


Predicate: TypeAlias = Callable[[Any], Any]
Lookasides: TypeAlias = Mapping[Any, Any] | Predicate | Iterable[Any]

KEPT_ANSWERS = 100_000
FAMILIES = (_dicts, _formatting, _handing_over, _introspection, _source, _special_methods, opcodes)
"""Modules that say, when they are imported, how callables in C and opcodes are run."""


@dataclass(frozen=True, slots=True)
class Location:
    """A place in the user's code; the line is found when it is asked for.

    Args:
        code: the code object that was executing.
        offset: byte offset of the instruction.
    """

    code: CodeType
    offset: int

    @property
    def filename(self) -> str:
        """The file."""
        return self.code.co_filename

    @property
    def function(self) -> str:
        """The qualified name of the function."""
        return self.code.co_qualname

    @property
    def line(self) -> int:
        """The line number."""
        for start, end, line in self.code.co_lines():
            if start <= self.offset < end and line is not None:
                return line
        return self.code.co_firstlineno

    def __str__(self) -> str:
        return f"{self.filename}:{self.line} in {self.function}"


class Link:
    """The way from bridges to the interpretation that made them; ``run`` is ``None`` once that is abandoned."""

    __slots__ = ("run",)

    def __init__(self, run: "Interpretation") -> None:
        self.run: Interpretation | None = run


class Bridge:
    """A callable that C code may call: it runs the Python callable interpreted.

    C code may keep it for longer than the interpretation lasts. Then it calls the callable as it is, and keeps nothing
    of the interpretation alive.
    """

    __slots__ = ("__weakref__", "fn", "link")

    def __init__(self, link: Link, fn: Any) -> None:
        self.link = link
        self.fn = fn

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        run = self.link.run
        if run is None:
            return self.fn(*args, **kwargs)
        try:
            return run.machine().enter(self.fn, [*args], kwargs)
        except BaseException as error:
            error.__traceback__ = strip(error.__traceback__)
            raise

    def __reduce__(self) -> tuple[Any, ...]:
        return unwrapped, (self.fn,)

    def __eq__(self, other: object) -> bool:
        return bool(self.fn == (other.fn if isinstance(other, Bridge) else other))

    def __hash__(self) -> int:
        return hash(self.fn)


def _location(frame: Frame) -> Location:
    index = frame.index
    return Location(frame.program.code, frame.program.offsets[index] if index >= 0 else 0)


def unwrapped(fn: object) -> Any:
    """``fn``: what a pickled bridge becomes."""
    return fn


class Interpretation:
    """A callable that runs another one, and every Python function it calls, by interpreting their bytecode.

    It has the signature of that callable, the same result, the same exceptions and the same side effects. It may be
    called from several threads, and again while it runs.

    Args:
        fn: any callable.
        lookasides: replacements of callables: a mapping ``{callable: replacement}``, a function that returns the
            replacement of a callable or ``None``, or a sequence of these and of ``(callable, replacement)`` pairs.
            A replacement is called natively with the same arguments; in :class:`Interpreted` it is interpreted. It may
            return ``DECLINED`` to have done what is done without it.
        callbacks: is told what happens, see :class:`Callbacks`.
        opaque: tells which Python functions are called natively; asked once for each code object.
        log: keep a log of what was interpreted, in :attr:`log`.

    Raises:
        UnsupportedPython: this Python is not 3.11 to 3.14, or is a free-threaded build.

    Example:
        >>> interpret(lambda n: [i * i for i in range(n)])(4)
        [0, 1, 4, 9]
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        *,
        lookasides: Lookasides | None = None,
        callbacks: Callbacks | None = None,
        opaque: Callable[[Any], bool] | None = None,
        log: bool = False,
    ) -> None:
        version = "{}.{}".format(*RUNNING)
        if RUNNING not in SUPPORTED:
            known = " to ".join(["{}.{}".format(*end) for end in (SUPPORTED[0], SUPPORTED[-1])])
            raise UnsupportedPython(f"the interpreter knows the bytecode of Python {known}, and this is {version}")
        if FREE_THREADED:
            raise UnsupportedPython(
                f"this Python {version} is a free-threaded build, and the interpreter relies on the global lock: "
                f"use the ordinary build, python{version} and not python{version}t"
            )
        if not callable(fn):
            raise TypeError(f"interpret needs a callable, got {type(fn).__name__}")
        self.fn = fn
        self.opaque = opaque
        self.watchers = overridden(callbacks)
        self.features = frozenset(self.watchers) | ({LOG} if log else frozenset())
        self.log: Log | None = Log() if log else None
        self.programs: dict[int, Any] = {}
        self.types: dict[Any, Any] = {}
        self.python_classes: dict[type, bool | None] = {}
        self.quiet: set[type] = set()
        self.native_callables: dict[type, tuple[list[Found], bool]] = {}
        self.plain: set[type] = set()
        self.peculiar: set[type] = set()
        self.constructors: dict[type, Any] = {}
        self.generators: dict[int, weakref.ref[Frame]] = {}
        specials = {key: native.special for key, native in NATIVES.items() if native.special is not None}
        self.table: dict[int, Special] = {id(key): special for key, special in specials.items()}
        self._link = Link(self)
        self._kept: list[Any] = []
        self._predicates: list[Predicate] = []
        self._explicit: set[int] = set()
        if lookasides is not None:
            self._add(lookasides)
        keys = [*specials, *self._kept]
        self.names = frozenset(key.__name__ for key in keys if hasattr(key, "__objclass__")) | {
            name for _, name in BY_NAME
        }
        self.consults = self._consult if self._predicates else None
        self._answers: dict[int, tuple[Any, Special | None]] = {}
        self._threads = threading.local()
        self.never_awaited = _generators.warn_never_awaited
        self.close = _generators.close

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        machine = self.machine()
        outermost = machine.frame is None
        if outermost:
            self.forget_types()
        try:
            return machine.enter(self.fn, [*args], kwargs)
        except BaseException as error:
            error.__traceback__ = strip(error.__traceback__)
            if outermost:
                show(error)
            raise

    def abandon(self) -> None:
        """Let no code of generators and coroutines run any more that are suspended, whoever closes or collects them.

        What C code was given to call is not interpreted any more.
        """
        self._link.run = None
        self._link = Link(self)
        for reference in list(self.generators.values()):
            frame = reference()
            if frame is not None:
                frame.finished = True

    def machine(self) -> Machine:
        """The state of the calling thread."""
        try:
            found: Machine = self._threads.machine
        except AttributeError:
            found = self._threads.machine = Loop(self)
        return found

    def forget_types(self) -> None:
        """Drop what is known about classes, since one may have changed."""
        self.types.clear()
        self.python_classes.clear()
        self.native_callables.clear()
        self.quiet.clear()
        self.plain.clear()
        self.peculiar.clear()
        self.constructors.clear()

    def is_opaque(self, function: FunctionType) -> bool:
        """Whether a Python function is called natively: our own, and those that the user of this package names."""
        module = function.__globals__.get("__name__")
        own = type(module) is str and module.startswith("thunder_interpreter.")
        return own or (self.opaque is not None and self.opaque(function))

    def bridge(self, fn: object) -> Any:
        """``fn`` as C code should get it to call it interpreted, builtins such as ``getattr`` included."""
        if type(fn) is Bridge or not callable(fn):
            return fn
        if isinstance(fn, type) and not fn.__flags__ & HEAP_TYPE and fn is not type:  # which may stand for another
            return Bridge(self._link, fn) if id(fn) in self._explicit else fn
        return Bridge(self._link, fn)

    def location(self, of_library: Callable[[Mapping[str, Any]], bool] | None = None) -> Location | None:
        """Where the innermost frame of the user's code stands in this thread.

        Args:
            of_library: whether code with these globals is a library's: its frames are passed over, unless there are
                none but those.
        """
        frame: AnyFrame = self.machine().frame
        innermost = None
        while frame is not None:
            if type(frame) is Frame and not frame.program.hidden:
                if of_library is None or not of_library(frame.globals):
                    return _location(frame)
                innermost = innermost or frame
            frame = frame.back
        return None if innermost is None else _location(innermost)

    def is_tried(self, of_library: Callable[[Mapping[str, Any]], bool]) -> bool:
        """Whether a ``try`` statement of the user's code in this thread covers where it stands.

        Args:
            of_library: whether code with these globals is a library's.
        """
        frame: AnyFrame = self.machine().frame
        while frame is not None:
            if type(frame) is Frame and frame.program.is_tried(frame.index) and not of_library(frame.globals):
                return True
            frame = frame.back
        return False

    def stack(self) -> list[tuple[str, int, str]]:
        """``(file, line, function)`` of the interpreted frames of this thread, outermost first."""
        found = []
        frame: AnyFrame = self.machine().frame
        while frame is not None:
            if type(frame) is Frame and not frame.program.hidden:
                code = frame.program.code
                found.append((code.co_filename, frame.f_lineno or code.co_firstlineno, code.co_name))
            frame = frame.back
        return found[::-1]

    def frames(self) -> list[Any]:
        """The user's frames of this thread, innermost first, native ones below the interpreted ones included."""
        return list(user_frames(self.machine().frame))

    def suspended(self) -> tuple[tuple[Place, ...], list[Any]] | None:
        """Where the frames of this thread go on, and with which values: what :func:`resume` takes.

        ``None`` if they are more than frames of functions that wait for a call.
        """
        return suspended(self.machine().frame)

    def _add(self, lookasides: Any) -> None:
        if isinstance(lookasides, Mapping):
            for key, replacement in lookasides.items():
                self._replace(key, replacement)
        elif callable(lookasides):
            self._predicates.append(lookasides)
        else:
            for part in lookasides:
                if isinstance(part, tuple):
                    self._replace(*part)
                else:
                    self._add(part)

    def _replace(self, key: object, replacement: object) -> None:
        if type(key) is MethodType:
            key = key.__func__
        if not callable(replacement) and not isinstance(replacement, Interpreted):
            raise TypeError(f"the lookaside for {key!r} is no callable: {replacement!r}")
        self._kept.append(key)
        self._explicit.add(id(key))
        self.table[id(key)] = replacing(replacement, self.table.get(id(key)) or calling(key))

    def _consult(self, fn: Any) -> Special | None:
        """What is done for a callable: what the user gave for it, what a predicate says (asked once), or our own."""
        kind = type(fn)
        bound = kind is MethodType or kind is MethodWrapperType
        if kind is BuiltinFunctionType or kind is MethodOfClassType:
            bound = fn.__self__ is not None and type(fn.__self__) is not MODULE
        if bound or fn is None or id(fn) in self._explicit:
            return self.table.get(id(fn))
        known = self._answers.get(id(fn))
        if known is not None:
            return known[1]
        if kind is FunctionType and is_comprehension(fn.__code__):
            return None  # nobody looks it aside, and an answer would keep what it closes over alive
        special = self.table.get(id(fn))
        for predicate in self._predicates:
            replacement = predicate(fn)
            if replacement is not None:
                special = replacing(replacement, special or calling(fn))
                break
        if len(self._answers) > KEPT_ANSWERS:
            self._answers.clear()
        self._answers[id(fn)] = (fn, special)
        return special


interpret = Interpretation
"""What makes one is asked for by this name."""

MODULE = type(threading)


def calling(fn: object) -> Special:
    """What is done for a callable by itself."""
    if isinstance(fn, type):
        return lambda frame, args, kwargs: call_type(frame, fn, args, kwargs)
    if type(fn) is FunctionType:
        return lambda frame, args, kwargs: call_function(frame, fn, args, kwargs)
    return lambda frame, args, kwargs: call_native(frame, fn, args, kwargs)


def replacing(replacement: Any, otherwise: Special) -> Special:
    """What is done for a callable that is looked aside; ``otherwise``, what is done if the replacement declines."""
    if isinstance(replacement, Interpreted):
        fn = replacement.fn
        return lambda frame, args, kwargs: call(frame, fn, args, kwargs)

    def special(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Any:
        machine = frame.machine
        before = machine.frame
        machine.frame = frame  # which waits for the result, such as for that of ``__init__``
        try:
            result = replacement(*args, **kwargs)
        finally:
            machine.frame = before
        if result is DECLINED:
            return otherwise(frame, args, kwargs)
        if type(result) is Left:
            return Leave(result.value)
        frame.stack.append(result)
        return None

    return special


def resume(places: Sequence[Place], values: Sequence[Any], result: Any) -> Any:
    """Go on with frames where :meth:`Interpretation.suspended` found them, in the interpretation that calls this.

    Called natively, it makes one of its own.

    Args:
        places: of the frames, outermost first.
        values: what they go on with.
        result: what the call returned that the innermost one waits for.

    Returns:
        what the outermost one returns.
    """
    return interpret(functools.partial(resume, places, values, result))()


def resume_raising(places: Sequence[Place], values: Sequence[Any], error: BaseException) -> Any:
    """Go on with frames as if the call that they wait for had raised.

    Args:
        places, values: see :func:`resume`.
        error: what it raised.

    Returns:
        what the outermost one returns.
    """
    return interpret(functools.partial(resume_raising, places, values, error))()


replaces(resume)(special_resume)
replaces(resume_raising)(special_resume_raising)
