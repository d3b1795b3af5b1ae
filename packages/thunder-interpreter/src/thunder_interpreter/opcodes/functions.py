"""Making functions and classes; imports."""

import builtins
import sys
from types import FunctionType, ModuleType
from typing import Any

from thunder_interpreter._calls import call
from thunder_interpreter._decode import name
from thunder_interpreter._frame import Frame, builtins_of
from thunder_interpreter._machine import Outcome
from thunder_interpreter._null import NOTHING, NULL
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._protocol import Call, Protocol, start, steer
from thunder_interpreter._registry import opcode
from thunder_interpreter.opcodes.variables import namespace

keep_builtins(globals())


@opcode("MAKE_FUNCTION", until=(3, 13))
def make_function(frame: Frame, stack: list[Any], flags: int) -> None:
    """``[defaults,] [keyword defaults,] [annotations,] [closure,] code -> function``."""
    code = stack.pop()
    closure = stack.pop() if flags & 8 else None
    annotations = stack.pop() if flags & 4 else None
    keyword_defaults = stack.pop() if flags & 2 else None
    defaults = stack.pop() if flags & 1 else None
    made = FunctionType(code, frame.globals, None, defaults, closure)
    made.__kwdefaults__ = keyword_defaults
    if annotations is not None:
        annotate(made, annotations)
    stack.append(made)


def annotate(function: FunctionType, annotations: Any) -> None:
    """Set annotations, which may come as ``(name, value, name, value, ...)``."""
    if type(annotations) is tuple:
        annotations = dict(zip(annotations[::2], annotations[1::2], strict=True))
    function.__annotations__ = annotations


@opcode("LOAD_BUILD_CLASS")
def load_build_class(frame: Frame, stack: list[Any], _: object) -> None:
    """``-> __build_class__``."""
    found = builtins_of(frame.function).get("__build_class__")
    if found is None:
        raise NameError("__build_class__ not found")
    stack.append(found)


@opcode("IMPORT_NAME", decode=name)
def import_name(frame: Frame, stack: list[Any], name: str) -> Outcome:
    """``level, names -> module``."""
    names = stack.pop()
    level = stack.pop()
    function = builtins_of(frame.function).get("__import__", NULL)
    if function is NULL:
        raise ImportError("__import__ not found")
    args = [name, frame.globals, frame.namespace, names, level]
    if function is builtins.__import__:
        module = function(*args)
        if frame.machine.opaque_result is not None:
            module = frame.machine.opaque_result(function, args, {}, module)
        stack.append(module)
        return None
    return call(frame, function, args, {})


@opcode("IMPORT_FROM", decode=name)
def import_from(frame: Frame, stack: list[Any], name: str) -> Outcome:
    """``module -> module, module.name``."""
    return start(frame, importing_from(stack[-1], name))


def importing_from(module: object, name: str) -> Protocol:
    """Read an attribute of a module, or find the submodule of that name."""
    try:
        return (yield Call(getattr, module, name))
    except AttributeError:
        pass
    package = getattr(module, "__name__", None)
    if isinstance(package, str):
        found = sys.modules.get(f"{package}.{name}")
        if found is not None:
            return found
    raise cannot_import(module, package, name)


def cannot_import(module: object, package: object, name: str) -> ImportError:
    """CPython's words for a name that a module does not have."""
    shown = package if isinstance(package, str) else "<unknown module name>"
    path = getattr(module, "__file__", None)
    if not isinstance(path, str):
        message = f"cannot import name {name!r} from {shown!r} (unknown location)"
        path = None
    elif initialising(module):
        message = (
            f"cannot import name {name!r} from partially initialized module {shown!r} "
            f"(most likely due to a circular import) ({path})"
        )
    else:
        message = f"cannot import name {name!r} from {shown!r} ({path})"
    error = ImportError(message, name=shown, path=path)
    if hasattr(error, "name_from"):
        error.name_from = name
    return error


def initialising(module: object) -> bool:
    """Whether the import of a module has not finished."""
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


@opcode("IMPORT_STAR", until=(3, 12))
def import_star(frame: Frame, stack: list[Any], _: object) -> Outcome:
    """``module ->``; all its public names come into the namespace."""
    return steer(frame, importing_all(frame, stack.pop()))


def importing_all(frame: Frame, module: object) -> Protocol:
    """Copy the public names of a module."""
    target = namespace(frame)
    public = getattr(module, "__all__", None)
    skip = public is None
    if public is None:
        mapping = getattr(module, "__dict__", None)
        if mapping is None:
            raise ImportError("from-import-* object has no __dict__ and no __all__")
        public = list(mapping)
    for key in public:
        if not isinstance(key, str):
            where = "Key in {}.__dict__" if skip else "Item in {}.__all__"
            shown = where.format(module.__name__ if isinstance(module, ModuleType) else module)
            raise TypeError(f"{shown} must be str, not {type(key).__name__}")
        if not (skip and key.startswith("_")):
            target[key] = yield Call(getattr, module, key)
    return NOTHING
