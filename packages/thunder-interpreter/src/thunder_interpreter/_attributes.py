"""Attribute access as CPython does it, with the Python code it runs (descriptors, ``__getattr__``) interpreted."""

from collections.abc import Callable
from types import FunctionType, ModuleType, TracebackType, WrapperDescriptorType
from typing import Any

from thunder_interpreter._calls import call, call_native, operation
from thunder_interpreter._frame import AnyFrame, Frame
from thunder_interpreter._generators import RESUMABLE_TYPES
from thunder_interpreter._generators import attribute as generator_attribute
from thunder_interpreter._machine import Machine, Outcome, Special
from thunder_interpreter._native_callables import KINDS, tell_of_held
from thunder_interpreter._natives import replaces
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._protocol import Call, Protocol, start
from thunder_interpreter._traceback import interpreted_frame
from thunder_interpreter._types import DICT, HEAP_TYPE, MRO, python_function, raw_attribute

keep_builtins(globals())


OBJECT_GET = object.__dict__["__getattribute__"]
TYPE_GET = type.__dict__["__getattribute__"]
MODULE_GET = vars(ModuleType)["__getattribute__"]
SUPER_GET = super.__dict__["__getattribute__"]
PECULIAR_GET = (TYPE_GET, MODULE_GET, SUPER_GET)
OF_SUPER = tuple([super.__dict__[name].__get__ for name in ("__thisclass__", "__self_class__", "__self__")])
"""What tells the class behind which a ``super`` object looks, and of which class and object."""
PROPERTY_GET = property.__dict__["__get__"]
OBJECT_SET = object.__dict__["__setattr__"]
OBJECT_DELETE = object.__dict__["__delattr__"]
TYPE_SET = type.__dict__["__setattr__"]
TYPE_DELETE = type.__dict__["__delattr__"]


class Access:
    """What is known about the attributes of the instances of one class.

    Attributes:
        native: names that native ``getattr`` reads without running any interpretable Python.
        direct: as ``native``, in a class with a ``__getattr__`` in Python, which may follow.
        getters: the Python functions of properties, by name.
        native_set: names that native ``setattr`` and ``delattr`` write so.
        fallback: the class' ``__getattr__``, if it is Python.
        generic: whether ``get``, of whichever class in C, looks for descriptors as ``object.__getattribute__`` does.
    """

    __slots__ = ("direct", "fallback", "generic", "get", "getters", "native", "native_set")

    def __init__(self, machine: Machine, cls: type) -> None:
        self.native: set[str] = set()
        self.direct: set[str] = set()
        self.getters: dict[str, Any] = {}
        self.native_set: set[str] = set()
        self.get = raw_attribute(cls, "__getattribute__")
        self.generic = type(self.get) is WrapperDescriptorType and self.get not in PECULIAR_GET
        fallback = raw_attribute(cls, "__getattr__")
        self.fallback = fallback if python_function(machine, fallback) else None


def access(machine: Machine, cls: type) -> Access:
    """What is known about ``cls``."""
    found: Access | None = machine.types.get(cls)
    if found is None:
        found = machine.types[cls] = Access(machine, cls)
    return found


def load(frame: AnyFrame, obj: object, name: str) -> Outcome:
    """Push the attribute ``name`` of ``obj``."""
    machine = frame.machine
    cls = type(obj)
    known = machine.types.get(cls)
    if known is None:
        known = access(machine, cls)
    if name in known.native:
        watch = machine.load_attribute
        if watch is None:
            frame.stack.append(getattr(obj, name))
        else:
            frame.stack.append(watch(obj, name, native_get(machine, obj, name)))
        return None
    if name in known.direct:
        return push_or_fall_back(frame, obj, name, known)
    getter = known.getters.get(name)
    if getter is not None:
        return looking_up(call(frame, getter, [obj], {}), obj, name)
    return load_slowly(frame, obj, name, known)


def native_get(machine: Machine, obj: object, name: str) -> Any:
    """``getattr`` that runs no interpretable code, and reports a missing attribute."""
    try:
        return getattr(obj, name)
    except AttributeError:
        if machine.missing_attribute is not None:
            machine.missing_attribute(obj, name)
        raise


