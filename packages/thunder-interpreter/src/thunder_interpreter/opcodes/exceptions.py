"""Raising, handling and context managers."""

from typing import Any

from thunder_interpreter._frame import Frame
from thunder_interpreter._loop import handled_exception, set_context
from thunder_interpreter._machine import Outcome
from thunder_interpreter._native_callables import tell_of_special
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._protocol import Call, Protocol, start
from thunder_interpreter._registry import opcode
from thunder_interpreter._types import raw_attribute

keep_builtins(globals())


@opcode("PUSH_EXC_INFO")
def push_exc_info(frame: Frame, stack: list[Any], _: object) -> None:
    """``error -> previous, error``; ``error`` is being handled from now on."""
    error = stack.pop()
    stack.append(frame.handled)
    stack.append(error)
    frame.handled = error


@opcode("POP_EXCEPT")
def pop_except(frame: Frame, stack: list[Any], _: object) -> None:
    """``previous ->``, which is being handled again."""
    frame.handled = stack.pop()


@opcode("CHECK_EXC_MATCH")
def check_exc_match(frame: Frame, stack: list[Any], _: object) -> None:
    """``error, classes -> error, matches``."""
    classes = stack.pop()
    check_catchable(classes, "catching classes that do not inherit from BaseException is not allowed")
    stack.append(matches(stack[-1], classes))


def check_catchable(classes: object, message: str) -> None:
    """Refuse what cannot be caught."""
    for cls in classes if isinstance(classes, tuple) else (classes,):
        if not (isinstance(cls, type) and issubclass(cls, BaseException)):
            raise TypeError(message)


def matches(error: BaseException, classes: object) -> bool:
    """Whether an ``except`` clause catches ``error``; hooks of metaclasses do not count."""
    mro = type(error).__mro__
    return any(cls in mro for cls in (classes if isinstance(classes, tuple) else (classes,)))


@opcode("RAISE_VARARGS")
def raise_varargs(frame: Frame, stack: list[Any], count: int) -> Outcome:
    """``raise``, ``raise error`` or ``raise error from cause``."""
    if count == 0:
        handled = handled_exception(frame)
        if handled is None:
            raise RuntimeError("No active exception to reraise")
        frame.reraising = -1
        raise handled
    cause = stack.pop() if count == 2 else frame
    error = stack.pop()
    if isinstance(error, BaseException) and not isinstance(cause, type):
        raise_instance(frame, error, cause)
    return start(frame, raising(frame, error, cause))


def raising(frame: Frame, error: object, cause: object) -> Protocol:
    """Make the instances that ``raise`` needs, and raise."""
    if isinstance(error, type) and issubclass(error, BaseException):
        cls = error
        error = yield Call(cls)
        if not isinstance(error, BaseException):
            found = type(error)
            raise TypeError(f"calling {cls} should have returned an instance of BaseException, not {found}")
    elif not isinstance(error, BaseException):
        raise TypeError("exceptions must derive from BaseException")
    if isinstance(cause, type) and issubclass(cause, BaseException):
        made = yield Call(cause)
        if not isinstance(made, BaseException):
            raise TypeError(f"calling {cause} should have returned an instance of BaseException, not {type(made)}")
        cause = made
    raise_instance(frame, error, cause)


def raise_instance(frame: Frame, error: BaseException, cause: object) -> None:
    """Raise ``error``; the frame itself as ``cause`` stands for none."""
    if cause is not frame:
        if cause is not None and not isinstance(cause, BaseException):
            raise TypeError("exception causes must derive from BaseException")
        error.__cause__ = cause
    handled = handled_exception(frame)
    set_context(error, handled)
    raise error


@opcode("RERAISE")
def reraise(frame: Frame, stack: list[Any], depth: int) -> None:
    """Raise the top again; its traceback has this frame already. Where it was raised may lie ``depth`` below."""
    frame.reraising = stack[-depth - 1] if depth else -1
    raise stack.pop()


def special_method(obj: object, name: str) -> Any:
    """The method ``name`` of the class of ``obj``, bound; ``None`` if there is none."""
    cls = type(obj)
    found = raw_attribute(cls, name)
    if found is None:
        return None
    get = getattr(type(found), "__get__", None)
    return found if get is None else get(found, obj, cls)


def entering(obj: object, enter_name: str, exit_name: str, kind: str) -> Protocol:
    """Find the methods of a context manager and call the first; what it returns goes above the second."""
    enter = special_method(obj, enter_name)
    name = type(obj).__name__
    if enter is None:
        raise TypeError(f"'{name}' object does not support the {kind} protocol")
    leave = special_method(obj, exit_name)
    if leave is None:
        raise TypeError(f"'{name}' object does not support the {kind} protocol (missed {exit_name} method)")
    return leave, (yield Call(enter))


