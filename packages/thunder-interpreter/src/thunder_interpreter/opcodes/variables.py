"""Local, global, builtin and closure variables."""

from types import CellType
from typing import Any

from thunder_interpreter._decode import fast_name, name, name_and_flag
from thunder_interpreter._frame import Frame, builtins_of
from thunder_interpreter._null import NULL
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._registry import opcode

keep_builtins(globals())


@opcode("LOAD_FAST", until=(3, 12), decode=fast_name)
@opcode("LOAD_FAST_CHECK", since=(3, 12), decode=fast_name)
def load_fast_check(frame: Frame, stack: list[Any], variable: tuple[int, str]) -> None:
    """``-> value``; an unbound variable is an error."""
    value = frame.locals[variable[0]]
    if value is NULL:
        raise unbound_local(variable[1])
    stack.append(value)


@opcode("LOAD_FAST", since=(3, 12))
def load_fast(frame: Frame, stack: list[Any], index: int) -> None:
    """``-> value``."""
    stack.append(frame.locals[index])


@opcode("LOAD_CLOSURE", until=(3, 13))
def load_closure(frame: Frame, stack: list[Any], index: int) -> None:
    """``-> cell``."""
    stack.append(frame.locals[index])


@opcode("STORE_FAST")
def store_fast(frame: Frame, stack: list[Any], index: int) -> None:
    """``value ->``."""
    frame.locals[index] = stack.pop()


@opcode("DELETE_FAST", decode=fast_name)
def delete_fast(frame: Frame, stack: list[Any], variable: tuple[int, str]) -> None:
    """Unbind a local variable."""
    index, name = variable
    if frame.locals[index] is NULL:
        raise unbound_local(name)
    frame.locals[index] = NULL


def unbound_local(name: str) -> UnboundLocalError:
    """The error of using a local variable that has no value."""
    return UnboundLocalError(f"cannot access local variable '{name}' where it is not associated with a value")


def unbound_free(name: str) -> NameError:
    """The error of using a free variable that has no value."""
    message = f"cannot access free variable '{name}' where it is not associated with a value in enclosing scope"
    return NameError(message)


def undefined(name: str) -> NameError:
    """The error of using a name that nothing defines."""
    return NameError(f"name '{name}' is not defined", name=name)


def looked_up(names: Any, name: str) -> Any:
    """What a mapping of names holds, or ``NULL``."""
    if type(names) is dict:
        return names.get(name, NULL)
    try:
        return names[name]
    except KeyError:
        return NULL


def find_global(frame: Frame, name: str) -> Any:
    """A global or builtin, or ``NULL``, where the globals as a plain dictionary do not hold the name."""
    value = NULL if type(frame.globals) is dict else looked_up(frame.globals, name)
    return looked_up(builtins_of(frame.function), name) if value is NULL else value


@opcode("LOAD_GLOBAL", until=(3, 13), decode=name_and_flag)
def load_global(frame: Frame, stack: list[Any], variable: tuple[str, bool]) -> None:
    """``-> value`` or ``-> NULL, value``."""
    name, null = variable
    if null:
        stack.append(NULL)
    names = frame.globals
    value = names.get(name, NULL) if type(names) is dict else NULL
    if value is NULL:
        value = find_global(frame, name)
        if value is NULL:
            raise undefined(name)
    stack.append(value)


@opcode("LOAD_GLOBAL", until=(3, 13), decode=name_and_flag, watch=("load_global",))
def load_global_watched(frame: Frame, stack: list[Any], variable: tuple[str, bool]) -> None:
    """``-> value`` or ``-> NULL, value``."""
    name, null = variable
    if null:
        stack.append(NULL)
    stack.append(global_value(frame, name))


def global_value(frame: Frame, name: str) -> Any:
    """A global or builtin, reported."""
    return reported(frame, name, looked_up(frame.globals, name))


def reported(frame: Frame, name: str, value: object) -> Any:
    """A global or, where ``value`` is ``NULL``, a builtin, as the callbacks have it."""
    machine = frame.machine
    names: Any = frame.globals
    if value is NULL:
        names = builtins_of(frame.function)
        value = looked_up(names, name)
        if value is NULL:
            if machine.missing_global is not None:
                machine.missing_global(frame.globals, name)
            raise undefined(name)
    return value if machine.load_global is None else machine.load_global(names, name, value)


@opcode("STORE_GLOBAL", decode=name)
def store_global(frame: Frame, stack: list[Any], name: str) -> None:
    """``value ->``."""
    watch = frame.machine.store_global
    if watch is not None:
        watch(frame.globals, name, stack[-1])
    frame.globals[name] = stack.pop()


@opcode("DELETE_GLOBAL", decode=name)
def delete_global(frame: Frame, stack: list[Any], name: str) -> None:
    """Unbind a global variable."""
    if name not in frame.globals:
        raise undefined(name)
    watch = frame.machine.delete_global
    if watch is not None:
        watch(frame.globals, name)
    del frame.globals[name]


def namespace(frame: Frame) -> Any:
    """The namespace that names are stored in."""
    return frame.globals if frame.namespace is None else frame.namespace