def load_slowly(frame: AnyFrame, obj: Any, name: str, known: Access) -> Outcome:
    """Find out how ``name`` is looked up, remember that if it is native, and do it."""
    machine = frame.machine
    cls = type(obj)
    get = known.get
    if cls in RESUMABLE_TYPES and name[:3] in ("gi_", "cr_", "ag_"):
        frame.stack.append(generator_attribute(obj, name))
        return None
    if cls is TracebackType and name == "tb_frame":
        frame.stack.append(interpreted_frame(obj.tb_frame))
        return None
    if type(get) is FunctionType:
        if not python_function(machine, get):
            return push_native(frame, obj, name)
        if known.fallback is None:
            return looking_up(call(frame, get, [obj, name], {}), obj, name)
        return start(frame, falling_back(Call(get, obj, name), known.fallback, obj, name))
    getter = instance_getter(machine, obj, cls, name) if known.generic else find_getter(machine, obj, cls, name, get)
    if getter is None:
        always = known.generic and not runs_python(machine, cls, name)
        if known.fallback is None:
            if always:
                known.native.add(name)
            return push_native(frame, obj, name)
        if always:
            known.direct.add(name)
        return push_or_fall_back(frame, obj, name, known)
    fn, args = getter
    if known.fallback is None:
        if len(args) == 1 and known.generic:
            known.getters[name] = fn
        return looking_up(call(frame, fn, args, {}), obj, name)
    return start(frame, falling_back(Call(fn, *args), known.fallback, obj, name))


def runs_python(machine: Machine, cls: type, name: str) -> bool:
    """Whether the class holds a descriptor in Python under ``name``, which an instance's dictionary may hide."""
    found = raw_attribute(cls, name)
    return found is not None and python_function(machine, raw_attribute(type(found), "__get__"))


def push_native(frame: AnyFrame, obj: object, name: str) -> Outcome:
    """Push what native ``getattr`` finds."""
    machine = frame.machine
    value = native_get(machine, obj, name)
    if machine.load_attribute is not None:
        value = machine.load_attribute(obj, name, value)
    frame.stack.append(value)
    return None


def push_or_fall_back(frame: AnyFrame, obj: object, name: str, known: Access) -> Outcome:
    """Push what the class' own lookup finds, or call its ``__getattr__``."""
    machine = frame.machine
    try:
        value = known.get(obj, name)
    except AttributeError:
        if machine.missing_attribute is not None:
            machine.missing_attribute(obj, name)
    else:
        if machine.load_attribute is not None:
            value = machine.load_attribute(obj, name, value)
        frame.stack.append(value)
        return None
    return looking_up(call(frame, known.fallback, [obj, name], {}), obj, name)


def looking_up(outcome: Outcome, obj: object, name: str) -> Outcome:
    """Let a frame that computes an attribute know which, for the ``AttributeError`` it may raise."""
    if type(outcome) is Frame:
        outcome.looked_up = (obj, name)
    return outcome


def falling_back(lookup: Call, fallback: object, obj: object, name: str) -> Protocol:
    """Look an attribute up; if that raises ``AttributeError``, call ``__getattr__``."""
    try:
        return (yield lookup)
    except AttributeError:
        pass
    return (yield Call(fallback, obj, name))


def find_getter(machine: Machine, obj: object, cls: type, name: str, get: object) -> tuple[Any, list[Any]] | None:
    """As ``instance_getter``, where classes, modules and ``super`` objects are asked."""
    if get is SUPER_GET:
        return super_getter(machine, obj, name)
    if get is TYPE_GET:
        return class_getter(machine, obj, cls, name)
    if get is MODULE_GET and raw_attribute(cls, name) is not None:
        return instance_getter(machine, obj, cls, name)
    if get is MODULE_GET and name not in obj.__dict__:
        hook = obj.__dict__.get("__getattr__")
        if python_function(machine, hook):
            if machine.missing_attribute is not None:
                machine.missing_attribute(obj, name)
            if machine.load_attribute is not None:
                machine.load_attribute(obj, "__getattr__", hook)
            return hook, [name]
    return None


def instance_getter(machine: Machine, obj: object, cls: type, name: str) -> tuple[Any, list[Any]] | None:
    """The Python function (and its arguments) that computes an attribute, or ``None`` if native lookup is right."""
    found = raw_attribute(cls, name)
    if found is None:
        return None
    kind = type(found)
    if kind.__flags__ & HEAP_TYPE and not is_data(kind) and name in getattr(obj, "__dict__", ()):
        return None
    return descriptor_getter(machine, found, obj, cls, name)


def super_getter(machine: Machine, asked: Any, name: str) -> tuple[Any, list[Any]] | None:
    """As ``instance_getter``, for what ``super`` finds behind a class."""
    start, cls, obj = [part(asked) for part in OF_SUPER]
    if cls is None or name == "__class__":
        return None
    order = MRO(cls)
    found = next((DICT(base)[name] for base in order[order.index(start) + 1 :] if name in DICT(base)), None)
    if found is None:
        return None
    getter = descriptor_getter(machine, found, None if obj is cls else obj, cls, name)
    if getter is not None and machine.load_attribute is not None:
        machine.load_attribute(asked, name, found)
    return getter


