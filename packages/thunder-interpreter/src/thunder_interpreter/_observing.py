"""C code that runs Python functions: nothing interprets these, so that a tracer is told of them.

Which functions C code calls cannot be known beforehand. So, wherever something goes to C code that may be, or hold, a
Python function, CPython itself reports the frames that are entered until the call returns.
"""

import datetime
import functools
import gc
import itertools
import operator
import sys
from _lsprof import Profiler
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GeneratorType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodWrapperType,
    ModuleType,
    NoneType,
    WrapperDescriptorType,
)
from typing import Any

from thunder_interpreter._machine import Machine
from thunder_interpreter._native_callables import callables_in
from thunder_interpreter._native_stack import own
from thunder_interpreter._natives import KEYS, NOTHING, REGISTERED, SPECIAL_METHODS, UNLISTED, Native, native_of
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._types import DICT, HEAP_TYPE, MRO, raw_attribute

keep_builtins(globals())


INERT = frozenset({
    bool, int, float, complex, str, bytes, NoneType, type(...), range, ModuleType, CodeType,
    MemberDescriptorType, MethodDescriptorType, WrapperDescriptorType, GetSetDescriptorType,
})  # fmt: skip
"""Types of what runs no Python function, whatever C code does with it."""
OF_TIME = (datetime.datetime, datetime.time)
DEPTH = 4
"""How deep objects are looked into."""
COMPARED_AS_OBJECTS = frozenset({BuiltinFunctionType, functools.partial})
"""Types of keys that call nothing when they are compared."""


