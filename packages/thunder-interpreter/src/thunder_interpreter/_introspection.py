"""Builtins that look at the calling frame: its names, its exception, where a warning or a class comes from."""

import operator
import sys
import types
import warnings
from typing import Any

from thunder_interpreter import _classes
from thunder_interpreter._calls import call_native, call_type
from thunder_interpreter._frame import AnyFrame, Frame, user_frames
from thunder_interpreter._locals import FrameLocalsProxy, local_mapping
from thunder_interpreter._loop import handled_exception
from thunder_interpreter._machine import BY_NAME, Outcome
from thunder_interpreter._natives import SPECIAL_METHODS, replaces
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._protocol import Call, Protocol, start
from thunder_interpreter._registry import RUNNING
from thunder_interpreter._special_methods import push, special_method
from thunder_interpreter._traceback import stand_in

keep_builtins(globals())


@replaces(globals)
def special_globals(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``globals()``."""
    caller = _classes.innermost(frame)
    if args or kwargs or caller is None:
        return call_native(frame, globals, args, kwargs)
    if frame.machine.opaque_result is not None:
        return push(frame, frame.machine.opaque_result(globals, args, kwargs, caller.globals))
    return push(frame, caller.globals)


@replaces(locals)
def special_locals(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``locals()``."""
    caller = _classes.innermost(frame)
    if args or kwargs or caller is None:
        return call_native(frame, locals, args, kwargs)
    return push(frame, snapshot(caller))


def snapshot(frame: Frame) -> Any:
    """What ``locals()`` returns."""
    found = local_mapping(frame)
    return found.copy() if type(found) is FrameLocalsProxy else found


@replaces(vars, runs=SPECIAL_METHODS)
def special_vars(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``vars``."""
    caller = _classes.innermost(frame)
    if kwargs or len(args) > 1 or caller is None:
        return call_native(frame, vars, args, kwargs)
    if not args:
        return push(frame, snapshot(caller))
    return start(frame, reading_dict(args[0]))


def reading_dict(obj: object) -> Protocol:
    """``vars(obj)``."""
    try:
        return (yield Call(getattr, obj, "__dict__"))
    except AttributeError:
        pass
    raise TypeError("vars() argument must have __dict__ attribute")


@replaces(dir, runs=SPECIAL_METHODS)
def special_dir(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``dir``."""
    caller = _classes.innermost(frame)
    if kwargs or len(args) > 1 or caller is None:
        return call_native(frame, dir, args, kwargs)
    if not args:
        return push(frame, sorted(snapshot(caller).keys()))
    return special_method(frame, dir, "__dir__", args)


@replaces(sys._getframe)
def special_getframe(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``sys._getframe``."""
    depth = operator.index(args[0]) if args else 0
    for found in user_frames(frame):
        if depth <= 0:
            return push(frame, found)
        depth -= 1
    raise ValueError("call stack is not deep enough")


def special_getframemodulename(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``sys._getframemodulename``."""
    depth = kwargs["depth"] if "depth" in kwargs else args[0] if args else 0
    for found in user_frames(frame):
        if depth <= 0:
            return push(frame, found.f_globals.get("__name__"))
        depth -= 1
    return push(frame, None)


def current_exception(frame: AnyFrame) -> BaseException | None:
    """The exception being handled, by interpreted code or by the native code that entered it."""
    return handled_exception(frame) or sys.exception()


@replaces(sys.exc_info)
def special_exc_info(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``sys.exc_info()``."""
    error = current_exception(frame)
    return push(frame, (None, None, None) if error is None else (type(error), error, error.__traceback__))


@replaces(sys.exception)
def special_exception(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``sys.exception()``."""
    return push(frame, current_exception(frame))


NATIVE_RESERVE = 300  # frames that the interpreter itself may need


@replaces(sys.setrecursionlimit)
def special_setrecursionlimit(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``sys.setrecursionlimit``: the limit holds for the user's frames; the interpreter's own get a reserve."""
    if len(args) != 1 or kwargs or not isinstance(args[0], int) or args[0] < 1:
        return call_native(frame, sys.setrecursionlimit, args, kwargs)
    limit = args[0]
    if limit <= frame.depth:
        words = f"cannot set the recursion limit to {limit} at the recursion depth {frame.depth}: the limit is too low"
        raise RecursionError(words)
    sys.setrecursionlimit(max(limit, frame.depth + NATIVE_RESERVE))
    frame.machine.limit = limit
    return push(frame, None)


@replaces(sys.getrecursionlimit)
def special_getrecursionlimit(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``sys.getrecursionlimit``."""
    if frame.machine.limit == sys.getrecursionlimit():
        return call_native(frame, sys.getrecursionlimit, args, kwargs)
    return push(frame, frame.machine.limit)


@replaces(warnings.warn)
def special_warn(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``warnings.warn``, whose ``stacklevel`` counts user frames."""
    return start(frame, warning(frame, *args, **kwargs))


NO_FRAME = ("<sys>", 0) if RUNNING >= (3, 13) else ("sys", 1)  # where a warning is when the stack is not deep enough


def warning(
    frame: AnyFrame,
    message: object,
    category: object = None,
    stacklevel: int = 1,
    source: object = None,
    *,
    skip_file_prefixes: tuple[str, ...] = (),
) -> Protocol:
    """Find the place that a warning is about, and warn explicitly."""
    if isinstance(message, Warning):
        category = message.__class__
    elif category is None:
        category = UserWarning
    if not (isinstance(category, type) and issubclass(category, Warning)):
        raise TypeError(f"category must be a Warning subclass, not '{type(category).__name__}'")
    if skip_file_prefixes:
        stacklevel = max(2, stacklevel)
    level = stacklevel
    names: Any = sys.__dict__
    filename, line = NO_FRAME
    for found in user_frames(frame):
        file = found.f_code.co_filename
        if level != stacklevel and stacklevel > 1 and "importlib" in file and "_bootstrap" in file:
            continue
        if level != stacklevel and skip_file_prefixes and file.startswith(tuple(skip_file_prefixes)):
            continue
        level -= 1
        if level <= 0:
            names, filename, line = found.f_globals, file, found.f_lineno
            break
    registry = names.setdefault("__warningregistry__", {})
    module = names.get("__name__", "<string>")
    yield Call(warnings.warn_explicit, message, category, filename, line, module, registry, None, source)
    return None


@replaces(type)
def special_type(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``type``; an interpreted frame is a frame."""
    if len(args) == 1 and not kwargs:
        cls = type(args[0])
        if frame.machine.opaque_result is not None:
            cls = frame.machine.opaque_result(type, args, kwargs, cls)
        return push(frame, types.FrameType if cls is Frame else cls)
    if len(args) == 3:
        args[2] = with_module(frame, args[2])
    return call_type(frame, type, args, kwargs)


@replaces(type.__new__)
def special_type_new(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``type.__new__``."""
    if len(args) == 4:
        args[3] = with_module(frame, args[3])
    return call_native(frame, type.__new__, args, kwargs)


def with_module(frame: AnyFrame, names: object) -> Any:
    """The namespace of a new class with the ``__module__`` that CPython would take from the calling frame."""
    caller = _classes.innermost(frame)
    if caller is None or not isinstance(names, dict) or "__module__" in names or "__name__" not in caller.globals:
        return names
    if frame.machine.opaque_call is not None:
        frame.machine.opaque_call(dict, [names], {})
    return {**names, "__module__": caller.globals["__name__"]}


def placed(native: object) -> None:
    """Replace a class of :mod:`typing` whose instances take ``__module__`` from the calling frame."""

    @replaces(native)
    def special(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
        caller = _classes.innermost(frame)
        if caller is None:
            return call_native(frame, native, args, kwargs)
        return push(frame, types.FunctionType(CALLING.__code__, caller.globals)(native, args, kwargs))


def CALLING(fn: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:  # noqa: N802
    """Calls from a function with other globals than ours."""
    return fn(*args, **kwargs)


@replaces(types.TracebackType)
def special_traceback(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``types.TracebackType``, which needs real frames."""
    args = [stand_in(arg) if type(arg) is Frame else arg for arg in args]
    return call_native(frame, types.TracebackType, args, kwargs)


BY_NAME["_warnings", "warn"] = special_warn
if hasattr(sys, "_getframemodulename"):
    replaces(sys._getframemodulename)(special_getframemodulename)
if "typing" in sys.modules and sys.modules["typing"].TypeVar.__flags__ & 1 << 8:  # implemented in C
    for kind in ("TypeVar", "ParamSpec", "TypeVarTuple", "TypeAliasType"):
        placed(getattr(sys.modules["typing"], kind))