def descriptor_getter(machine: Machine, found: Any, obj: object, cls: type, name: str) -> tuple[Any, list[Any]] | None:
    """The Python function (and its arguments) that a descriptor calls for an attribute; ``None`` if it calls none."""
    kind = type(found)
    if kind is property:
        if obj is None:
            return None
        if type(found.fget) in KINDS:
            tell_of_held(machine, cls, name, found)
            return found.fget, [obj]
        return (found.fget, [obj]) if python_function(machine, found.fget) else None
    if not kind.__flags__ & HEAP_TYPE:
        return None
    hook = raw_attribute(kind, "__get__")
    if not python_function(machine, hook):
        if issubclass(kind, property) and obj is not None and python_function(machine, found.fget):
            return found.fget, [obj]
        return None
    return hook, [found, obj, cls]


def class_getter(machine: Machine, obj: Any, meta: type, name: str) -> tuple[Any, list[Any]] | None:
    """As ``instance_getter``, for what ``type.__getattribute__`` does: attributes of the class ``obj``."""
    on_meta = raw_attribute(meta, name)
    if on_meta is not None and is_data(type(on_meta)):
        return instance_getter(machine, obj, meta, name)
    found = raw_attribute(obj, name)
    if found is not None:
        hook = raw_attribute(type(found), "__get__")
        return (hook, [found, None, obj]) if python_function(machine, hook) else None
    if on_meta is not None:
        return instance_getter(machine, obj, meta, name)
    return None


def is_data(kind: type) -> bool:
    """Whether descriptors of a type go before the instance's dictionary."""
    return raw_attribute(kind, "__set__") is not None or raw_attribute(kind, "__delete__") is not None


def store(frame: AnyFrame, obj: object, name: str, value: object) -> Outcome:
    """Set an attribute; a call that does it leaves its result on the stack, for the caller to drop."""
    machine = frame.machine
    cls = type(obj)
    known = access(machine, cls)
    if name not in known.native_set:
        setter = find_setter(machine, cls, name, "__setattr__", "__set__", "fset")
        if setter is not None:
            fn, owner = setter
            return call(frame, fn, [obj, name, value] if owner is None else [*owner, obj, value], {})
        if not isinstance(obj, type):
            known.native_set.add(name)
        else:
            machine.run.forget_types()
    if machine.store_attribute is not None:
        machine.store_attribute(obj, name, value)
    setattr(obj, name, value)
    frame.stack.append(None)
    return None


def delete(frame: AnyFrame, obj: object, name: str) -> Outcome:
    """Delete an attribute; as ``store`` otherwise."""
    machine = frame.machine
    cls = type(obj)
    setter = find_setter(machine, cls, name, "__delattr__", "__delete__", "fdel")
    if setter is not None:
        fn, owner = setter
        return call(frame, fn, [obj, name] if owner is None else [*owner, obj], {})
    if isinstance(obj, type):
        machine.run.forget_types()
    if machine.delete_attribute is not None:
        machine.delete_attribute(obj, name)
    delattr(obj, name)
    frame.stack.append(None)
    return None


def find_setter(
    machine: Machine, cls: type, name: str, special: str, hook_name: str, part: str
) -> tuple[Any, tuple[Any, ...] | None] | None:
    """The Python function that sets or deletes ``name``, and the descriptor to call it with.

    The second part is ``None`` for ``__setattr__`` and ``__delattr__`` of the class, which take the name.
    """
    custom = raw_attribute(cls, special)
    if type(custom) is FunctionType:
        return (custom, None) if python_function(machine, custom) else None
    found = raw_attribute(cls, name)
    if found is None:
        return None
    kind = type(found)
    if kind is property:
        fn = getattr(found, part)
        return (fn, ()) if python_function(machine, fn) else None
    if kind.__flags__ & HEAP_TYPE:
        hook = raw_attribute(kind, hook_name)
        if python_function(machine, hook):
            return hook, (found,)
        if issubclass(kind, property) and python_function(machine, getattr(found, part)):
            return getattr(found, part), ()
    return None


def name_of(frame: AnyFrame, obj: object, name: object) -> object:
    """Return the name of an attribute that is asked for: what stands for text is told as a key of a dict is."""
    return name if isinstance(name, str) or frame.machine.key is None else frame.machine.key(obj, name)