@opcode("BEFORE_WITH")
def before_with(frame: Frame, stack: list[Any], _: object) -> Outcome:
    """``manager -> exit, entered``."""
    return start(frame, entering_below(frame, stack.pop(), "__enter__", "__exit__", "context manager"))


@opcode("BEFORE_ASYNC_WITH")
def before_async_with(frame: Frame, stack: list[Any], _: object) -> Outcome:
    """``manager -> exit, awaitable``."""
    manager = stack.pop()
    return start(frame, entering_below(frame, manager, "__aenter__", "__aexit__", "asynchronous context manager"))


def entering_below(frame: Frame, *names: Any) -> Protocol:
    """Push the exit method; the result of the enter method follows."""
    for name in names[1:3]:
        tell_of_special(frame.machine, names[0], name)
    leave, entered = yield from entering(*names)
    frame.stack.append(leave)
    return entered


@opcode("WITH_EXCEPT_START", until=(3, 14))
def with_except_start(frame: Frame, stack: list[Any], _: object) -> Outcome:
    """``exit, offset, previous, error -> ..., result`` of ``exit(type, error, traceback)``."""
    error = stack[-1]
    return frame.machine.call(frame, stack[-4], [type(error), error, error.__traceback__], {})


@opcode("CHECK_EG_MATCH")
def check_eg_match(frame: Frame, stack: list[Any], _: object) -> None:
    """``group, classes -> rest, match``, each possibly ``None``."""
    classes = stack.pop()
    error = stack.pop()
    check_catchable(classes, "catching classes that do not inherit from BaseException is not allowed")
    for cls in classes if isinstance(classes, tuple) else (classes,):
        if issubclass(cls, BaseExceptionGroup):
            raise TypeError("catching ExceptionGroup with except* is not allowed. Use except instead.")
    rest, match = split(error, classes)
    stack.append(rest)
    stack.append(match)
    if match is not None:
        frame.handled = match


def split(error: Any, classes: Any) -> tuple[Any, Any]:
    """``(rest, match)`` of a group, or of a plain exception, which a match wraps in a group."""
    if error is None:
        return None, None
    if matches(error, classes):
        if isinstance(error, BaseExceptionGroup):
            return None, error
        return None, BaseExceptionGroup("", [error])
    if isinstance(error, BaseExceptionGroup):
        parts = error.split(classes)
        if type(parts) is not tuple:
            raise TypeError(f"{type(error).__name__}.split must return a tuple, not {type(parts).__name__}")
        if len(parts) < 2:
            raise TypeError(f"{type(error).__name__}.split must return a 2-tuple, got tuple of size {len(parts)}")
        return parts[1], parts[0]
    return error, None


@opcode("PREP_RERAISE_STAR", until=(3, 12))
def prep_reraise_star(frame: Frame, stack: list[Any], _: object) -> None:
    """``original, errors -> error or None``: what is left of a group after its ``except*`` clauses."""
    errors = stack.pop()
    stack.append(left_to_raise(stack.pop(), errors))


def left_to_raise(original: BaseException, errors: list[BaseException | None]) -> BaseException | None:
    """Merge what ``except*`` clauses raised with what none of them handled."""
    present = [error for error in errors if error is not None]
    if not present:
        return None
    if not isinstance(original, BaseExceptionGroup):
        return present[0]
    raised = [error for error in present if not same_metadata(error, original)]
    kept: set[int] = set()
    for error in present:
        if same_metadata(error, original):
            kept.update(leaves(error))
    rest = original.split(lambda error: id(error) in kept)[0] if kept else None
    if not raised:
        return rest
    if rest is not None:
        raised.append(rest)
    return raised[0] if len(raised) == 1 else BaseExceptionGroup("", raised)


def same_metadata(a: BaseException, b: BaseException) -> bool:
    """Whether ``a`` was split off ``b``."""
    return (
        getattr(a, "__notes__", None) is getattr(b, "__notes__", None)
        and a.__traceback__ is b.__traceback__
        and a.__cause__ is b.__cause__
        and a.__context__ is b.__context__
    )


def leaves(error: BaseException) -> set[int]:
    """The identities of the exceptions in a group that are no groups."""
    if not isinstance(error, BaseExceptionGroup):
        return {id(error)}
    found: set[int] = set()
    for inner in error.exceptions:
        found |= leaves(inner)
    return found
