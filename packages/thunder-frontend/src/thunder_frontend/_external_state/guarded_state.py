"""External state as a program sees it: what it reads becomes guards, what it writes is noted and undone.

It knows, by identity, the objects that the program reached from its roots and how. Whatever is loaded from one
of them is outside too. Tensors are replaced by traced tensors at that moment; everything else is the real object.
"""

from __future__ import annotations

import enum
import functools
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from typing import Any

import torch

from thunder_frontend._external_state.answers import Answers
from thunder_frontend._external_state.attribute_reads import AttributeReads
from thunder_frontend._external_state.class_reads import ClassReads
from thunder_frontend._external_state.container_reads import ContainerReads
from thunder_frontend._external_state.dynamic_values import (
    NUMBERS,
    DynamicValues,
    has_loaded,
    holds_numbers,
    is_number,
)
from thunder_frontend._external_state.function_reads import FunctionReads, is_made_anew
from thunder_frontend._external_state.known import Known
from thunder_frontend._external_state.library_settings import LibrarySettings
from thunder_frontend._external_state.native_frames import NativeFrames
from thunder_frontend._external_state.native_state import NativeState
from thunder_frontend._external_state.parts import Parts
from thunder_frontend._external_state.process_settings import ProcessSettings
from thunder_frontend._external_state.reads import Reads
from thunder_frontend._external_state.stand_ins import StandIns
from thunder_frontend._external_state.unwatched import Unwatched
from thunder_guards import (
    DistinctObjectsGuard,
    IdentityGuard,
    NotHeldGuard,
    PartGuard,
    SameAsBeforeGuard,
    SameObjectGuard,
    ValueGuard,
)
from thunder_guards.kinds import (
    CODE,
    HEAP_TYPE,
    IMMUTABLE,
    MAY_DIE,
    VALUES,
    as_fact,
    has_attributes,
    is_array,
    is_value,
    refuse_iterators,
)
from thunder_guards.mutations import Write
from thunder_guards.sources import Place, Source, held
from thunder_ir import NumberProxy
from thunder_tracing.tensors.array_memory import can_be_of_the_call
from thunder_tracing.tensors.run_texts import Given, RunText