@opcode("LOAD_NAME", decode=name)
def load_name(frame: Frame, stack: list[Any], name: str) -> None:
    """``-> value``, out of the namespace, the globals or the builtins."""
    names = namespace(frame)
    value = looked_up(names, name)
    if names is frame.globals:
        value = reported(frame, name, value)
    elif value is NULL:
        value = reported(frame, name, dict.get(frame.globals, name, NULL))
    stack.append(value)


@opcode("STORE_NAME", decode=name)
def store_name(frame: Frame, stack: list[Any], name: str) -> None:
    """``value ->``."""
    names = namespace(frame)
    watch = frame.machine.store_global
    if watch is not None and names is frame.globals:
        watch(names, name, stack[-1])
    names[name] = stack.pop()


@opcode("DELETE_NAME", decode=name)
def delete_name(frame: Frame, stack: list[Any], name: str) -> None:
    """Unbind a name."""
    names = namespace(frame)
    watch = frame.machine.delete_global
    if watch is not None and names is frame.globals and name in names:
        watch(names, name)
    try:
        del names[name]
    except KeyError:
        failed = True
    else:
        failed = False
    if failed:
        raise undefined(name)


@opcode("MAKE_CELL")
def make_cell(frame: Frame, stack: list[Any], index: int) -> None:
    """Put a local variable into a cell."""
    value = frame.locals[index]
    frame.locals[index] = CellType() if value is NULL else CellType(value)


@opcode("COPY_FREE_VARS")
def copy_free_vars(frame: Frame, stack: list[Any], count: int) -> None:
    """Bring the cells of the closure into the frame."""
    frame.locals[frame.program.free :] = frame.function.__closure__ or ()


def cell_value(frame: Frame, variable: tuple[int, str]) -> Any:
    """The content of a cell."""
    index, name = variable
    try:
        value = frame.locals[index].cell_contents
    except ValueError:
        value = NULL
    if value is NULL:
        if frame.machine.missing_closure is not None and index >= frame.program.free:
            frame.machine.missing_closure(frame.function, name)
        raise unbound_cell(frame, index, name)
    watch = frame.machine.load_closure
    if watch is not None and index >= frame.program.free:
        value = watch(frame.function, name, value)
    return value


def unbound_cell(frame: Frame, index: int, name: str) -> NameError:
    """The error of using an empty cell."""
    return unbound_free(name) if index >= frame.program.free else unbound_local(name)


@opcode("LOAD_DEREF", decode=fast_name)
def load_deref(frame: Frame, stack: list[Any], variable: tuple[int, str]) -> None:
    """``-> value``, out of a cell."""
    index, name = variable
    try:
        stack.append(frame.locals[index].cell_contents)
        return
    except ValueError:
        pass
    raise unbound_cell(frame, index, name)


@opcode("LOAD_DEREF", decode=fast_name, watch=("load_closure",))
def load_deref_watched(frame: Frame, stack: list[Any], variable: tuple[int, str]) -> None:
    """``-> value``, out of a cell."""
    stack.append(cell_value(frame, variable))


@opcode("LOAD_CLASSDEREF", until=(3, 12), decode=fast_name)
def load_classderef(frame: Frame, stack: list[Any], variable: tuple[int, str]) -> None:
    """``-> value``, out of the class body's namespace or a cell."""
    load_deref_from(frame, stack, frame.namespace, variable)


def load_deref_from(frame: Frame, stack: list[Any], names: Any, variable: tuple[int, str]) -> None:
    """Push a name out of ``names`` or, failing that, a cell."""
    try:
        value = names[variable[1]]
    except KeyError:
        value = NULL
    stack.append(cell_value(frame, variable) if value is NULL else value)


@opcode("STORE_DEREF", decode=fast_name)
def store_deref(frame: Frame, stack: list[Any], variable: tuple[int, str]) -> None:
    """``value ->``, into a cell."""
    frame.locals[variable[0]].cell_contents = stack.pop()


@opcode("STORE_DEREF", decode=fast_name, watch=("store_closure",))
def store_deref_watched(frame: Frame, stack: list[Any], variable: tuple[int, str]) -> None:
    """``value ->``, into a cell."""
    cell = frame.locals[variable[0]]
    frame.machine.store_closure(cell, variable[1], stack[-1])
    cell.cell_contents = stack.pop()


@opcode("DELETE_DEREF", decode=fast_name)
def delete_deref(frame: Frame, stack: list[Any], variable: tuple[int, str]) -> None:
    """Empty a cell."""
    index, name = variable
    cell = frame.locals[index]
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        empty = True
    else:
        empty = False
    if empty:
        raise unbound_cell(frame, index, name)
    del cell.cell_contents


@opcode("SETUP_ANNOTATIONS")
def setup_annotations(frame: Frame, stack: list[Any], _: object) -> None:
    """Make sure that the namespace has ``__annotations__``."""
    names = namespace(frame)
    try:
        names["__annotations__"]
    except KeyError:
        missing = True
    else:
        missing = False
    if missing:
        names["__annotations__"] = {}
