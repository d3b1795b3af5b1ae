"""The outside world as a program sees it: what it reads becomes guards, what it writes is noted and undone.

The world knows, by identity, the objects that the program reached from its roots and how. Whatever is loaded from one
of them is outside too. Tensors are replaced by traced tensors at that moment; everything else is the real object.
"""

from __future__ import annotations

import enum
import functools
import operator
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from thunder_frontend.answers import Answers
from thunder_frontend.class_reads import GIVEN_AS_THEY_ARE, HEAP_TYPE, ClassReads, class_of, is_mutable
from thunder_frontend.function_reads import BUILTINS, OWN, FunctionReads
from thunder_frontend.guards import (
    AttributeAbsentGuard,
    DistinctObjectsGuard,
    EmptyGuard,
    Guard,
    HeldPartGuard,
    IdentityGuard,
    KeysGuard,
    LengthGuard,
    MembershipGuard,
    SameAsBeforeGuard,
    SameObjectGuard,
    SetGuard,
    TypeGuard,
    ValueGuard,
)
from thunder_frontend.journal import MISSING, Journal, Write
from thunder_frontend.kinds import (
    CODE,
    DICTS,
    IMMUTABLE,
    LISTS,
    MAY_DIE,
    SETS,
    VALUES,
    is_buffer,
    is_of_library,
    items_of,
    length_of,
    refuse_iterators,
)
from thunder_frontend.native_frames import NativeFrames
from thunder_frontend.native_state import NativeState
from thunder_frontend.sources import Source, held
from thunder_frontend.traced_tensor import TracedTensor
from thunder_frontend.unwatched import Unwatched