class GuardedState(Known):
    """Everything outside of the program.

    Args:
        tensor: makes a traced tensor of a real one that was read from a source.
        number: makes a number proxy of a number.
        known_tensor: returns the traced tensor of a real one that was read before; ``None`` for any other.
        dynamic: tells which numbers are made such, and where objects may be others; ``None`` where all are fixed.
        weakly_held: objects that the program is not to keep alive.
    """

    def __init__(
        self,
        tensor: Callable[[torch.Tensor, Source, tuple[Any, Any] | None], Any],
        number: Callable[[Any, Source], Any],
        known_tensor: Callable[[torch.Tensor], Any],
        dynamic: DynamicValues | None = None,
        weakly_held: Iterable[Any] = (),
    ) -> None:
        super().__init__(weakly_held)
        self._tensor = tensor
        self._number = number
        self.dynamic = dynamic
        self._numbers: dict[Any, Any] = {}
        self._texts: dict[object, RunText] = {}
        self._arrays: dict[int, Any] = {}
        self.any_symbolic = False
        self.answers = Answers(self)
        self.stand_ins = StandIns(self, known_tensor)
        self.classes = ClassReads(self)
        self.containers = ContainerReads(self, self.classes, self.stand_ins)
        self.attributes = AttributeReads(self, self.classes, self.containers)
        reads = Reads(self.answers, self.classes, self.containers, self.attributes)
        self.functions = FunctionReads(self, reads)
        self.unwatched: Unwatched = Unwatched(self, reads, self._fixes)
        self.states = NativeState(self, self.answers)
        self.process = ProcessSettings(self.answers)
        self.settings = LibrarySettings(self.answers)
        self.native_frames = NativeFrames(self, reads, self.functions, self.unwatched, self.states, self.settings)
        self.parts = Parts(self, self.containers)
        self._made: dict[Any, Any] = {}
        # what tracers ask
        self.contents, self.keys = self.containers.contents, self.containers.keys
        self.item, self.deleted = self.containers.item, self.containers.deleted
        self.lookup, self.result_of = self.classes.lookup, self.answers.result_of

    def hold(self, value: Any, name: str) -> None:
        """Note an object that the compiled function itself holds, such as the function's own or its module.

        What a bound method or a ``functools.partial`` is made of is held with it.
        """
        known = self._sources.get(id(value))
        self.know(
            value, known if known is not None and known.is_held else self.weakly_held.found(held(value, name), value)
        )
        if isinstance(value, types.MethodType):
            self.hold(value.__self__, f"{name}.__self__")
            self.hold(value.__func__, name)
        elif isinstance(value, functools.partial):
            for part in ("func", "args", "keywords"):  # which __setstate__ sets
                self.part(value, name, part)
            self.hold(value.func, name)
            for given, what in ((value.args, "args"), (value.keywords, "keywords")):
                self.know(given, held(given, f"{name}.{what}"))
                self.containers.contents(given)
        elif _is_bound(value):
            refuse_iterators(f"{name}.__self__", value.__self__)
            self.hold(value.__self__, f"{name}.__self__")
        elif type(value).__flags__ & HEAP_TYPE and not isinstance(value, type):
            self.part(value, name, "type")

    # --- reads ---------------------------------------------------------------------------------------------------

    def read(self, base: Source, kind: str, key: object, value: Any, slot: tuple[Any, Any] | None = None) -> Any:
        """Guard ``value``, found at ``key`` of an external object; return what the program shall see."""
        replaced, opens = False, self.loads and not (slot is not None and type(slot[0]) is types.MappingProxyType)
        if self.dynamic is not None and (slot is not None or is_made_anew(value)):
            replaced = self.dynamic.is_exchanged(value, base, kind, key)
            slot = None if replaced else slot
        self.log.append(("read", base, kind, key, value, slot))
        if isinstance(value, torch.Tensor):
            return self._tensor(value, Source(base, kind, key), slot)
        place = (id(slot[0]), slot[1]) if slot is not None else (id(base), kind, as_fact(key))
        container = None if slot is None else slot[0]
        if self.loads and type(value) is str:
            if slot is None and self._is_open_text(value, Source(base, kind, key)):
                return self._open_text(value, Source(base, kind, key), place)
        elif self.loads and is_number(value) and self.makes_symbolic(value, Source(base, kind, key), container):
            return self._symbolic_number(value, Source(base, kind, key), place)
        if place in self._facts and (opens or place not in self._made):
            return self._made.get(place, value)
        self._facts.add(place)
        if slot is not None and type(slot[0]) is tuple:  # held and immutable: it needs no guard
            if not is_value(value) or has_attributes(value):
                self.hold(value, str(Source(base, kind, key)))
            return value
        logged = len(self.log)
        loads, self.loads = self.loads, opens
        try:
            seen = self._take(Source(base, kind, key), value, slot, replaced)
        finally:
            self.loads = loads
        del self.log[logged:]  # who reads it again notes what follows from it again
        if seen is not value:
            self._made[place] = seen
        return seen

    def makes_symbolic(self, value: float, source: Source, container: object = None) -> bool:
        """Whether a number that is not itself an argument is dynamic, where interpreted code loads it.

        Args:
            value: the number.
            source: how the program gets at it.
            container: where it is kept, if the compiled function holds that.
        """
        if self.dynamic is None:
            return False
        if container is None and source.is_of_the_call() and self.dynamic.argument(value, source):
            return True
        if type(value) not in NUMBERS:
            return False
        is_variable = container is None or type(container) in VARIABLE
        return is_variable and self.dynamic.number(value, source)

    def _symbolic_number(self, value: float, source: Source, place: object) -> Any:
        if place not in self._numbers:
            self.guards.append(PartGuard(source, value, "type"))
            self._numbers[place] = self._number(value, source)
            self.any_symbolic = True
        return self._numbers[place]

    def _is_open_text(self, value: str, source: Source) -> bool:
        return self.dynamic is not None and self.dynamic.text(value, source)

    def _open_text(self, value: str, source: Source, place: object) -> RunText:
        """Return what stands for a text that each call has its own of, and whose type alone is guarded."""

        def fixed() -> str:
            self.require(ValueGuard(source, value), place, "text")
            return value

        if place not in self._texts:
            self.guards.append(PartGuard(source, value, "type"))
            self._texts[place] = RunText(Given(source, fixed))
            self.any_symbolic = True
        return self._texts[place]

    def _take(self, source: Source, value: Any, slot: tuple[Any, Any] | None = None, replaced: bool = False) -> Any:
        if self.loads and type(value) is slice and self.dynamic is not None:
            return self.parts.of_slice(value, source)
        if self.loads and replaced and holds_numbers(value):
            return self.parts.of_tuple(value, source)
        is_new = id(value) not in self._sources
        self._guard(source, value, slot, replaced)
        if is_array(value) and self.dynamic is not None:
            return self._array(value, source, is_new)
        if isinstance(value, functools.partial):
            return self.parts.of_partial(value, source)
        return value

    def _array(self, value: Any, source: Source, is_new: bool) -> Any:
        """Return what a program sees of an array: where each call has another one, what stands for that."""
        opens = is_new and self.dynamic is not None and self.dynamic.opens(source)
        if opens and id(value) not in self._arrays and can_be_of_the_call(value):
            self._arrays[id(value)] = self._number(value, source)
            self.any_symbolic = True
        return self._arrays.get(id(value), value)

    def _fixes(self, value: Any, source: Source) -> None:
        if self.dynamic is not None and can_be_of_the_call(value):
            self.dynamic.fixes(value, source)

    def _guard(self, source: Source, value: object, slot: tuple[Any, Any] | None, replaced: bool) -> None:
        if is_value(value):
            self.guards.append(ValueGuard(source, value, slot))
            if isinstance(value, enum.Enum):  # the very same, then
                self.hold_from(source, value)
            elif has_attributes(value):
                self.know(value, source)
            return
        refuse_iterators(source, value)
        known = self._sources.get(id(value))
        if slot is None and known is None and is_made_anew(value) and (replaced or source.is_of_the_call()):
            self.functions.given(value, source)
            return
        if isinstance(value, CODE) or slot is not None or isinstance(value, torch.nn.Module):
            if slot is None and isinstance(value, MAY_DIE) and source.is_of_the_call():
                self._same_as_before(source, value, known)
            else:
                self.guards.append(self.weakly_held.guard(source, value, slot))
                self.hold_from(source, value)
            return
        if known is not None:
            held_on_to = known.is_held and not known.is_weak
            self.guards.append(IdentityGuard(source, value) if held_on_to else SameObjectGuard(source, known))
            return
        self.guards.append(PartGuard(source, value, "type"))
        self.know(value, source)
        if isinstance(value, types.MethodType):
            self.read(source, "attribute", "__func__", value.__func__)
            self.read(source, "attribute", "__self__", value.__self__)

    def _same_as_before(self, source: Source, value: object, known: Source | None) -> None:
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

    def hold_from(self, source: Source, value: Any) -> None:
        """Note that a guard makes sure that the very same object is found there."""
        known = self._sources.get(id(value))
        if known is not None and not known.is_held:
            self.require(self.weakly_held.guard(known, value), id(value), "identity")
        self._sources[id(value)] = self.weakly_held.found(source, value)
        self._alive.append(value)
        if isinstance(value, type):
            self.classes.metaclass(value)
        if isinstance(value, types.ModuleType) and type(value) is not types.ModuleType:
            self.attributes.class_of_module(value)
        if isinstance(value, property):
            for function in (value.fget, value.fset, value.fdel):
                if function is not None:
                    self.hold(function, str(source))
        elif isinstance(value, (classmethod, staticmethod)):
            self.hold(value.__func__, str(source))
        elif not isinstance(value, CODE) or _is_bound(value):
            self.hold(value.__self__ if _is_bound(value) else value, str(source))

    def is_put_back(self, write: Write, now: object) -> bool:
        """Whether a place of an object that is held has in the end what was found there, fixed or dynamic."""
        if now is write.before:
            return self.is_fixed(write.kind, write.target, write.key)
        container = getattr(write.target, "__dict__", None) if write.kind == "attribute" else write.target
        return isinstance(now, NumberProxy) and self._numbers.get((id(container), write.key)) is now

    def exchanges(self) -> dict[Place, type]:
        """Return where the program puts another number, or another object of the type, than it found; with the type.

        Each call would find another one than the last, such as the count of calls or the new state of a model.
        """
        found: dict[Place, type] = {}
        for write in self.mutations.writes():
            before, now = write.before, self.mutations.now(write)
            kind = now.python_type if isinstance(now, NumberProxy) else type(now)
            are_numbers = kind in NUMBERS and type(before) in NUMBERS
            are_objects = kind is type(before) and not isinstance(before, (*VALUES, *CODE, torch.nn.Module))
            source = Source(self.source_of(write.target) or held(write.target, ""), write.kind, write.key)
            if source.place is None or now is before:
                continue
            if holds_numbers(before) and isinstance(now, tuple) and len(now) == len(before):
                found |= self.parts.exchanged(source, before, now)
            elif are_numbers or are_objects:
                found[source.place] = type(before)
        return found

    def argument(self, value: Any, source: Source) -> Any:
        """Guard an argument of the call; return what the program shall see."""
        if isinstance(value, torch.Tensor):
            return self._tensor(value, source, None)
        if self.dynamic is not None and is_number(value) and self.dynamic.argument(value, source):
            if type(value) not in NUMBERS:
                self.guards.append(PartGuard(source, value, "type"))
            self.any_symbolic = True
            return self._number(value, source)
        if type(value) is str and self._is_open_text(value, source):
            return self._open_text(value, source, str(source))
        return self.loaded(self._take, source, value)

    # --- what the interpreter loads --------------------------------------------------------------------------------

    def loaded(self, read: Callable[..., Any], *where: Any) -> Any:
        """Guard what interpreted code loads: only there does a number, or a text, become dynamic."""
        if self.dynamic is None or not has_loaded(where[-1]):
            return read(*where)
        self.loads = True
        try:
            return read(*where)
        finally:
            self.loads = False

    def objects_apart(self) -> None:
        """Guard that mutable objects which are not held stay apart from each other, and from those that are held."""
        kinds: dict[type, list[Source]] = {}
        kept: dict[type, list[Any]] = {}
        for value in {id(value): value for value in self._alive}.values():  # an object may be kept alive twice
            source = self._sources.get(id(value))
            if source is None or isinstance(value, IMMUTABLE):
                continue
            if source.is_held:
                kept.setdefault(type(value), []).append(value)
            elif source.base is not None:
                kinds.setdefault(type(value), []).append(source)
        for kind, sources in kinds.items():
            if len(sources) > 1:
                self.guards.append(DistinctObjectsGuard(*sources))
            if kind in kept:
                self.guards.append(NotHeldGuard(sources, kept[kind]))


VARIABLE = (dict, list, types.MappingProxyType, OrderedDict, defaultdict, Counter, deque)
"""Containers in which numbers may be dynamic: the last has the attributes of a class."""


def _is_bound(value: object) -> bool:
    """Whether something is a method, written in C, of an object."""
    if not isinstance(value, (types.BuiltinFunctionType, types.MethodWrapperType)):
        return False
    return value.__self__ is not None and not isinstance(value.__self__, (types.ModuleType, type))
