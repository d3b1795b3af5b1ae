"""Python functions that code in C runs, which are not interpreted: all that they name is guarded.

What such a function does is not seen, but what it can get at is told by its code: the globals, the variables of
closures and the attributes that it names. Each of these that leads to something is guarded before the function runs,
and where it may write is remembered.
"""

from __future__ import annotations

import contextvars
import decimal
import gc
import sys
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from thunder_frontend._external_state.class_facts import is_mutable
from thunder_frontend._external_state.function_reads import FunctionReads
from thunder_frontend._external_state.known import Known
from thunder_frontend._external_state.library_settings import LibrarySettings
from thunder_frontend._external_state.native import Answer, hashable
from thunder_frontend._external_state.native_callables import (
    MADE_OF_OTHERS,
    is_made_of_others,
    is_native_of_torch,
    names_asked_for,
    parts_of_all,
)
from thunder_frontend._external_state.native_state import NativeState
from thunder_frontend._external_state.queries import (
    answer_of,
    is_question,
    reads_stream,
    refuse,
)
from thunder_frontend._external_state.reads import Reads
from thunder_frontend._external_state.unwatched import Unwatched
from thunder_guards.kinds import CODE, CONTAINERS, DICTS, NOTHING_INSIDE, is_value, items_of, pairs_of
from thunder_guards.mutations import MISSING, contents_of
from thunder_guards.sources import held
from thunder_interpreter import CodeNames, names_of

HOW_FAR = 5
"""How many steps a function is looked for from what C code was given."""
FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType)
MANY = (None,) * 9
"""Arguments of a function that may get any."""


class NativeFrames:
    """Guards what functions that C code runs may read.

    Args:
        external: takes the guards.
        reads: guard what is read of values.
        functions, unwatched, states, settings: guard what is read of functions, by code in C, and of libraries.
    """

    def __init__(
        self,
        external: Known,
        reads: Reads,
        functions: FunctionReads,
        unwatched: Unwatched,
        states: NativeState,
        settings: LibrarySettings,
    ) -> None:
        self._external, self._reads, self._functions, self._unwatched = external, reads, functions, unwatched
        self._states, self._settings = states, settings
        self._followed: set[int] = set()
        self._entered: dict[tuple[Any, ...], list[Any]] = {}
        self._of_code: dict[types.CodeType, list[types.FunctionType]] = {}
        self._called: dict[tuple[Any, int], Any] = {}

    def entered(self, frame: types.FrameType, given: Sequence[Any]) -> list[str]:
        """Guard what a function may read that C code is about to run.

        Args:
            frame: of the function.
            given: what the C code was called with, and itself: it leads to the function.

        Returns:
            names of what it may call whose answer is another one each time.
        """
        external, code, scope = self._external, frame.f_code, frame.f_globals
        names = names_of(code)
        local = [frame.f_locals[n] for n in code.co_varnames[: _parameters(code)] if n in frame.f_locals]
        external.mutations.settle(is_over=False)
        place = (code, *map(id, local))
        if place in self._entered:
            return []
        if not names.writes:  # what was not written the first time may be the next time
            self._entered[place] = local
        reached = list(local)
        for function in self._of(frame, [*local, *given]):
            if external.source_of(function) is None:
                external.know(function, held(function, function.__qualname__))
            self._functions.runs_unseen(function)
            self._functions.entered(function, [*local] or [None], dict.fromkeys(code.co_varnames))
            reached += self._closure(function, names)
        for name in names.globals:
            if name in scope:
                reached.append(scope[name])
                self._functions.global_(scope, name, scope[name])
        for name in names.written_globals:
            external.mutations.expect("item", scope, name, scope.get(name, MISSING))
        return self._follow(reached, names)

    def found(self, found: Sequence[tuple[type | None, str, Any]], given: Sequence[Any] | None) -> list[str]:
        """Guard what callables may read that code in C may call.

        Args:
            found: the class that holds one as a special method, or as the getter of a property, if one does, the name
                under which it does, and the callable.
            given: what the code in C gets; ``None`` if each call is seen.

        Returns:
            names of what it may call whose answer is another one each time.
        """
        callables = [raw for _, _, raw in found if id(raw) not in self._followed and not is_native_of_torch(raw)]
        for cls, name, _ in found:
            if cls is not None:
                self._reads.classes.lookup(cls, name)
        if given is None or not callables:
            return []
        parts = list(parts_of_all(callables))
        for value in (*parts, *given):
            if not isinstance(value, MADE_OF_OTHERS):
                self._unwatched.escapes(value, watched=False)
        now = {id(part) for part in parts} - self._followed
        self._followed |= now
        try:
            names = CodeNames(attributes=frozenset(names_asked_for(parts)))
            of_c = [fn for fn in parts if type(fn) is types.BuiltinFunctionType]
            varying = [name for fn in of_c for name in self.calls(fn, names)]
            return varying + self._follow([*given, *parts], names)
        finally:
            self._followed -= now

    def calls(self, fn: Callable[..., Any], names: CodeNames) -> list[str]:
        """Guard what code in C answers such a function, about to be called with arguments that are not known.

        Args:
            fn: what is called.
            names: what its caller may ask the answer for.

        Returns:
            its name, if its answer is another one each time.
        """
        owner = getattr(fn, "__self__", None)
        owner, name = None if isinstance(owner, types.ModuleType) else owner, getattr(fn, "__name__", "")
        if not hashable(fn) or (fn, id(owner)) in self._called:
            return []
        self._called[fn, id(owner)] = owner
        answer = answer_of(fn, owner, MANY)
        if answer is Answer.REFUSED or reads_stream(name, owner) and self._external.source_of(owner) is not None:
            refuse(name)
        if answer is Answer.VARIES:
            return [name]
        self._states.called(fn, owner)
        asked = self._states.answers(fn, owner) or answer is Answer.ASKED_AGAIN or is_question(fn, name)
        if asked or isinstance(owner, contextvars.ContextVar):
            return self._follow(self._answer_of(fn, owner, name), names)
        return []

    def _answer_of(self, fn: Callable[..., Any], owner: Any, name: str) -> list[Any]:
        """Ask a question without arguments, and guard the answer, if there is one; refuse one that takes arguments."""
        try:
            answer = fn()
        except LookupError:  # a context variable without a value
            self._reads.answers.unset(owner)
            return []
        except TypeError:
            refuse(name)
        self._reads.answers.result_of(fn, (), answer)
        return [answer]

    def _of(self, frame: types.FrameType, given: Sequence[Any]) -> list[types.FunctionType]:
        """Return the functions that the frame may be of: those of its code that can be found."""
        code = frame.f_code
        if code.co_name.startswith("<") and code.co_name != "<lambda>":
            return []  # of a comprehension or an expression: what it names, the function around it does
        found = self._of_code.get(code)
        if found is None:
            found = _leading_to(code, given)
            if not found:
                found = [f for f in gc.get_referrers(code) if type(f) is types.FunctionType]
            self._of_code[code] = found
        return found

    def _closure(self, function: types.FunctionType, names: CodeNames) -> Iterator[Any]:
        external = self._external
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            contents = contents_of(cell)
            if name in names.written_variables:
                external.mutations.expect("cell", cell, None, contents)
            if contents is not MISSING:
                yield contents
                self._functions.cell(function, name, contents)

    def _follow(self, reached: list[Any], names: CodeNames) -> list[str]:
        """Guard the attributes of those names, of what the function gets at, and of what these are."""
        seen: dict[int, Any] = {}
        varying = []
        while reached:
            value = reached.pop()
            if id(value) in seen or type(value) in NOTHING_INSIDE or isinstance(value, torch.Tensor):
                continue
            seen[id(value)] = value
            self._settings.reached(value)
            if value is decimal.Decimal or isinstance(value, (decimal.Decimal, decimal.Context)):
                self._reads.answers.computes_decimals((value,))
            if isinstance(value, CONTAINERS):
                reached += self._within(value, names)
            elif not is_value(value) or self._external.source_of(value) is not None:
                reached += self._attributes(value, names)
            if isinstance(value, weakref.ref):
                self._reads.answers.result_of(value, (), value())
            elif is_made_of_others(value):
                varying += self.found([(None, "", value)], ())
            elif isinstance(value, FUNCTIONS):
                answer = answer_of(value, getattr(value, "__self__", None), MANY)
                varying += [value.__name__] if answer is Answer.VARIES else []
        return varying

    def _within(self, container: object, names: CodeNames) -> list[Any]:
        if container is sys.modules:  # each import changes it, and hardly ever what a function looks up there
            return []
        if self._external.source_of(container) is not None:
            self._reads.containers.contents(container)
            if names.changes_containers and not isinstance(container, (tuple, frozenset, types.MappingProxyType)):
                self._external.mutations.expect("container", container, None, None)
        return [v for _, v in pairs_of(container)] if isinstance(container, DICTS) else items_of(container)

    def _attributes(self, value: object, names: CodeNames) -> Iterator[Any]:
        external = self._external
        for name in names.attributes:
            found = _found(value, name)
            if found is not MISSING and not isinstance(found, property):
                self._reads.attributes.found(value, name, found)
                yield found
        own = getattr(value, "__dict__", None)
        if external.source_of(value) is not None and isinstance(own, dict) and not isinstance(value, CODE):
            for name in names.written_attributes:
                external.mutations.expect("attribute", value, name, own.get(name, MISSING))