@replaces(getattr)
def special_getattr(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``getattr``."""
    if len(args) > 1:
        args[1] = name_of(frame, args[0], args[1])
    if kwargs or not 2 <= len(args) <= 3 or not isinstance(args[1], str):
        return call_native(frame, getattr, args, kwargs)
    if len(args) == 2:
        return load(frame, args[0], args[1])
    return start(frame, getting(*args))


def getting(obj: object, name: str, default: object) -> Protocol:
    """``getattr`` with a default."""
    try:
        return (yield Call(getattr, obj, name))
    except AttributeError:
        return default


@replaces(PROPERTY_GET)
def special_property_get(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``property.__get__``, where it is called by name."""
    if not kwargs and len(args) in (2, 3) and isinstance(args[0], property) and args[1] is not None:
        if python_function(frame.machine, args[0].fget):
            return call(frame, args[0].fget, [args[1]], {})
    return call_native(frame, PROPERTY_GET, args, kwargs)


@operation(hasattr, 2)
def special_hasattr(frame: AnyFrame, obj: object, name: object) -> Outcome:
    """``hasattr``."""
    name = name_of(frame, obj, name)
    return start(frame, having(obj, name)) if isinstance(name, str) else call_native(frame, hasattr, [obj, name], {})


def having(obj: object, name: str) -> Protocol:
    """``hasattr``."""
    try:
        yield Call(getattr, obj, name)
    except AttributeError:
        return False
    return True


@operation(setattr, 3)
def special_setattr(frame: AnyFrame, obj: object, name: object, value: object) -> Outcome:
    """``setattr``."""
    name = name_of(frame, obj, name)
    if not isinstance(name, str):
        return call_native(frame, setattr, [obj, name, value], {})
    return start(frame, discarding(Call(STORE, obj, name, value)))


@operation(delattr, 2)
def special_delattr(frame: AnyFrame, obj: object, name: object) -> Outcome:
    """``delattr``."""
    name = name_of(frame, obj, name)
    if not isinstance(name, str):
        return call_native(frame, delattr, [obj, name], {})
    return start(frame, discarding(Call(DELETE, obj, name)))


def discarding(request: Call) -> Protocol:
    """Do a call and return ``None`` whatever it returns."""
    yield request
    return None


def STORE(obj: object, name: str, value: object) -> None:  # noqa: N802
    """Stands for the storing of an attribute, when a protocol asks for it."""
    setattr(obj, name, value)


def DELETE(obj: object, name: str) -> None:  # noqa: N802
    """Stands for the deleting of an attribute, when a protocol asks for it."""
    delattr(obj, name)


operation(STORE, 3)(store)
operation(DELETE, 2)(delete)


def generic_lookup(get: Any, kind: type, getter_of: Callable[..., Any]) -> Special:
    """What one of the generic lookups of objects of a kind does, whatever the class overrides."""

    def special(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
        if kwargs or len(args) != 2 or type(args[1]) is not str or not isinstance(args[0], kind):
            return call_native(frame, get, args, kwargs)
        machine, (obj, name) = frame.machine, args
        getter: tuple[Any, list[Any]] | None = getter_of(machine, obj, type(obj), name)
        if getter is not None:
            return call(frame, *getter, {})
        try:
            value = get(obj, name)
        except AttributeError:
            if machine.missing_attribute is not None:
                machine.missing_attribute(obj, name)
            raise
        if machine.load_attribute is not None:
            value = machine.load_attribute(obj, name, value)
        frame.stack.append(value)
        return None

    return special


replaces(OBJECT_GET)(generic_lookup(OBJECT_GET, object, instance_getter))
replaces(TYPE_GET)(generic_lookup(TYPE_GET, type, class_getter))


@replaces(OBJECT_SET)
def special_object_set(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``object.__setattr__``."""
    machine = frame.machine
    if kwargs or len(args) != 3 or type(args[1]) is not str:
        return call_native(frame, OBJECT_SET, args, kwargs)
    obj, name, value = args
    found = raw_attribute(type(obj), name)
    if type(found) is property and python_function(machine, found.fset):
        return start(frame, discarding(Call(found.fset, obj, value)))
    if machine.store_attribute is not None:
        machine.store_attribute(obj, name, value)
    OBJECT_SET(obj, name, value)
    frame.stack.append(None)
    return None


@replaces(OBJECT_DELETE)
def special_object_delete(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``object.__delattr__``."""
    machine = frame.machine
    if kwargs or len(args) != 2 or type(args[1]) is not str:
        return call_native(frame, OBJECT_DELETE, args, kwargs)
    if machine.delete_attribute is not None:
        machine.delete_attribute(*args)
    OBJECT_DELETE(*args)
    frame.stack.append(None)
    return None


@replaces(TYPE_SET, TYPE_DELETE)
def special_type_set(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``type.__setattr__`` and ``type.__delattr__``: what is known about classes no longer holds."""
    machine = frame.machine
    machine.run.forget_types()
    if machine.store_attribute is not None and len(args) == 3:
        machine.store_attribute(*args)
    return call_native(frame, TYPE_SET if len(args) == 3 else TYPE_DELETE, args, kwargs)
