"""Class statements, ``super()``, and running code objects in a namespace."""

import builtins
import types
from types import CodeType, FunctionType
from typing import Any

from thunder_interpreter._calls import TYPE_CALL, call_native
from thunder_interpreter._frame import AnyFrame, Frame
from thunder_interpreter._machine import Outcome
from thunder_interpreter._natives import NOTHING, replaces
from thunder_interpreter._null import NULL
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._protocol import Call, Protocol, start

keep_builtins(globals())


def RUN(function: FunctionType, namespace: object) -> Any:  # noqa: N802
    """Stands for running the code of ``function`` with ``namespace`` as its local names, when a protocol asks."""
    raise AssertionError("looked aside")


@replaces(RUN)
def run_in_namespace(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """Enter a frame that stores its names in a namespace."""
    function, names = args
    machine = frame.machine
    code = function.__code__
    program = machine.programs.get(id(code))
    if program is None or not hasattr(program, "steps"):
        program = machine.decode(code)
    if frame.depth >= machine.limit:
        raise RecursionError("maximum recursion depth exceeded")
    entered = Frame(machine, program, function, [NULL] * len(program.local_names), frame)
    entered.namespace = names
    return entered


@replaces(builtins.__build_class__)
def special_build_class(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``__build_class__``, which runs a class body."""
    if len(args) < 2 or type(args[0]) is not FunctionType or not isinstance(args[1], str):
        return call_native(frame, builtins.__build_class__, args, kwargs)
    return start(frame, building(args[0], args[1], tuple(args[2:]), kwargs))


def building(body: FunctionType, name: str, original_bases: tuple[Any, ...], keywords: dict[str, Any]) -> Protocol:
    """Make a class: resolve its bases, find its metaclass, run its body, call the metaclass."""
    bases = yield from resolved(original_bases)
    if "metaclass" in keywords:
        keywords = dict(keywords)
        meta = keywords.pop("metaclass")
        most_derived = isinstance(meta, type)
    else:
        meta = type(bases[0]) if bases else type
        most_derived = True
    if most_derived:
        meta = winner(meta, bases)
    try:
        prepare = yield Call(getattr, meta, "__prepare__")
    except AttributeError:
        names: Any = {}
    else:
        names = yield Call(prepare, name, bases, **keywords)
    if not hasattr(type(names), "__getitem__"):
        shown = meta.__name__ if most_derived else "<metaclass>"
        raise TypeError(f"{shown}.__prepare__() must return a mapping, not {type(names).__name__}")
    cell = yield Call(RUN, body, names)
    if bases is not original_bases:
        names["__orig_bases__"] = original_bases
    made = yield Call(meta, name, bases, names, **keywords)
    if isinstance(made, type) and type(cell) is types.CellType:
        check_class_cell(cell, name, made)
    return made


def resolved(bases: tuple[Any, ...]) -> Protocol:
    """``bases`` with ``__mro_entries__`` asked; the same tuple if nothing has it."""
    found: list[Any] = []
    changed = False
    for base in bases:
        if isinstance(base, type):
            found.append(base)
            continue
        try:
            hook = yield Call(getattr, base, "__mro_entries__")
        except AttributeError:
            found.append(base)
            continue
        entries = yield Call(hook, bases)
        if type(entries) is not tuple:
            raise TypeError("__mro_entries__ must return a tuple")
        found.extend(entries)
        changed = True
    return tuple(found) if changed else bases


def winner(meta: Any, bases: tuple[Any, ...]) -> Any:
    """The most derived metaclass."""
    for base in bases:
        other = type(base)
        if issubclass(meta, other):
            continue
        if issubclass(other, meta):
            meta = other
            continue
        raise TypeError(
            "metaclass conflict: the metaclass of a derived class must be a (non-strict) subclass of the metaclasses "
            "of all its bases"
        )
    return meta


def check_class_cell(cell: Any, name: str, made: type) -> None:
    """Check that ``type.__new__`` has filled the ``__class__`` cell."""
    try:
        content = cell.cell_contents
    except ValueError:
        content = NULL
    if content is NULL:
        raise RuntimeError(
            f"__class__ not set defining {name!r} as {made!r}. Was __classcell__ propagated to type.__new__?"
        )
    if content is not made:
        raise TypeError(f"__class__ set to {content!r} defining {name!r} as {made!r}")


def innermost(frame: AnyFrame) -> Frame | None:
    """The innermost interpreted frame."""
    while frame is not None and (type(frame) is not Frame or frame.program.hidden):
        frame = frame.back
    return frame


@replaces(super, runs=NOTHING)
def special_super(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``super``, which without arguments looks at the frame."""
    if args or kwargs:
        return call_native(frame, super, args, kwargs)
    caller = innermost(frame)
    if caller is None:
        return call_native(frame, super, args, kwargs)
    return call_native(frame, super, super_arguments(caller), {})


def super_arguments(frame: Frame) -> list[Any]:
    """The class and the instance that ``super()`` takes from a frame."""
    code = frame.program.code
    if not code.co_argcount:
        raise RuntimeError("super(): no arguments")
    first = frame.locals[0]
    if type(first) is types.CellType and code.co_varnames[0] in code.co_cellvars:
        try:
            first = first.cell_contents
        except ValueError:
            first = NULL
    if first is NULL:
        raise RuntimeError("super(): arg[0] deleted")
    if "__class__" not in code.co_freevars:
        raise RuntimeError("super(): __class__ cell not found")
    cell = frame.locals[frame.program.free + code.co_freevars.index("__class__")]
    try:
        cls = cell.cell_contents
    except (ValueError, AttributeError):
        cls = NULL
    if cls is NULL:
        raise RuntimeError("super(): empty __class__ cell")
    if frame.machine.load_closure is not None:
        cls = frame.machine.load_closure(frame.function, "__class__", cls)
    if not isinstance(cls, type):
        raise RuntimeError(f"super(): __class__ is not a type ({type(cls).__name__})")
    return [cls, first]


@replaces(TYPE_CALL)
def special_type_call(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``type.__call__``, as metaclasses call it."""
    if not args or not isinstance(args[0], type):
        return call_native(frame, TYPE_CALL, args, kwargs)
    return frame.machine.construct(frame, args[0], args[1:], kwargs)


def code_function(code: CodeType, names: dict[str, Any], closure: Any = None) -> FunctionType:
    """A function that runs ``code`` in the globals ``names``."""
    return FunctionType(code, names, None, None, closure)


def super_attribute(function: object, args: list[Any], name: str) -> Protocol:
    """``super(cls, self).name``."""
    found = yield Call(function, *args)
    return (yield Call(getattr, found, name))
