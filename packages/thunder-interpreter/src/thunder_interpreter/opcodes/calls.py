"""Calls."""

from types import FunctionType, MethodType
from typing import Any

from thunder_interpreter import _iteration
from thunder_interpreter._calls import call
from thunder_interpreter._decode import Instruction
from thunder_interpreter._frame import Frame
from thunder_interpreter._machine import Opaque, Outcome
from thunder_interpreter._null import NULL
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._protocol import Call, Protocol, start
from thunder_interpreter._registry import opcode

keep_builtins(globals())


def argument_counts(instruction: Instruction) -> tuple[int, tuple[str, ...]]:
    """The number of arguments, and the names of the last ones."""
    return instruction.arg, instruction.keywords


@opcode("CALL", until=(3, 13), decode=argument_counts)
def call_op(frame: Frame, stack: list[Any], counts: tuple[int, tuple[str, ...]]) -> Outcome:
    """``NULL, fn, *args -> result``, or ``fn, self, *args -> result``."""
    argc, keywords = counts
    if argc == 1:
        args = [stack.pop()]
    elif argc:
        args = stack[-argc:]
        del stack[-argc:]
    else:
        args = []
    fn = stack.pop()
    method = stack.pop()
    if method is not NULL:
        args.insert(0, fn)
        fn = method
    if keywords:
        return call_named(frame, fn, args, keywords)
    return call_positional(frame, fn, args)


UNKNOWN = Opaque(call_op.__code__)  # of functions that have not been seen yet


def call_positional(frame: Frame, fn: object, args: list[Any]) -> Outcome:
    """Call without keywords; what is frequent is done here, the rest in ``call``."""
    if type(fn) is MethodType:
        args.insert(0, fn.__self__)
        fn = fn.__func__
    machine = frame.machine
    if type(fn) is FunctionType and machine.quick:
        program: Any = machine.programs.get(id(fn.__code__), UNKNOWN)
        if len(args) == program.exact and id(fn) not in machine.table and frame.depth < machine.limit:
            if program.padding:
                args += program.unbound
            return Frame(machine, program, fn, args, frame)
    return call(frame, fn, args, {})


def call_named(frame: Frame, fn: object, args: list[Any], keywords: tuple[str, ...]) -> Outcome:
    """Call with the last arguments named."""
    named = len(args) - len(keywords)
    kwargs = dict(zip(keywords, args[named:], strict=True))
    del args[named:]
    return call(frame, fn, args, kwargs)


@opcode("CALL_FUNCTION_EX", until=(3, 13))
def call_function_ex(frame: Frame, stack: list[Any], flags: int) -> Outcome:
    """``NULL, fn, args -> result``, or ``NULL, fn, args, kwargs -> result``."""
    kwargs = stack.pop() if flags & 1 else {}
    args = stack.pop()
    fn = stack.pop()
    stack.pop()
    return call_spread(frame, fn, args, kwargs)


def call_spread(frame: Frame, fn: object, args: object, kwargs: object) -> Outcome:
    """``fn(*args, **kwargs)``."""
    if type(args) is tuple and type(kwargs) is dict:
        if frame.machine.watches_iteration and args:
            args = _iteration.reported_elements(frame.machine, args)
        return call(frame, fn, [*args], {**kwargs})
    return start(frame, spreading(frame, fn, args, kwargs))


def spreading(frame: Frame, fn: Any, args: Any, kwargs: Any) -> Protocol:
    """Turn ``*args`` and ``**kwargs`` of any type into a list and a dict, and call."""
    if type(args) is not tuple:
        args = yield from spread(frame, fn, args)
    if type(kwargs) is not dict:
        mapping: dict[str, Any] = {}
        for key in (yield from _iteration.elements(frame, (yield Call(getattr(kwargs, "keys"))))):  # noqa: B009
            mapping[key] = yield Call(type(kwargs).__getitem__, kwargs, key)
        kwargs = mapping
    return (yield Call(fn, *args, **kwargs))


def spread(frame: Frame, fn: object, args: object) -> Protocol:
    """The elements of ``*args``."""
    if not hasattr(type(args), "__iter__") and not hasattr(type(args), "__getitem__"):
        name = type(args).__name__
        raise TypeError(f"{callable_name(fn)} argument after * must be an iterable, not {name}")
    return (yield from _iteration.elements(frame, args))


def callable_name(fn: object) -> str:
    """How CPython names a callable in the errors of a call."""
    qualname = getattr(fn, "__qualname__", None)
    if not isinstance(qualname, str):
        return str(fn)
    module = getattr(fn, "__module__", None)
    if isinstance(module, str) and module != "builtins":
        return f"{module}.{qualname}()"
    return f"{qualname}()"
