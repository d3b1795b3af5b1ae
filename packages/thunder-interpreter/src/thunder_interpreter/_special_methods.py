"""Builtins and operators that run special methods."""

import abc
import operator
from collections.abc import Callable
from typing import Any

from thunder_interpreter import _items, _iteration, _operators, _truth
from thunder_interpreter._bridges import as_operand
from thunder_interpreter._calls import call, call_native, operation
from thunder_interpreter._frame import AnyFrame
from thunder_interpreter._machine import Machine, Outcome
from thunder_interpreter._native_callables import tell_of_special
from thunder_interpreter._natives import KEYS, NOTHING, SPECIAL_METHODS, replaces
from thunder_interpreter._operators import ARITHMETIC, COMPARE, INPLACE, UNARY, Shim
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._protocol import Call, Protocol, start
from thunder_interpreter._types import HEAP_TYPE, python_function, raw_attribute

keep_builtins(globals())


def push(frame: AnyFrame, value: object) -> None:
    """Push a result."""
    frame.stack.append(value)


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


OBJECT_STR = object.__dict__["__str__"]


@operation(str, 1, SPECIAL_METHODS)
def special_str(frame: AnyFrame, value: object) -> Outcome:
    """``str``."""
    cls = type(value)
    if cls in frame.machine.plain or raw_attribute(cls, "__str__") is not OBJECT_STR:
        return special_method(frame, str, "__str__", [value])
    return special_method(frame, repr, "__repr__", [value])


OBJECT_FORMAT = object.__dict__["__format__"]


@replaces(format, runs=SPECIAL_METHODS)
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


OBJECT_REDUCE = object.__dict__["__reduce_ex__"]


@operation(OBJECT_REDUCE, 2)
def special_reduce(frame: AnyFrame, obj: object, protocol: object) -> Outcome:
    """``object.__reduce_ex__``, which calls the ``__reduce__`` of the object's class, or its ``__getstate__``."""
    machine = frame.machine
    cls = type(obj)
    reduce, state = raw_attribute(cls, "__reduce__"), raw_attribute(cls, "__getstate__")
    if python_function(machine, reduce):
        return call(frame, reduce, [obj], {})
    if python_function(machine, state) and isinstance(protocol, int) and protocol >= 2:  # else ``copyreg`` does it all
        return start(frame, reducing(state, obj, protocol))
    return call_native(frame, OBJECT_REDUCE, [obj, protocol], {})


def reducing(getter: object, obj: object, protocol: object) -> Protocol:
    """Say how a copy of an object is made that has a ``__getstate__`` in Python."""
    state = yield Call(getter, obj)
    how, given, _, *rest = OBJECT_REDUCE(obj, protocol)
    return how, given, state, *rest


@operation(isinstance, 2, NOTHING)
def special_isinstance(frame: AnyFrame, obj: object, cls: object) -> Outcome:
    """``isinstance``."""
    if type(obj) is cls:
        return push(frame, True)
    return checking(frame, isinstance, "__instancecheck__", obj, cls)


@operation(issubclass, 2, NOTHING)
def special_issubclass(frame: AnyFrame, obj: object, cls: object) -> Outcome:
    """``issubclass``."""
    return checking(frame, issubclass, "__subclasscheck__", obj, cls)


def checking(frame: AnyFrame, native: object, name: str, obj: object, cls: object) -> Outcome:
    """Ask the metaclass' hook if it is Python, and an object whose class says so in Python what its class is."""
    machine = frame.machine
    if native is isinstance and type(obj).__flags__ & HEAP_TYPE and claims_a_class(machine, type(obj)):
        return start(frame, checking_claim(machine, obj, cls))
    if type(cls) is tuple:
        if any(type(part) is not type for part in cls):
            return start(frame, checking_each(native, obj, cls))
    elif type(cls) is not type:
        hook = raw_attribute(type(cls), name)
        if python_function(machine, hook):
            return start(frame, checking_by_hook(hook, cls, obj))
        tell_of_special(machine, cls, name, (cls, obj))
    return call_native(frame, native, [obj, cls], {})


def claims_a_class(machine: Machine, cls: type) -> bool:
    """Whether instances of a class compute what their ``__class__`` is."""
    found = raw_attribute(cls, "__class__")
    return type(found) is property and python_function(machine, found.fget)


def checking_claim(machine: Machine, obj: Any, cls: Any) -> Protocol:
    """Ask an object what its class is, for those to see who watch, before the check does."""
    try:
        yield Call(getattr, obj, "__class__")
    except AttributeError:  # then it has the class that it has
        pass
    if machine.opaque_call is not None:
        machine.opaque_call(isinstance, [obj, cls], {})
    return isinstance(obj, cls)


def checking_each(native: object, obj: object, classes: tuple[Any, ...]) -> Protocol:
    """Check against each class in turn."""
    for cls in classes:
        if (yield Call(native, obj, cls)):
            return True
    return False