class World:
    """Everything outside of the program.

    Args:
        tensor: makes a traced tensor of a real one that was read from a source.
        number: makes a number proxy of a number among the arguments; ``None`` where programs fix such numbers.
    """

    def __init__(
        self,
        tensor: Callable[[torch.Tensor, Source, tuple[Any, Any] | None], Any],
        number: Callable[[Any, Source], Any] | None = None,
    ) -> None:
        self._tensor = tensor
        self._number = number
        self._numbers: dict[Any, Any] = {}
        self._class_dicts: dict[int, type] = {}
        self._sources: dict[int, Source] = {}
        self._alive: list[Any] = []
        self.classes = ClassReads(self)
        self.functions = FunctionReads(self)
        self.unwatched = Unwatched(self)
        self.native_frames = NativeFrames(self)
        self.answers = Answers(self)
        self.states = NativeState(self)
        self._facts: set[Any] = set()
        self.guards: list[Guard] = []
        self.log: list[tuple[Any, ...]] = []
        self.journal = Journal()
        self.templates: dict[int, tuple[Any, Any]] = {}

    # --- what is known -------------------------------------------------------------------------------------------

    def source_of(self, value: Any) -> Source | None:
        """Return how the program got at an outside object; ``None`` for its own objects and for scalars."""
        return self._sources.get(id(value))

    def is_held(self, value: Any) -> bool:
        """Whether an object is guarded to be the very same on every call."""
        source = self._sources.get(id(value))
        return source is not None and source.is_held

    def know(self, value: Any, source: Source) -> None:
        """Note that ``value`` is an outside object, reached by ``source``."""
        self.log.append(("know", value, source))
        if id(value) not in self._sources:
            self._sources[id(value)] = source
            self._alive.append(value)

    def hold(self, value: Any, name: str) -> None:
        """Note an object that the compiled function itself holds, such as the function's own or its module.

        What a bound method or a ``functools.partial`` is made of is held with it.
        """
        self.know(value, held(value, name))
        if isinstance(value, types.MethodType):
            self.hold(value.__self__, f"{name}.__self__")
            self.hold(value.__func__, name)
        elif isinstance(value, functools.partial):
            self.hold(value.func, name)
            for part, what in ((value.args, "args"), (value.keywords, "keywords")):
                self.know(part, held(part, f"{name}.{what}"))
                self.contents(part)
        elif type(value).__flags__ & HEAP_TYPE and not isinstance(value, type):
            self.part(value, name, "type")

    def part(self, value: Any, name: str, part: str) -> None:
        """Guard that a part of an object that the compiled function holds stays the very same."""
        if (id(value), part) not in self._facts:
            source = self._sources.get(id(value))
            weak = source if source is not None and source.is_weak else None
            self.require(HeldPartGuard(value, name, part, weak), id(value), part)

    def own_dict(self, obj: Any, source: Source) -> None:
        """Guard that what a held object keeps its attributes in stays the very same dict."""
        if (id(obj), "__dict__") not in self._facts:
            self.part(obj, str(source), "__dict__")

    def require(self, guard: Guard, *fact: Any) -> None:
        """Add a guard, unless the same fact is guarded already."""
        self.log.append(("guard", guard, fact))
        if fact not in self._facts:
            self._facts.add(fact)
            self.guards.append(guard)

    # --- reads ---------------------------------------------------------------------------------------------------

    def read(self, base: Source, kind: str, key: Any, value: Any, slot: tuple[Any, Any] | None = None) -> Any:
        """Take in ``value``, found at ``key`` of an outside object; return what the program shall see.

        Args:
            base: source of the object.
            kind: ``"attribute"``, ``"item"`` or ``"cell"``.
            key: name, key or index.
            value: what is there.
            slot: the container and key where it is kept, if the compiled function holds the container.
        """
        self.log.append(("read", base, kind, key, value, slot))
        if isinstance(value, torch.Tensor):
            return self._tensor(value, Source(base, kind, key), slot)
        place = (id(slot[0]), slot[1]) if slot is not None else (id(base), kind, _hashable(key))
        if self._number is not None and type(value) in (int, float) and slot is None and base.is_of_the_call():
            if place not in self._numbers:
                self._numbers[place] = self._number(value, Source(base, kind, key))
            return self._numbers[place]
        if place in self._facts:
            return value
        self._facts.add(place)
        if slot is not None and type(slot[0]) is tuple:  # held and immutable: it needs no guard
            if not isinstance(value, VALUES) or hasattr(value, "__dict__"):
                self.hold(value, str(Source(base, kind, key)))
            return value
        self._take(Source(base, kind, key), value, slot)
        return value

    def _take(self, source: Source, value: Any, slot: tuple[Any, Any] | None) -> None:
        if isinstance(value, VALUES):
            self.guards.append(ValueGuard(source, value, slot))
            if isinstance(value, enum.Enum):  # the very same, then
                self._hold_from(source, value, self._sources.get(id(value)))
            elif hasattr(value, "__dict__"):
                self.know(value, source)
            return
        refuse_iterators(source, value)
        known = self._sources.get(id(value))
        if isinstance(value, CODE) or slot is not None or isinstance(value, torch.nn.Module):
            if slot is None and isinstance(value, MAY_DIE) and source.is_of_the_call():
                self._same_as_before(source, value, known)
            else:
                self.guards.append(IdentityGuard(source, value, slot))
                self._hold_from(source, value, known)
            return
        if known is not None:
            held_on_to = known.is_held and not known.is_weak
            self.guards.append(IdentityGuard(source, value) if held_on_to else SameObjectGuard(source, known))
            return
        self.guards.append(TypeGuard(source, type(value)))
        self.know(value, source)
        if isinstance(value, types.MethodType):
            self.read(source, "attribute", "__func__", value.__func__)
            self.read(source, "attribute", "__self__", value.__self__)
        elif isinstance(value, functools.partial):
            for name in ("func", "args", "keywords"):
                self.read(source, "attribute", name, getattr(value, name))
            self.contents(value.args)
            self.contents(value.keywords)

    def _same_as_before(self, source: Source, value: Any, known: Source | None) -> None:
        """Guard that a module or a function among the arguments is the very same, without keeping it alive."""
        if known is not None:
            self.guards.append(SameObjectGuard(source, known))
            return
        guard = SameAsBeforeGuard(source, value)
        self.guards.append(guard)
        self._sources[id(value)] = Source(source.base, source.kind, source.key, guard.reference, True, True)
        self._alive.append(value)
        if not isinstance(value, CODE):
            self.hold(value, str(source))

    def _hold_from(self, source: Source, value: Any, known: Source | None) -> None:
        """Note that a guard makes sure that the very same object is found there."""
        if known is not None and not known.is_held:
            self.require(IdentityGuard(known, value), id(value), "identity")
        self._sources[id(value)] = Source(source.base, source.kind, source.key, value, True)
        self._alive.append(value)
        if isinstance(value, type):
            self.classes.metaclass(value)
        if isinstance(value, types.ModuleType) and type(value) is not types.ModuleType:
            self._class_of_module(value)
        if isinstance(value, property):
            for function in (value.fget, value.fset, value.fdel):
                if function is not None:
                    self.know(function, held(function, str(source)))
        elif isinstance(value, (classmethod, staticmethod)):
            self.hold(value.__func__, str(source))
        elif not isinstance(value, CODE) or _is_bound(value):
            self.hold(value.__self__ if _is_bound(value) else value, str(source))

    def argument(self, value: Any, source: Source) -> Any:
        """Take in an argument of the call; return what the program shall see."""
        if isinstance(value, torch.Tensor):
            return self._tensor(value, source, None)
        if self._number is not None and type(value) in (int, float):
            return self._number(value, source)
        self._take(source, value, None)
        return value

    def attribute(self, obj: Any, name: str, value: Any) -> Any:
        """Take in ``obj.name``, found without running Python code."""
        if isinstance(obj, super):
            self.classes.after(obj.__thisclass__, obj.__self_class__, name)
            return value
        if isinstance(obj, type):
            return self._attribute_of_class(obj, name, value)
        if isinstance(obj, types.ModuleType) and id(obj) not in self._sources:
            self.know(obj, held(obj, obj.__name__))
        source = self._sources.get(id(obj))
        if source is None:
            self._class_of_own(obj, name)
            return value
        if self.journal.written_at(obj, "attribute", name):
            return value
        if isinstance(obj, types.ModuleType):
            self._class_of_module(obj)
        if type(obj) is types.ModuleType or isinstance(obj, types.ModuleType) and is_of_library(obj.__name__):
            if name not in obj.__dict__:
                return self.read(source, "attribute", name, value)
            return self.read(source, "attribute", name, value, (obj.__dict__, name))
        self.classes.finds_attributes(type(obj))
        own = getattr(obj, "__dict__", None)
        if source.is_held and isinstance(own, dict):
            self.own_dict(obj, source)
        if name == "__dict__":
            self.know(value, held(value, f"{source}.__dict__") if source.is_held else Source(source, "attribute", name))
            return value
        if isinstance(own, dict) and name in own:
            self.classes.no_data_descriptor(type(obj), name)
            slot = (own, name) if source.is_held else None
            return self.read(source, "attribute", name, value, slot)
        return self._found_on_class(obj, source, own, name, value)

    def _class_of_module(self, module: types.ModuleType) -> None:
        """Guard the class of a module of the user's, which may be given another one."""
        if not is_of_library(module.__name__):
            self.part(module, module.__name__, "type")

    def _attribute_of_class(self, cls: type, name: str, value: Any = None) -> Any:
        if self.journal.written_at(cls, "attribute", name) or not is_mutable(cls):
            return value
        if name == "__dict__" and self.classes.is_outside(cls):
            self.know(value, held(value, f"{cls.__qualname__}.__dict__"))
            self._class_dicts[id(value)] = cls
            return value
        if name in OF_TYPES and isinstance(value, str) and self.classes.is_outside(cls):
            return self.read(held(cls, cls.__qualname__), "attribute", name, value)
        self.classes.lookup(cls, name)
        if type(cls) is not type:
            self.classes.lookup(type(cls), name)
        return value

    def _class_of_own(self, obj: Any, name: str) -> None:
        """Take in that an object of the program's own finds an attribute on its class."""
        if is_mutable(type(obj)) and name not in getattr(obj, "__dict__", ()):
            self.classes.finds_attributes(type(obj))
            self.classes.lookup(type(obj), name)

    def know_classes(self, classes: Iterable[type]) -> None:
        """Note classes as outside objects: the types of what is guarded, and what these are derived from."""
        for cls in classes:
            self.know(cls, held(cls, cls.__qualname__))

    def _found_on_class(self, obj: Any, source: Source, own: Any, name: str, value: Any) -> Any:
        raw = self.classes.lookup(type(obj), name)
        if raw is MISSING:
            getter = self.classes.lookup(type(obj), "__getattr__")
            if getter is MISSING or isinstance(getter, types.FunctionType) and not isinstance(obj, types.ModuleType):
                return value
            if getter is dict.__getitem__:
                return self.item(obj, name, value)
            return self.read(source, "attribute", name, value)
        if isinstance(own, dict):
            self._not_shadowed(obj, source, own, name)
        if isinstance(value, types.MethodType):
            self.know(value, Source(source, "attribute", name))
        elif raw is not value and (not isinstance(raw, CODE) or isinstance(raw, types.GetSetDescriptorType)):
            # a slot, or another descriptor written in C, computed the value
            return self.read(source, "attribute", name, value)
        return value

    def deleted(self, write: Write) -> None:
        """Take in whether something was there that the program deleted in the end."""
        container = write.target if write.kind == "item" else getattr(write.target, "__dict__", None)
        source = self._sources.get(id(write.target))
        if isinstance(container, dict) and source is not None:
            inside = source if container is write.target else Source(source, "attribute", "__dict__")
            present = write.before is not MISSING
            self.require(MembershipGuard(inside, write.key, present), str(inside), write.key, "deleted")

    def not_shadowed(self, obj: Any, name: str) -> None:
        """Take in that an outside object has no attribute of its own of that name."""
        source, own = self._sources.get(id(obj)), getattr(obj, "__dict__", None)
        if source is not None and isinstance(own, dict) and name not in own and not isinstance(obj, type):
            self._not_shadowed(obj, source, own, name)

    def _not_shadowed(self, obj: Any, source: Source, own: dict[str, Any], name: str) -> None:
        if source.is_held:
            self.own_dict(obj, source)
            mapping = held(own, f"{source}.__dict__")
            self.require(MembershipGuard(mapping, name, False), id(own), name, "absent")
        else:
            inside = Source(source, "attribute", "__dict__")
            self.require(MembershipGuard(inside, name, False), id(source), name, "absent")

    def given_by_class(self, cls: type, name: str, raw: Any) -> None:
        """Take in a function or a descriptor that a class gives as it is when it is asked for ``name``."""
        source = Source(held(cls, cls.__qualname__), "attribute", name)
        self.guards.append(IdentityGuard(source, raw))
        self._hold_from(source, raw, self._sources.get(id(raw)))

    def class_slot(self, owner: type, name: str, raw: Any) -> None:
        """Take in what a class itself holds under ``name``."""
        self.read(held(owner, owner.__qualname__), "attribute", name, raw, (owner.__dict__, name))

    def attribute_of_tensor(self, tensor: TracedTensor, name: str, value: Any) -> Any:
        """Take in an attribute that somebody gave to a tensor."""
        source = tensor.source
        if source is None or self.journal.written_at(tensor, "attribute", name) or name in tensor.OWN:
            return value
        return self.read(source, "attribute", name, value)

    def given_by_class_of_tensor(self, tensor: TracedTensor, name: str, value: Any) -> Any:
        """Take in an attribute that the class of a tensor has; return what the program shall see."""
        if name in tensor.OWN:
            return value
        cls = class_of(tensor)
        raw = self.classes.lookup(cls, name)
        if type(raw) not in GIVEN_AS_THEY_ARE:
            self.missing_of_tensor(tensor, name)
        if cls is torch.Tensor or raw is self.classes.lookup(torch.Tensor, name):
            return value
        return raw.__get__(tensor, cls) if hasattr(type(raw), "__get__") else raw

    def missing_of_tensor(self, tensor: TracedTensor, name: str) -> None:
        """Take in that nobody gave an attribute of that name to a tensor."""
        source = tensor.source
        self.classes.lookup(class_of(tensor), name)
        if source is not None and not self.journal.written_at(tensor, "attribute", name):
            own = Source(source, "attribute", "__dict__")
            self.require(MembershipGuard(own, name, False), str(source), name, "absent")

    def missing(self, obj: Any, name: str) -> None:
        """Take in that ``obj`` has no attribute ``name``."""
        if isinstance(obj, type):
            self._attribute_of_class(obj, name)
            if type(obj) is not type:
                self.classes.lookup(type(obj), "__getattr__")
            return
        source = self._sources.get(id(obj))
        if source is None and is_mutable(type(obj)):
            self._class_of_own(obj, name)
            self.classes.lookup(type(obj), "__getattr__")
        if source is None or self.journal.written_at(obj, "attribute", name):
            return
        if isinstance(obj, types.ModuleType):
            self._class_of_module(obj)
        self.classes.finds_attributes(type(obj))
        on_class = self.classes.lookup(type(obj), name)
        self.classes.lookup(type(obj), "__getattr__")
        own = getattr(obj, "__dict__", None)
        if isinstance(own, dict) and not isinstance(on_class, types.MemberDescriptorType):
            self._not_shadowed(obj, source, own, name)
        elif isinstance(obj, types.ModuleType) or not hasattr(type(obj), "__getattr__"):
            self.require(AttributeAbsentGuard(source, name), id(source), name, "absent")

    def global_(self, scope: dict[str, Any], name: str, value: Any) -> Any:
        """Take in a global of an interpreted function."""
        if scope is OWN or self.journal.written_at(scope, "item", name):
            return value
        if scope is BUILTINS:
            return self.read(held(BUILTINS, "builtins"), "item", name, value, (BUILTINS, name))
        source = self._sources.get(id(scope))
        if source is None:
            source = held(scope, f"globals of {scope.get('__name__', '?')}")
            self.know(scope, source)
        if name not in scope:
            self.require(MembershipGuard(source, name, False), id(scope), name, "absent")
            return value
        return self.read(source, "item", name, value, (scope, name))

    def missing_global(self, scope: dict[str, Any], name: str) -> None:
        """Take in that neither the globals of an interpreted function nor the builtins have a name."""
        for names, what in ((scope, f"globals of {scope.get('__name__', '?')}"), (BUILTINS, "builtins")):
            if names is not OWN and not self.journal.written_at(names, "item", name):
                self.require(MembershipGuard(held(names, what), name, False), id(names), name, "absent")

    def item(self, container: Any, key: Any, value: Any) -> Any:
        """Take in ``container[key]``."""
        source = self._sources.get(id(container))
        if source is None or isinstance(container, (str, bytes, torch.Size, range)):
            return value
        if is_buffer(container):
            self.unwatched.escapes(container)
            return value
        if isinstance(key, slice):
            self.contents(container)
            return value
        if self._was_written(container, key):
            return value
        if isinstance(container, (list, tuple, deque)):
            if not isinstance(key, int):
                self.unwatched.looked_into(key)
                key = operator.index(key)
            key = key + length_of(container) if key < 0 else key
            self.length(container)
        return self.read(source, "item", key, value, (container, key) if source.is_held else None)

    def _was_written(self, container: Any, key: Any) -> bool:
        if id(container) in self._class_dicts:
            return self.journal.written_at(self._class_dicts[id(container)], "attribute", key)
        return self.journal.wrote(container) or self.journal.written_at(container, "item", key)

    def length(self, container: Any) -> None:
        """Take in how many items an outside container has."""
        source = self._sources.get(id(container))
        if source is None or self.journal.wrote(container) or source.is_held and type(container) is tuple:
            return
        self.require(LengthGuard(source, container), id(source), "length")

    def keys(self, container: Any) -> None:
        """Take in the keys of an outside dict and their order."""
        source = self._sources.get(id(container))
        if source is None or self.journal.wrote(container):
            return
        added = self.journal.added(container)
        keys = tuple([k for k in container if k not in added]) if added else tuple(container)
        if not keys:
            self.empty(container)
        else:
            self.require(KeysGuard(source, keys), id(source), "keys")

    def empty(self, container: Any) -> None:
        """Take in that an outside container is empty."""
        source = self._sources.get(id(container))
        if source is not None and not self.journal.wrote(container):
            self.require(EmptyGuard(source), id(source), "empty")

    def table(self, module: torch.nn.Module, name: str) -> Any:
        """Take in one of the dicts in which an outside module keeps its parts."""
        source, own = self._sources[id(module)], module.__dict__
        self.own_dict(module, source)
        return self.read(source, "attribute", name, own[name], (own, name))

    def empty_at(self, base: Source, container: dict[str, Any], key: str) -> None:
        """Take in that what a dict which the compiled function holds has at ``key`` is an empty container."""
        there = container[key]
        self.know(there, held(there, f"{base}[{key!r}]"))
        if not self.journal.wrote(there) and not self.journal.written_at(container, "item", key):
            self.require(EmptyGuard(Source(base, "item", key)), id(container), key, "empty")

    def membership(self, container: Any, key: Any, present: bool) -> None:
        """Take in whether ``key`` is in an outside dict or set."""
        source = self._sources.get(id(container))
        if source is not None and not self._was_written(container, key):
            self.require(MembershipGuard(source, key, present), id(source), _hashable(key), "membership")

    def structure(self, container: Any) -> None:
        """Take in the length or the keys of an outside container that is iterated over."""
        if isinstance(container, DICTS):
            self.keys(container)
        elif isinstance(container, SETS):
            source = self._sources.get(id(container))
            if source is not None and not self.journal.wrote(container):
                self.require(SetGuard(source, frozenset(container)), id(source), "set")
        elif isinstance(container, LISTS):
            self.length(container)

    @contextmanager
    def fixing(self) -> Iterator[None]:
        """Within, numbers that are read are fixed: they go to code that does not know open ones."""
        number, self._number = self._number, None
        try:
            yield
        finally:
            self._number = number

    def contents(self, container: Any) -> None:
        """Take in all that an outside container holds, nested ones included: it goes to code that cannot be watched."""
        with self.fixing():
            self._contents(container)

    def _contents(self, container: Any) -> None:
        if self._sources.get(id(container)) is None or self.journal.wrote(container):
            return
        if is_buffer(container):
            self.unwatched.escapes(container)
        self.structure(container)
        if isinstance(container, DICTS):
            for key, value in list(container.items()):
                self.item(container, key, value)
                self._contents(value)
        elif isinstance(container, LISTS):
            for index, value in enumerate(items_of(container)):
                self.item(container, index, value)
                self._contents(value)

    def objects_apart(self) -> None:
        """Guard that mutable objects which are not held, and reached by different ways, stay different objects."""
        kinds: dict[type, list[Source]] = {}
        for value in {id(value): value for value in self._alive}.values():  # an object may be kept alive twice
            source = self._sources.get(id(value))
            if (
                source is not None
                and source.base is not None
                and not source.is_held
                and not isinstance(value, IMMUTABLE)
            ):
                kinds.setdefault(type(value), []).append(source)
        for sources in kinds.values():
            if len(sources) > 1:
                self.guards.append(DistinctObjectsGuard(tuple(sources)))


OF_TYPES = frozenset({"__name__", "__qualname__"})
"""What classes say of themselves, wherever it is kept."""


def _is_bound(value: Any) -> bool:
    """Whether something is a method, written in C, of an object."""
    if not isinstance(value, (types.BuiltinFunctionType, types.MethodWrapperType)):
        return False
    return value.__self__ is not None and not isinstance(value.__self__, (types.ModuleType, type))


def _hashable(key: Any) -> Any:
    try:
        hash(key)
    except TypeError:
        return id(key)
    return (type(key), key)