def run_natively(machine: Machine, fn: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """``fn(*args, **kwargs)``; the Python functions that it runs are reported."""
    if machine.native_frame is not None:
        native = native_of(fn)
        called = called_by(native, fn, args, kwargs)
        tell_of_callables(machine, native, called, fn, args, kwargs)
        if called and any([may_run_python(machine, value) for value in called]) or native.runs is REGISTERED:
            return observed(machine, fn, args, kwargs)
    return fn(*args, **kwargs) if kwargs else fn(*args)


def called_by(native: Native, fn: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Sequence[Any]:
    """What C code may call, or call something of: what it is given, and itself or what it is a method of."""
    if native.runs is NOTHING:
        return ()
    own = fn.__self__ if type(fn) is BuiltinFunctionType or type(fn) is MethodWrapperType else fn
    given = [*args, *kwargs.values()] if type(own) in INERT else [own, *args, *kwargs.values()]
    if native.runs is KEYS and given and isinstance(given[0], (dict, set)):  # however much they hold
        return keys_compared(given[0], given[1:])
    return [value for value in given if type(value) not in INERT]


def tell_of_callables(
    machine: Machine, native: Native, called: Sequence[Any], fn: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    """Tell a tracer of callables in C that a call may call, or look into."""
    if machine.native_callables is not None and called:
        quiet = machine.run.quiet
        odd = [value for value in called if type(value) not in quiet]
        depth = 0 if type(fn) is FunctionType else DEPTH  # no C code: the module of an opaque function, say
        found = [each for value in odd for each in callables_in(machine, value, parts_of, depth)]
        if native.runs is SPECIAL_METHODS:
            found = [each for each in found if each[0] is not None]
        if found:
            own = () if getattr(fn, "__self__", None) is None else (fn.__self__,)
            machine.native_callables(found, (*own, *args, *kwargs.values()))


def with_keys(machine: Machine, fn: Any, args: Sequence[Any], keys: Sequence[Any]) -> Any:
    """``fn(*args)``, which hashes and compares keys of its first argument, and calls nothing else.

    Args:
        machine: where it runs.
        fn: such as ``operator.setitem``.
        args: a container, and what else ``fn`` takes.
        keys: the keys that it is asked for, or gets.
    """
    odd = [key for key in keys if type(key) not in INERT]
    if odd and machine.special_methods is not None:
        for key in odd:
            machine.special_methods(hash, [key])
            machine.special_methods(operator.eq, [key, key])
    if machine.native_frame is not None:
        called = keys_compared(args[0], odd)
        tell_of_callables(machine, UNLISTED, called, fn, args, {})
        if called and any([may_run_python(machine, value) for value in called]):
            return observed(machine, fn, args, {})
    return fn(*args)


def keys_compared(container: object, keys: Sequence[Any]) -> Sequence[Any]:
    """What is compared where keys are looked for in a container; its own keys are taken to be alike."""
    first = itertools.islice(container, 1) if isinstance(container, (dict, set)) else ()
    return [key for key in (*keys, *first) if type(key) not in INERT and type(key) not in COMPARED_AS_OBJECTS]


def may_run_python(machine: Machine, value: Any, depth: int = DEPTH) -> bool:
    """Whether C code may run a Python function that would be interpreted by means of an object.

    Args:
        machine: knows which functions are interpreted.
        value: any object.
        depth: how many objects within others are looked into.
    """
    kind = type(value)
    if kind in INERT:
        return False
    if kind is FunctionType:
        return not machine.run.is_opaque(value)
    if kind is GeneratorType:
        return id(value) not in machine.generators
    runs = class_runs_python(machine, kind)
    if runs is False:  # but for functions that it was given
        given = getattr(value, "__dict__", {}).values()
        return any([type(v) is FunctionType and not machine.run.is_opaque(v) for v in given])
    if runs is not None:
        return runs
    if isinstance(value, type):
        return class_runs_python(machine, value) is True
    if depth == 0:
        return False
    has_dtype = isinstance(raw_attribute(type(value), "dtype"), GetSetDescriptorType)  # other objects are not asked
    if has_dtype and getattr(value.dtype, "hasobject", False):  # of arrays, which do not say what they hold
        return True
    return any([may_run_python(machine, part, depth - 1) for part in parts_of(value)])


def parts_of(value: object) -> list[Any]:
    """What an object holds that is not of a class in Python."""
    for cls in OF_TIME:  # which do not tell their time zone to the garbage collector
        if issubclass(type(value), cls):
            return [vars(cls)["tzinfo"].__get__(value)]
    return gc.get_referents(value)


def class_runs_python(machine: Machine, cls: type) -> bool | None:
    """Whether a class, or one that it is derived from, holds Python functions that would be interpreted.

    It is ``None`` for a class without any Python function: what its objects hold decides then.
    """
    known = machine.run.python_classes
    if cls in known:
        return known[cls]
    known[cls] = None  # while it is looked at: it may hold objects of itself
    found: bool | None = None
    for base in MRO(cls) or ():
        if base.__flags__ & HEAP_TYPE:
            for raw in DICT(base).values():
                if type(raw) not in INERT and may_run_python(machine, raw, 2):
                    known[cls] = True
                    return True
                if type(raw) is FunctionType:
                    found = False
    known[cls] = found
    return found


@dataclass(frozen=True, slots=True)
class Observer:
    """Hears from CPython which Python functions a call of C code enters, and what in C these call.

    Args:
        machine: whose tracer is told.
        call: the call: the function and its arguments.
        errors: what the tracer raised when it was told.
    """

    machine: Machine
    call: tuple[Any, Sequence[Any], Mapping[str, Any]]
    errors: list[Exception] = field(default_factory=list)

    def entered(self, frame: object, event: str, _: object) -> None:
        """Tell of a frame; CPython's trace function."""
        if event == "call" and not own(frame):
            try:
                self.machine.native_frame(frame, self.call)
            except Exception as error:
                self.errors.append(error)

    def calls(self, frame: object, event: str, function: object) -> None:
        """Tell of a call of C code; CPython's profile function."""
        if event == "c_call" and not own(frame):
            try:
                self.machine.native_call(frame, function)
            except Exception as error:
                self.errors.append(error)


def observed(machine: Machine, fn: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """``fn(*args, **kwargs)``, while CPython tells which Python functions are entered, and what in C these call.

    Raises:
        Exception: what the tracer raised when it was told, once the call is over.
    """
    observer = Observer(machine, (fn, args, kwargs))
    before, profile = sys.gettrace(), sys.getprofile()
    outer, machine.observing = machine.observing, True
    sys.settrace(observer.entered)
    if machine.native_call is not None:
        sys.setprofile(observer.calls)
    try:
        return fn(*args, **kwargs)
    finally:
        set_profile(profile)
        sys.settrace(before)
        machine.observing = outer
        if observer.errors:
            raise observer.errors[0]


def unobserved(fn: Any, /, *args: Any, **kwargs: Any) -> Any:
    """``fn(*args, **kwargs)``, of which nothing is reported: work of a tracer's own, to which C code handed over.

    Example:
        >>> from thunder_interpreter import unobserved
        >>> unobserved(max, 1, 2)
        2
    """
    trace, profile = sys.gettrace(), sys.getprofile()
    if type(getattr(trace, "__self__", None)) is not Observer:
        return fn(*args, **kwargs)
    sys.settrace(None)
    sys.setprofile(None)
    try:
        return fn(*args, **kwargs)
    finally:
        sys.settrace(trace)
        set_profile(profile)


def pause(machine: Machine) -> tuple[Any, Any]:
    """Stop reporting, as long as C code runs the interpreter; return what :func:`report_again` takes."""
    before = sys.gettrace(), sys.getprofile()
    sys.settrace(None)
    sys.setprofile(None)
    machine.observing = False
    return before


def report_again(machine: Machine, before: tuple[Any, Any]) -> None:
    """Report again."""
    machine.observing = True
    sys.settrace(before[0])
    set_profile(before[1])


def set_profile(profile: Any) -> None:
    """Let a profiler that ``sys.getprofile`` told of go on: those written in C are no functions."""
    if isinstance(profile, Profiler):
        profile.enable()
    else:
        sys.setprofile(profile)
