"""Calls: of Python functions (interpreted), methods, classes, callable objects, and of everything else (native)."""

import dis
import functools
import operator
import re
from collections.abc import Callable
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import Any, TypeVar

from thunder_interpreter._decode import CO_NEWLOCALS, CO_OPTIMIZED, CO_VARARGS, CO_VARKEYWORDS, Program
from thunder_interpreter._frame import AnyFrame, Frame
from thunder_interpreter._machine import Machine, Opaque, Outcome
from thunder_interpreter._native_callables import tell_of_special
from thunder_interpreter._natives import ANYTHING, Runs, replaces
from thunder_interpreter._null import NULL
from thunder_interpreter._observing import run_natively
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._protocol import Call, Protocol, start
from thunder_interpreter._types import HEAP_TYPE, descriptor_of, python_function, raw_attribute
from thunder_interpreter._waiting import InitFrame

keep_builtins(globals())

F = TypeVar("F", bound=Callable[..., Any])


def call(frame: AnyFrame, fn: Any, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """Call ``fn`` for ``frame``; the result lands on the frame's stack, at once or when the returned frame is done.

    Args:
        args: positional arguments; the list is the callee's from now on.
        kwargs: keyword arguments, possibly empty.
    """
    machine = frame.machine
    special = machine.table.get(id(fn)) if machine.consults is None else machine.consults(fn)
    if special is not None:
        return special(frame, args, kwargs)
    kind = type(fn)
    if kind is FunctionType:
        return call_function(frame, fn, args, kwargs)
    caller = CALLERS.get(kind)
    if caller is not None:
        return caller(frame, fn, args, kwargs)
    if isinstance(fn, type):
        return call_type(frame, fn, args, kwargs)
    return call_object(frame, fn, args, kwargs)


@replaces(operator.call)
def special_call(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``operator.call``."""
    return call(frame, args[0], args[1:], kwargs)


def call_function(frame: AnyFrame, fn: FunctionType, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """Enter a frame of a Python function."""
    machine = frame.machine
    program = machine.programs.get(id(fn.__code__))
    if program is None:
        program = machine.program(fn)
    if program.simple and not kwargs and len(args) == program.argcount:
        if machine.on_call is not None:
            machine.on_call(fn, args, kwargs)
    elif type(program) is Opaque:
        return call_native(frame, fn, args, kwargs)
    else:
        if machine.on_call is not None:
            machine.on_call(fn, args, kwargs)
        args = bind(program, fn, args, kwargs)
    if program.padding:
        args += [NULL] * program.padding
    if frame.depth >= machine.limit:
        raise RecursionError("maximum recursion depth exceeded")
    if machine.log is not None:
        machine.log.entered(frame, fn)
    return Frame(machine, program, fn, args, frame)


def call_native(frame: AnyFrame, fn: object, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """Call something that is not interpreted, and report it."""
    machine = frame.machine
    if machine.key is not None and args and isinstance(owner := getattr(fn, "__self__", None), dict):
        args = [machine.key(owner, args[0]), *args[1:]]  # get, pop, setdefault, __getitem__
    if machine.log is not None:
        machine.log.called(frame, fn)
    frame.stack.append(reported(machine, fn, args, kwargs))
    return None


def operation(native: Any, count: int, runs: Runs = ANYTHING) -> Callable[[F], F]:
    """Say that the decorated function does what a callable in C does with so many arguments, and none by name.

    Args:
        native: the callable; called natively with others.
        count: of the arguments; the function takes the frame before them.
        runs: what the callable runs where it is called natively.
    """

    def register(function: F) -> F:
        @replaces(native, runs=runs)
        def special(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
            if kwargs or len(args) != count:
                return call_native(frame, native, args, kwargs)
            return function(frame, *args)

        return function

    return register


def reported(machine: "Machine", fn: object, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """The result of something that is not interpreted, which is reported before and after."""
    if machine.opaque_call is not None:
        machine.opaque_call(fn, args, kwargs)
    result = run_natively(machine, fn, args, kwargs)
    return result if machine.opaque_result is None else machine.opaque_result(fn, args, kwargs, result)


def bind(program: Program, fn: FunctionType, args: list[Any], kwargs: dict[str, Any]) -> list[Any]:
    """The parameters of ``fn`` in order, as CPython binds them.

    Raises:
        TypeError: the arguments do not fit, in CPython's words: a function of the same signature is called.
    """
    if program.binder is None:
        program.binder = binder(program.code)
    stub = FunctionType(program.binder, {}, fn.__name__, fn.__defaults__)
    stub.__kwdefaults__ = fn.__kwdefaults__
    stub.__qualname__ = fn.__qualname__
    return list(stub(*args, **kwargs))


def binder(code: CodeType) -> CodeType:
    """Code with the signature of ``code`` that returns its parameters."""
    flags = code.co_flags & (CO_VARARGS | CO_VARKEYWORDS)
    total = code.co_argcount + code.co_kwonlyargcount + bool(flags & CO_VARARGS) + bool(flags & CO_VARKEYWORDS)
    body = bytearray([dis.opmap["RESUME"], 0])
    for index in range(total):
        body += extended("LOAD_FAST", index)
    body += extended("BUILD_TUPLE", total)
    body += extended("RETURN_VALUE", 0)
    return code.replace(
        co_code=bytes(body),
        co_consts=(None,),
        co_names=(),
        co_varnames=code.co_varnames[:total],
        co_nlocals=total,
        co_cellvars=(),
        co_freevars=(),
        co_stacksize=total + 1,
        co_flags=flags | CO_OPTIMIZED | CO_NEWLOCALS,
        co_linetable=b"",
        co_exceptiontable=b"",
    )


def extended(name: str, arg: int) -> bytes:
    """One instruction, with the extended arguments it needs."""
    prefix = b""
    if arg > 255:
        prefix = bytes([dis.opmap["EXTENDED_ARG"], arg >> 8])
    return prefix + bytes([dis.opmap[name], arg & 255])


def call_method(frame: AnyFrame, fn: MethodType, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """Call a bound method: its function with the instance in front."""
    args.insert(0, fn.__self__)
    return call(frame, fn.__func__, args, kwargs)


def call_builtin(frame: AnyFrame, fn: Any, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """Call a C function; a bound C method may have something registered for its descriptor."""
    machine = frame.machine
    if fn.__name__ in machine.names or machine.consults is not None:
        owner = fn.__self__
        if type(owner) is ModuleType:
            special = machine.by_name.get((owner.__name__, fn.__name__))
            if special is not None:
                return special(frame, args, kwargs)
        elif owner is not None:
            special = machine.special(descriptor_of(owner, fn.__name__))
            if special is not None:
                args.insert(0, owner)
                return special(frame, args, kwargs)
    return call_native(frame, fn, args, kwargs)


def call_method_wrapper(frame: AnyFrame, fn: Any, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """Call a bound slot such as ``object().__init__``."""
    machine = frame.machine
    if fn.__name__ in machine.names or machine.consults is not None:
        special = machine.special(fn.__objclass__.__dict__.get(fn.__name__))
        if special is not None:
            args.insert(0, fn.__self__)
            return special(frame, args, kwargs)
    return call_native(frame, fn, args, kwargs)


def call_partial(frame: AnyFrame, fn: Any, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """Call the function inside a ``functools.partial``."""
    return call(frame, fn.func, [*fn.args, *args], {**fn.keywords, **kwargs})


def call_type(frame: AnyFrame, cls: type, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """Call a class: the metaclass' ``__call__``, or ``__new__`` and ``__init__``."""
    machine = frame.machine
    if machine.special_methods is not None and cls.__flags__ & HEAP_TYPE:
        machine.special_methods(TYPE_CALL, [cls])
    init = machine.constructors.get(cls)
    if init is not None:
        args.insert(0, OBJECT_NEW(cls))
        waiting = InitFrame(frame, args[0])
        outcome = call_function(waiting, init, args, kwargs)
        return waiting if outcome is None else outcome
    meta = type(cls)
    if meta is not type:
        calling = raw_attribute(meta, "__call__")
        if python_function(machine, calling):
            args.insert(0, cls)
            return call(frame, calling, args, kwargs)
        if calling is not TYPE_CALL:
            return call_native(frame, cls, args, kwargs)
    return construct(frame, cls, args, kwargs)


TYPE_CALL = type.__dict__["__call__"]


def construct(frame: AnyFrame, cls: type, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """What ``type.__call__`` does."""
    machine = frame.machine
    new = raw_attribute(cls, "__new__")
    if type(new) is staticmethod:
        new = new.__func__
    interpreted_new = python_function(machine, new)
    init = raw_attribute(cls, "__init__")
    if new is OBJECT_NEW and python_function(machine, init) and id(init) not in machine.table:
        if not cls.__flags__ & ABSTRACT and machine.consults is None:
            if type(cls) is type or raw_attribute(type(cls), "__call__") is TYPE_CALL:
                machine.constructors[cls] = init
    if not interpreted_new and not python_function(machine, init):
        special = machine.special(new) if cls.__flags__ & HEAP_TYPE else None
        if special is None:
            return call_native(frame, cls, args, kwargs)
    return start(frame, constructing(cls, new if interpreted_new else cls.__new__, args, kwargs))


ABSTRACT = 1 << 20


def constructing(cls: type, new: object, args: list[Any], kwargs: dict[str, Any]) -> Protocol:
    """Make an instance and initialise it."""
    created = object_new(cls, args, kwargs) if new is object.__new__ else (yield Call(new, cls, *args, **kwargs))
    made = type(created)
    if made is not cls and cls not in made.__mro__:
        return created
    init = raw_attribute(made, "__init__")
    if init is not OBJECT_INIT or new is OBJECT_NEW:
        if type(init) is not FunctionType and not hasattr(type(init), "__get__"):
            result = yield Call(init, *args, **kwargs)
        elif type(init) is FunctionType or type(init) is type(OBJECT_INIT):
            result = yield Call(init, created, *args, **kwargs)
        else:
            result = yield Call(init.__get__(created, made), *args, **kwargs)
        if result is not None:
            raise TypeError(f"__init__() should return None, not '{type(result).__name__}'")
    elif init is OBJECT_INIT and (args or kwargs):
        init(created, *args, **kwargs)
    return created


OBJECT_INIT = object.__dict__["__init__"]
OBJECT_NEW = object.__new__


def object_new(cls: type, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """``object.__new__``, which looks at the class to decide whether arguments are an error."""
    return OBJECT_NEW(cls, *args, **kwargs)


def call_object(frame: AnyFrame, fn: object, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """Call an instance through the ``__call__`` of its class."""
    machine = frame.machine
    kind = type(fn)
    calling = raw_attribute(kind, "__call__")
    if type(calling) is FunctionType:
        if python_function(machine, calling):
            args.insert(0, fn)
            return call(frame, calling, args, kwargs)
    elif calling is not None and kind.__flags__ & HEAP_TYPE and hasattr(type(calling), "__get__"):
        bound = calling.__get__(fn, kind)
        if type(bound) is not MethodWrapperType and bound is not fn:
            tell_of_special(machine, fn, "__call__")
            return call(frame, bound, args, kwargs)
    elif calling is not None and kind.__flags__ & HEAP_TYPE:
        tell_of_special(machine, fn, "__call__")
        return call(frame, calling, args, kwargs)
    return call_native(frame, fn, args, kwargs)


def call_attribute_getter(frame: AnyFrame, fn: Any, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """Call an ``operator.attrgetter``, which may find the attributes by Python code."""
    if kwargs or len(args) != 1:
        return call_native(frame, fn, args, kwargs)
    return start(frame, getting_attributes(fn.__reduce__()[1], args[0]))


def getting_attributes(names: tuple[str, ...], obj: object) -> Protocol:
    """What an ``operator.attrgetter`` does."""
    found = []
    for name in names:
        value = obj
        for part in name.split("."):
            value = yield Call(getattr, value, part)
        found.append(value)
    return found[0] if len(found) == 1 else tuple(found)


def call_item_getter(frame: AnyFrame, fn: Any, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """Call an ``operator.itemgetter``, which may find the items by Python code."""
    if kwargs or len(args) != 1:
        return call_native(frame, fn, args, kwargs)
    return start(frame, getting_items(fn.__reduce__()[1], args[0]))


def getting_items(keys: tuple[Any, ...], obj: object) -> Protocol:
    """What an ``operator.itemgetter`` does."""
    found = []
    for key in keys:
        found.append((yield Call(operator.getitem, obj, key)))
    return found[0] if len(found) == 1 else tuple(found)


def call_method_caller(frame: AnyFrame, fn: Any, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """Call an ``operator.methodcaller``."""
    if kwargs or len(args) != 1:
        return call_native(frame, fn, args, kwargs)
    made, given = fn.__reduce__()
    named = made.keywords if type(made) is functools.partial else {}
    name, *rest = [*made.args, *given] if type(made) is functools.partial else given
    return start(frame, calling_method(args[0], name, rest, named))


def calling_method(obj: object, name: str, args: list[Any], kwargs: dict[str, Any]) -> Protocol:
    """What an ``operator.methodcaller`` does."""
    return (yield Call((yield Call(getattr, obj, name)), *args, **kwargs))


MethodOfClassType = type(re.compile("").sub)
"""Of methods written in C that are told the class which defines them."""

CALLERS: dict[type, Callable[[AnyFrame, Any, list[Any], dict[str, Any]], Outcome]] = {
    MethodType: call_method,
    BuiltinFunctionType: call_builtin,
    MethodOfClassType: call_builtin,
    MethodWrapperType: call_method_wrapper,
    type(OBJECT_INIT): call_native,
    type(list.append): call_native,
    functools.partial: call_partial,
    operator.attrgetter: call_attribute_getter,
    operator.itemgetter: call_item_getter,
    operator.methodcaller: call_method_caller,
}
