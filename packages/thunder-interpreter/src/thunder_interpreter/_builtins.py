"""Builtins that look at the calling frame, run special methods, or call Python functions that they are given."""

import _thread
import abc
import builtins
import functools
import itertools
import operator
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any

from thunder_interpreter import _attributes, _classes, _iteration, _operators
from thunder_interpreter._calls import HEAP_TYPE, TYPE_CALL, Outcome, Special, call, call_native, call_type
from thunder_interpreter._frame import AnyFrame, Call, Frame, Protocol, local_mapping, start, user_frames
from thunder_interpreter._machine import BY_NAME, handled_exception
from thunder_interpreter._operators import ARITHMETIC, COMPARE, INPLACE, UNARY, Shim
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._registry import RUNNING
from thunder_interpreter._traceback import stand_in
from thunder_interpreter._types import python_function, raw_attribute
from thunder_interpreter.opcodes import access, containers

keep_builtins(globals())


COMPILER_FLAGS = 0x1FF0000  # the __future__ features
DONT_IMPLY_DEDENT = 0x200


def push(frame: AnyFrame, value: Any) -> None:
    """Push a result."""
    frame.stack.append(value)


# ---- the frame


def special_globals(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``globals()``."""
    caller = _classes.innermost(frame)
    if args or kwargs or caller is None:
        return call_native(frame, globals, args, kwargs)
    if frame.machine.opaque_result is not None:
        return push(frame, frame.machine.opaque_result(globals, args, kwargs, caller.globals))
    return push(frame, caller.globals)


def special_locals(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``locals()``."""
    caller = _classes.innermost(frame)
    if args or kwargs or caller is None:
        return call_native(frame, locals, args, kwargs)
    return push(frame, snapshot(caller))


def snapshot(frame: Frame) -> Any:
    """What ``locals()`` returns."""
    found = local_mapping(frame)
    return found.copy() if type(found).__name__ == "LocalsView" else found


def special_vars(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``vars``."""
    caller = _classes.innermost(frame)
    if kwargs or len(args) > 1 or caller is None:
        return call_native(frame, vars, args, kwargs)
    if not args:
        return push(frame, snapshot(caller))
    return start(frame, reading_dict(args[0]))


def reading_dict(obj: Any) -> Protocol:
    """``vars(obj)``."""
    try:
        return (yield Call(getattr, obj, "__dict__"))
    except AttributeError:
        pass
    raise TypeError("vars() argument must have __dict__ attribute")


def special_dir(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``dir``."""
    caller = _classes.innermost(frame)
    if kwargs or len(args) > 1 or caller is None:
        return call_native(frame, dir, args, kwargs)
    if not args:
        return push(frame, sorted(snapshot(caller).keys()))
    return special_method(frame, dir, "__dir__", args)


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


def special_exc_info(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``sys.exc_info()``."""
    error = current_exception(frame)
    return push(frame, (None, None, None) if error is None else (type(error), error, error.__traceback__))


def special_exception(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``sys.exception()``."""
    return push(frame, current_exception(frame))


NATIVE_RESERVE = 300  # frames that the interpreter itself may need


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


def special_getrecursionlimit(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``sys.getrecursionlimit``."""
    return push(frame, frame.machine.limit)


def special_warn(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``warnings.warn``, whose ``stacklevel`` counts user frames."""
    return start(frame, warning(frame, *args, **kwargs))


NO_FRAME = ("<sys>", 0) if RUNNING >= (3, 13) else ("sys", 1)  # where a warning is when the stack is not deep enough


def warning(
    frame: AnyFrame,
    message: Any,
    category: Any = None,
    stacklevel: int = 1,
    source: Any = None,
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


def special_type(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``type``; an interpreted frame is a frame."""
    if len(args) == 1 and not kwargs:
        cls = type(args[0])
        return push(frame, types.FrameType if cls is Frame else cls)
    if len(args) == 3:
        args[2] = with_module(frame, args[2])
    return call_type(frame, type, args, kwargs)


def special_type_new(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``type.__new__``."""
    if len(args) == 4:
        args[3] = with_module(frame, args[3])
    return call_native(frame, type.__new__, args, kwargs)


def with_module(frame: AnyFrame, names: Any) -> Any:
    """The namespace of a new class with the ``__module__`` that CPython would take from the calling frame."""
    caller = _classes.innermost(frame)
    if caller is None or not isinstance(names, dict) or "__module__" in names or "__name__" not in caller.globals:
        return names
    return {**names, "__module__": caller.globals["__name__"]}


def placed(native: Any) -> Special:
    """A replacement of a class of :mod:`typing` whose instances take ``__module__`` from the calling frame."""

    def special(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
        caller = _classes.innermost(frame)
        made = native(*args, **kwargs)
        if caller is not None:
            made.__module__ = caller.globals.get("__name__")
        return push(frame, made)

    return special


def special_traceback(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``types.TracebackType``, which needs real frames."""
    args = [stand_in(arg) if type(arg) is Frame else arg for arg in args]
    return call_native(frame, types.TracebackType, args, kwargs)


# ---- running code


def special_exec(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``exec``."""
    return run_source(frame, exec, args, kwargs)


def special_eval(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``eval``."""
    return run_source(frame, eval, args, kwargs)


def run_source(frame: AnyFrame, native: Any, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """Compile what ``exec`` or ``eval`` got, and run it interpreted."""
    caller = _classes.innermost(frame)
    keywords = dict(kwargs)
    closure = keywords.pop("closure", None)
    names = args[1] if len(args) > 1 else keywords.pop("globals", None)
    local_names = args[2] if len(args) > 2 else keywords.pop("locals", None)
    unusual = not args or keywords or (names is not None and not isinstance(names, dict))
    if caller is None or unusual or (local_names is not None and not hasattr(type(local_names), "__getitem__")):
        return call_native(frame, native, args, kwargs)
    if names is None:
        names = caller.globals
        if local_names is None:
            local_names = snapshot(caller)
    elif local_names is None:
        local_names = names
    names.setdefault("__builtins__", caller.f_builtins)
    code = args[0]
    if not isinstance(code, types.CodeType):
        if not isinstance(code, str | bytes | bytearray | memoryview):
            return call_native(frame, native, args, kwargs)
        if native is eval and isinstance(code, str):
            code = code.lstrip(" \t")
        mode = "exec" if native is exec else "eval"
        code = compile(code, "<string>", mode, caller.f_code.co_flags & COMPILER_FLAGS, True)
    if len(closure or ()) != len(code.co_freevars):
        return call_native(frame, native, args, kwargs)
    return start(frame, running(native, _classes.code_function(code, names, closure), local_names))


def running(native: Any, function: types.FunctionType, names: Any) -> Protocol:
    """Run code in a namespace; ``exec`` has no result."""
    if function.__code__.co_flags & 1:  # the code of a function has no namespace
        result = yield Call(function)
    else:
        result = yield Call(_classes.RUN, function, names)
    return None if native is exec else result


def special_compile(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``compile``, which inherits the ``__future__`` features of the calling code."""
    caller = _classes.innermost(frame)
    inherit = not (args[4] if len(args) > 4 else kwargs.get("dont_inherit", False))
    if caller is None or not inherit:
        return call_native(frame, compile, args, kwargs)
    flags = caller.f_code.co_flags & COMPILER_FLAGS
    if len(args) > 3:
        args[3] |= flags
    else:
        kwargs = {**kwargs, "flags": kwargs.get("flags", 0) | flags}
    return call_native(frame, compile, args, kwargs)


# ---- special methods


def special_method(frame: AnyFrame, native: Callable[..., Any], name: str, args: list[Any]) -> Outcome:
    """Call the Python method ``name`` of the first argument and let ``native`` check its result, or just ``native``."""
    machine = frame.machine
    cls = type(args[0])
    if cls not in machine.plain and not _operators.is_plain(machine, cls):
        method = raw_attribute(cls, name)
        if python_function(machine, method):
            if machine.special_methods is not None:
                machine.special_methods(native, args)
            return start(frame, checked(native, Call(method, *args), args[1:]))
    return call_native(frame, native, args, {})


def checked(native: Callable[..., Any], request: Call, rest: list[Any]) -> Protocol:
    """Call a special method and pass its result through the C function it belongs to."""
    return native(Shim((yield request)), *rest)


def by_method(native: Callable[..., Any], name: str) -> Special:
    """A replacement of ``native``, which calls the method ``name`` of its only argument."""

    def special(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
        if len(args) != 1 or kwargs:
            return call_native(frame, native, args, kwargs)
        return special_method(frame, native, name, args)

    return special


def special_bool(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``bool``."""
    if len(args) != 1 or kwargs:
        return call_native(frame, bool, args, kwargs)
    return _operators.to_bool(frame, args[0])


def special_str(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``str``."""
    if len(args) != 1 or kwargs:
        return call_native(frame, str, args, kwargs)
    machine = frame.machine
    cls = type(args[0])
    if cls in machine.plain or raw_attribute(cls, "__str__") is not OBJECT_STR:
        return special_method(frame, str, "__str__", args)
    return special_method(frame, repr, "__repr__", args)


OBJECT_STR = object.__dict__["__str__"]
OBJECT_FORMAT = object.__dict__["__format__"]


def special_format(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``format``."""
    if kwargs or not 1 <= len(args) <= 2 or (len(args) == 2 and type(args[1]) is not str):
        return call_native(frame, format, args, kwargs)
    cls = type(args[0])
    if frame.machine.special_methods is not None:
        frame.machine.special_methods(format, args)
    if raw_attribute(cls, "__format__") is OBJECT_FORMAT and not "".join(args[1:]):
        return call(frame, str, args[:1], {})
    if len(args) == 1:
        args.append("")
    return special_method(frame, format, "__format__", args)


def special_isinstance(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``isinstance``."""
    if kwargs or len(args) != 2:
        return call_native(frame, isinstance, args, kwargs)
    obj, cls = args
    if type(obj) is cls:
        return push(frame, True)
    return checking(frame, isinstance, "__instancecheck__", obj, cls)


def special_issubclass(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``issubclass``."""
    if kwargs or len(args) != 2:
        return call_native(frame, issubclass, args, kwargs)
    return checking(frame, issubclass, "__subclasscheck__", *args)


def checking(frame: AnyFrame, native: Any, name: str, obj: Any, cls: Any) -> Outcome:
    """Ask the metaclass' hook if it is Python."""
    machine = frame.machine
    if type(cls) is tuple:
        if any(type(part) is not type for part in cls):
            return start(frame, checking_each(native, obj, cls))
    elif type(cls) is not type:
        hook = raw_attribute(type(cls), name)
        if python_function(machine, hook):
            return start(frame, checking_by_hook(hook, cls, obj))
    return call_native(frame, native, [obj, cls], {})


def checking_each(native: Any, obj: Any, classes: tuple[Any, ...]) -> Protocol:
    """Check against each class in turn."""
    for cls in classes:
        if (yield Call(native, obj, cls)):
            return True
    return False


def checking_by_hook(hook: Any, cls: Any, obj: Any) -> Protocol:
    """Call ``__instancecheck__`` or ``__subclasscheck__``."""
    return (yield Call(bool, (yield Call(hook, cls, obj))))


def special_abc_instancecheck(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``ABCMeta``'s check of instances in C, which calls ``__subclasscheck__``; that may look at its callers."""
    if len(args) == 2 and not kwargs:
        hook = raw_attribute(type(args[0]), "__subclasscheck__")
        looks_at_callers = hook is not abc.ABCMeta.__subclasscheck__ or is_protocol(args[0])
        if looks_at_callers and python_function(frame.machine, hook):
            return start(frame, checking_instance(hook, *args))
    return call_native(frame, abc._abc_instancecheck, args, kwargs)  # type: ignore[attr-defined]


def is_protocol(cls: Any) -> bool:
    """Whether ``cls`` is a protocol class of :mod:`typing`, whose check of subclasses looks at its callers."""
    return bool(getattr(cls, "_is_protocol", False))


def special_abc_subclasscheck(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``ABCMeta``'s check of subclasses in C, which calls ``__subclasshook__``."""
    if len(args) == 2 and not kwargs and isinstance(args[1], type) and is_protocol(args[0]):
        return start(frame, checking_subclass(*args))
    return call_native(frame, abc._abc_subclasscheck, args, kwargs)  # type: ignore[attr-defined]


def checking_subclass(cls: Any, subclass: type) -> Protocol:
    """Ask the hook, the bases, what is registered, and the subclasses."""
    answer = yield Call(cls.__subclasshook__, subclass)
    if answer is not NotImplemented:
        return bool(answer)
    if cls in getattr(subclass, "__mro__", ()):
        return True
    for reference in abc._get_dump(cls)[0]:  # type: ignore[attr-defined]
        registered = reference()
        if registered is not None and (yield Call(issubclass, subclass, registered)):
            return True
    for derived in cls.__subclasses__():
        if (yield Call(issubclass, subclass, derived)):
            return True
    return False


def checking_instance(hook: Any, cls: Any, instance: Any) -> Protocol:
    """Ask whether the class of an instance, or what it says its class is, is a subclass."""
    claimed = yield Call(getattr, instance, "__class__")
    if (yield Call(hook, cls, claimed)):
        return True
    return bool(type(instance) is not claimed and (yield Call(hook, cls, type(instance))))


def as_binary(native: Any, symbol: str) -> Special:
    """A replacement of a function of :mod:`operator`."""

    def special(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
        if kwargs or len(args) != 2:
            return call_native(frame, native, args, kwargs)
        if symbol in COMPARE:
            return _operators.compare(frame, symbol, *args)
        return _operators.arithmetic(frame, symbol, *args)

    return special


def as_unary(native: Any, symbol: str) -> Special:
    """A replacement of a unary function of :mod:`operator`."""

    def special(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
        if kwargs or len(args) != 1:
            return call_native(frame, native, args, kwargs)
        return _operators.unary(frame, symbol, args[0])

    return special


def as_operation(native: Any, count: int, operation: Callable[..., Outcome]) -> Special:
    """A replacement of another function of :mod:`operator`."""

    def special(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
        if kwargs or len(args) != count:
            return call_native(frame, native, args, kwargs)
        return operation(frame, *args)

    return special


# ---- callables and iterables handed to C


class BridgedIterable:
    """An iterable that C code may use: the ``__iter__`` of a user-defined one is run interpreted."""

    __slots__ = ("_iterable", "_run")

    def __init__(self, run: Any, iterable: Any) -> None:
        self._run = run
        self._iterable = iterable

    def __iter__(self) -> Any:
        iterator = self._run.bridge(ITER)(self._iterable)
        return BridgedIterator(self._run, iterator) if type(iterator).__flags__ & HEAP_TYPE else iterator

    def __length_hint__(self) -> int:
        return operator.length_hint(self._iterable)


class BridgedIterator:
    """An iterator that C code may use: it runs a Python iterator interpreted."""

    __slots__ = ("_iterator", "_run")

    def __init__(self, run: Any, iterator: Any) -> None:
        self._run = run
        self._iterator = iterator

    def __iter__(self) -> "BridgedIterator":
        return self

    def __next__(self) -> Any:
        return self._run.bridge(NEXT)(self._iterator)

    def __length_hint__(self) -> int:
        return operator.length_hint(self._iterator)

    def __reduce__(self) -> Any:
        return iter, (self._iterator,)


def ITER(iterable: Any) -> Any:  # noqa: N802
    """Stands for ``iter`` in a bridge."""
    return iter(iterable)


def NEXT(iterator: Any) -> Any:  # noqa: N802
    """Stands for ``next`` in a bridge."""
    return next(iterator)


def handing_over(native: Any, positions: tuple[int, ...], names: tuple[str, ...], iterables: slice | None) -> Special:
    """A replacement of a C function that calls what it gets.

    Args:
        native: the C function.
        positions: of the positional arguments that it calls.
        names: of the keyword arguments that it calls.
        iterables: the positional arguments that it iterates over.
    """

    def special(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
        run = frame.machine.run
        for position in positions:
            if position < len(args):
                args[position] = run.bridge(args[position])
        for name in names:
            if name in kwargs:
                kwargs = {**kwargs, name: run.bridge(kwargs[name])}
        if iterables is not None:
            for index in range(*iterables.indices(len(args))):
                if _iteration.needs_interpreting(frame.machine, args[index]):
                    args[index] = BridgedIterable(run, args[index])
        return call_native(frame, native, args, kwargs)

    return special


FIRST, ALL, REST = slice(0, 1), slice(0, None), slice(1, None)
HANDED: tuple[tuple[Any, tuple[int, ...], tuple[str, ...], slice | None], ...] = (
    (sorted, (), ("key",), FIRST),
    (list.sort, (), ("key",), None),
    (min, (), ("key",), FIRST),
    (max, (), ("key",), FIRST),
    (map, (0,), (), REST),
    (filter, (0,), (), REST),
    (zip, (), (), ALL),
    (enumerate, (), (), FIRST),
    (sum, (), (), FIRST),
    (any, (), (), FIRST),
    (all, (), (), FIRST),
    (list, (), (), FIRST),
    (tuple, (), (), FIRST),
    (set, (), (), FIRST),
    (frozenset, (), (), FIRST),
    (list.extend, (), (), slice(1, 2)),
    (str.join, (), (), slice(1, 2)),
    (set.update, (), (), REST),
    (functools.reduce, (0,), (), slice(1, 2)),
    (itertools.accumulate, (1,), ("func",), FIRST),
    (itertools.starmap, (0,), (), slice(1, 2)),
    (itertools.takewhile, (0,), (), slice(1, 2)),
    (itertools.dropwhile, (0,), (), slice(1, 2)),
    (itertools.filterfalse, (0,), (), slice(1, 2)),
    (itertools.groupby, (1,), ("key",), FIRST),
    (itertools.chain, (), (), ALL),
    (itertools.islice, (), (), FIRST),
    (type(functools.lru_cache(len)), (0,), ("user_function",), None),
    (_thread.start_new_thread, (0,), ("function",), None),
    (type(__import__("re").compile("")).sub, (1,), ("repl",), None),
    (type(__import__("re").compile("")).subn, (1,), ("repl",), None),
)

SPECIALS: dict[Any, Special] = {
    **_attributes.SPECIALS,
    **access.SPECIALS,
    **containers.SPECIALS,
    containers.GET_ITEM: lambda frame, args, kwargs: _operators.subscript(frame, *args),
    _classes.RUN: _classes.run_in_namespace,
    NEXT: _iteration.special_next,
    ITER: _iteration.special_iter,
    builtins.__build_class__: _classes.special_build_class,
    super: _classes.special_super,
    TYPE_CALL: _classes.special_type_call,
    globals: special_globals,
    locals: special_locals,
    vars: special_vars,
    dir: special_dir,
    types.TracebackType: special_traceback,
    sys._getframe: special_getframe,
    sys.exc_info: special_exc_info,
    sys.exception: special_exception,
    sys.setrecursionlimit: special_setrecursionlimit,
    sys.getrecursionlimit: special_getrecursionlimit,
    type.__new__: special_type_new,
    warnings.warn: special_warn,
    exec: special_exec,
    eval: special_eval,
    compile: special_compile,
    bool: special_bool,
    str: special_str,
    format: special_format,
    isinstance: special_isinstance,
    issubclass: special_issubclass,
    abc._abc_instancecheck: special_abc_instancecheck,  # type: ignore[attr-defined]
    abc._abc_subclasscheck: special_abc_subclasscheck,  # type: ignore[attr-defined]
    iter: _iteration.special_iter,
    next: _iteration.special_next,
    len: by_method(len, "__len__"),
    repr: by_method(repr, "__repr__"),
    hash: by_method(hash, "__hash__"),
    abs: as_operation(abs, 1, lambda frame, value: special_abs(frame, value)),
    reversed: as_operation(reversed, 1, lambda frame, value: special_reversed(frame, value)),
    type: special_type,
    types.GeneratorType.send: _iteration.resuming(types.GeneratorType.send),
    types.CoroutineType.send: _iteration.resuming(types.CoroutineType.send),
    operator.truth: special_bool,
    operator.not_: as_operation(operator.not_, 1, _operators.negate),
    operator.getitem: as_operation(operator.getitem, 2, _operators.subscript),
    operator.setitem: as_operation(operator.setitem, 3, _operators.store_item),
    operator.delitem: as_operation(operator.delitem, 2, _operators.delete_item),
    operator.contains: as_operation(
        operator.contains, 2, lambda frame, container, item: _operators.contains(frame, item, container, False)
    ),
    **{native: as_binary(native, symbol) for symbol, (native, _) in ARITHMETIC.items()},
    **{native: as_binary(native, symbol) for symbol, native in INPLACE.items()},
    **{native: as_binary(native, symbol) for symbol, native in COMPARE.items()},
    **{native: as_unary(native, symbol) for symbol, (native, _) in UNARY.items()},
    **{native: handing_over(native, *rest) for native, *rest in HANDED},  # type: ignore[arg-type]
}
if hasattr(_thread, "start_joinable_thread"):
    native = _thread.start_joinable_thread
    SPECIALS[native] = handing_over(native, (0,), ("function",), None)
BY_NAME["_warnings", "warn"] = special_warn
if hasattr(sys, "_getframemodulename"):
    SPECIALS[sys._getframemodulename] = special_getframemodulename
if "typing" in sys.modules and sys.modules["typing"].TypeVar.__flags__ & 1 << 8:  # implemented in C
    for kind in ("TypeVar", "ParamSpec", "TypeVarTuple"):
        SPECIALS[getattr(sys.modules["typing"], kind)] = placed(getattr(sys.modules["typing"], kind))
if hasattr(operator, "call"):
    SPECIALS[operator.call] = lambda frame, args, kwargs: call(frame, args[0], args[1:], kwargs)


def special_abs(frame: AnyFrame, value: Any) -> Outcome:
    """``abs``."""
    method = raw_attribute(type(value), "__abs__")
    if python_function(frame.machine, method):
        return call(frame, method, [value], {})
    return call_native(frame, abs, [value], {})


def special_reversed(frame: AnyFrame, value: Any) -> Outcome:
    """``reversed``."""
    method = raw_attribute(type(value), "__reversed__")
    if python_function(frame.machine, method):
        return call(frame, method, [value], {})
    if method is None and python_function(frame.machine, raw_attribute(type(value), "__getitem__")):
        return start(frame, reversing(value))
    return call_native(frame, reversed, [value], {})


def reversing(sequence: Any) -> Protocol:
    """Reverse an object of a length and items written in Python; all items are fetched at once, the last one first."""
    items = []
    for index in range((yield Call(len, sequence)) - 1, -1, -1):
        items.append((yield Call(operator.getitem, sequence, index)))
    return iter(items)