def _parameters(code: types.CodeType) -> int:
    flags = code.co_flags
    return code.co_argcount + code.co_kwonlyargcount + bool(flags & 4) + bool(flags & 8)


def _leading_to(code: types.CodeType, given: Sequence[Any]) -> list[types.FunctionType]:
    """Return the functions of some code that are among objects, their classes, or what these hold."""
    found: dict[int, types.FunctionType] = {}
    seen: set[int] = set()
    here: list[Any] = [*given, *map(type, given)]
    for _ in range(HOW_FAR):
        further: list[Any] = []
        for value in here:
            if type(value) is types.FunctionType:
                if value.__code__ is code:
                    found[id(value)] = value
                further += [contents_of(cell) for cell in value.__closure__ or ()]
            elif isinstance(value, type):
                further += [raw for cls in value.__mro__ if is_mutable(cls) for raw in vars(cls).values()]
            elif type(value) not in NOTHING_INSIDE and not isinstance(value, (types.ModuleType, types.CodeType)):
                further += gc.get_referents(value)
        here = [value for value in further if id(value) not in seen]
        seen.update(map(id, here))
        if found:
            break
    return list(found.values())


def _found(value: object, name: str) -> Any:
    """Return an attribute that is found without running any code of the user's; a property or the like as it is."""
    own = getattr(value, "__dict__", None)
    if isinstance(own, (dict, types.MappingProxyType)) and name in own:
        return own[name]
    owners: tuple[Any, ...] = type(value).__mro__
    if isinstance(value, type):
        owners = (*type.__dict__["__mro__"].__get__(value), *owners)
    raw = next((cls.__dict__[name] for cls in owners if name in cls.__dict__), MISSING)
    if isinstance(raw, (types.MemberDescriptorType, types.FunctionType, classmethod, staticmethod)):
        return getattr(value, name, MISSING)
    return raw