def checking_by_hook(hook: object, cls: object, obj: object) -> Protocol:
    """Call ``__instancecheck__`` or ``__subclasscheck__``."""
    return (yield Call(bool, (yield Call(hook, cls, obj))))


ABC_INSTANCE: Any = abc._abc_instancecheck  # type: ignore[attr-defined]
ABC_SUBCLASS: Any = abc._abc_subclasscheck  # type: ignore[attr-defined]


@operation(ABC_INSTANCE, 2)
def special_abc_instancecheck(frame: AnyFrame, cls: object, obj: object) -> Outcome:
    """``ABCMeta``'s check of instances in C, which calls ``__subclasscheck__``; that may look at its callers."""
    hook = raw_attribute(type(cls), "__subclasscheck__")
    looks_at_callers = hook is not abc.ABCMeta.__subclasscheck__ or is_protocol(cls)
    if looks_at_callers and python_function(frame.machine, hook):
        return start(frame, checking_instance(hook, cls, obj))
    return call_native(frame, ABC_INSTANCE, [cls, obj], {})


def is_protocol(cls: object) -> bool:
    """Whether ``cls`` is a protocol class of :mod:`typing`, whose check of subclasses looks at its callers."""
    return bool(getattr(cls, "_is_protocol", False))


@operation(ABC_SUBCLASS, 2)
def special_abc_subclasscheck(frame: AnyFrame, cls: object, subclass: object) -> Outcome:
    """``ABCMeta``'s check of subclasses in C, which calls ``__subclasshook__``."""
    if isinstance(subclass, type) and is_protocol(cls):
        return start(frame, checking_subclass(cls, subclass))
    return call_native(frame, ABC_SUBCLASS, [cls, subclass], {})


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


def checking_instance(hook: object, cls: object, instance: object) -> Protocol:
    """Ask whether the class of an instance, or what it says its class is, is a subclass."""
    claimed = yield Call(getattr, instance, "__class__")
    if (yield Call(hook, cls, claimed)):
        return True
    return bool(type(instance) is not claimed and (yield Call(hook, cls, type(instance))))


NOT_THERE = object()


@operation(reversed, 1, SPECIAL_METHODS)
def special_reversed(frame: AnyFrame, value: object) -> Outcome:
    """``reversed``."""
    if frame.machine.special_methods is not None:
        frame.machine.special_methods(reversed, [value])
    method = raw_attribute(type(value), "__reversed__", NOT_THERE)
    if python_function(frame.machine, method):
        return call(frame, method, [value], {})
    if method is NOT_THERE and python_function(frame.machine, raw_attribute(type(value), "__getitem__")):
        return start(frame, reversing(value))
    if frame.machine.watches_iteration and type(value) in (list, tuple):
        return _iteration.push(frame, _iteration.begun_backwards(frame.machine, value))
    return call_native(frame, reversed, [value], {})


def reversing(sequence: object) -> Protocol:
    """Reverse an object of a length and items written in Python; all items are fetched at once, the last one first."""
    items = []
    for index in range((yield Call(len, sequence)) - 1, -1, -1):
        items.append((yield Call(operator.getitem, sequence, index)))
    return iter(items)


@operation(abs, 1, SPECIAL_METHODS)
def special_abs(frame: AnyFrame, value: object) -> Outcome:
    """``abs``."""
    method = raw_attribute(type(value), "__abs__")
    if python_function(frame.machine, method):
        return call(frame, method, [value], {})
    return call_native(frame, abs, [value], {})


operation(len, 1, SPECIAL_METHODS)(lambda frame, value: special_method(frame, len, "__len__", [value]))
operation(repr, 1, SPECIAL_METHODS)(lambda frame, value: special_method(frame, repr, "__repr__", [value]))
operation(hash, 1, SPECIAL_METHODS)(lambda frame, value: special_method(frame, hash, "__hash__", [value]))
operation(bool, 1, SPECIAL_METHODS)(_truth.to_bool)
operation(operator.truth, 1)(_truth.to_bool)
operation(operator.not_, 1)(_truth.negate)
operation(operator.getitem, 2)(_items.subscript)
operation(operator.setitem, 3)(_items.store_item)
operation(operator.delitem, 2)(_items.delete_item)
operation(operator.contains, 2, KEYS)(lambda frame, held, item: _items.contains(frame, item, held, False))
for sign, function in COMPARE.items():
    operation(function, 2)(lambda frame, a, b, sign=sign: _operators.compare(frame, sign, a, b))
for sign, function in [*((sign, function) for sign, (function, _) in ARITHMETIC.items()), *INPLACE.items()]:
    operation(function, 2)(
        lambda frame, a, b, sign=sign: _operators.arithmetic(frame, sign, a, as_operand(frame.machine, sign, a, b))
    )
for sign, (of_one, _) in UNARY.items():
    operation(of_one, 1)(lambda frame, value, sign=sign: _operators.unary(frame, sign, value))
