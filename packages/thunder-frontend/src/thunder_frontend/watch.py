"""What the interpreter reports while a program is acquired, handed on to the world."""

from __future__ import annotations

import _abc
import builtins
import contextvars
import decimal
import operator
import re
import types
import warnings
from collections import deque
from collections.abc import Callable, Container, Mapping, Sequence
from types import CodeType, FrameType, GetSetDescriptorType
from typing import Any

import torch

from thunder_frontend.builtin_reads import (
    ASKED_OF_OBJECTS,
    BEFORE,
    BUILTIN,
    INPLACE_OPERATORS,
    MUTATORS,
    OF_CONTAINERS,
    PRECISE,
    READS,
    SEARCHING,
    TAKE_ARRAYS,
    TAKE_STATE,
    TEXT,
    asked_inside,
    found_in_dict,
    only_grows,
)
from thunder_frontend.class_reads import SPECIAL_METHODS, class_of
from thunder_frontend.constants import Arrays
from thunder_frontend.finalisers import refuse_callback
from thunder_frontend.guards import IdentityGuard
from thunder_frontend.journal import MISSING, contents_of, is_slot
from thunder_frontend.kinds import CODE, DICTS, LISTS, VALUES, is_buffer, is_container
from thunder_frontend.native_code import is_of_no_concern
from thunder_frontend.queries import (
    as_positional,
    hashable,
    is_asked_again,
    is_query,
    is_unwatchable,
    reads_stream,
    refuse,
    varies,
)
from thunder_frontend.sources import held
from thunder_frontend.traced_tensor import TracedTensor
from thunder_frontend.world import World
from thunder_interpreter import Callbacks
from thunder_ir import (
    DeviceError,
    DimensionError,
    DTypeError,
    NumberProxy,
    ShapeError,
    ThunderError,
    UnknownNumberError,
)

NUMBERS = re.compile(r"\b(Integer|Float|Complex|Bool)Proxy\b")
"""How code in C calls a number that is open, where it refuses it."""

DECIMAL = (decimal.Decimal, decimal.Context)

EAGER_RAISES_TOO = (ShapeError, DTypeError, DeviceError, DimensionError)


class Watch(Callbacks):
    """Reports reads and writes of outside objects to the world.

    Args:
        world: what is outside.
        sharp: called with a sentence about an effect that the compiled program will not repeat.
        branches: takes a traced tensor or number that code branches on, the code, and the place in it; returns the
            truth to go by, or ``NotImplemented``.
        arrays: what tensors are made of.
    """

    def __init__(
        self,
        world: World,
        sharp: Callable[[str], None],
        branches: Callable[[Any, CodeType, int], Any],
        arrays: Arrays,
    ) -> None:
        self.world = world
        self.sharp = sharp
        self.branches = branches
        self.arrays = arrays
        self.refusal: ThunderError | None = None

    def branch(self, value: Any, code: CodeType, offset: int) -> Any:
        if isinstance(value, (TracedTensor, NumberProxy)):
            return self.branches(value, code, offset)
        return NotImplemented

    def raised(self, error: BaseException) -> None:
        """Keep what says that there is no program: a handler of the user's is not meant for it."""
        if self.refusal is None and isinstance(error, ThunderError) and not isinstance(error, EAGER_RAISES_TOO):
            self.refusal = error
        if isinstance(error, TypeError) and self.refusal is None and NUMBERS.search(str(error)):
            self.refusal = UnknownNumberError(f"Python needs the value of a number that is open: {error}")
        if isinstance(error, ImportError) and isinstance(error.name, str):
            self.world.answers.not_imported(error.name)

    # --- loads -----------------------------------------------------------------------------------------------------

    def load_global(self, globals_dict: dict[str, Any], name: str, value: Any) -> Any:
        return self.world.functions.global_(globals_dict, name, value)

    def load_closure(self, function: Any, name: str, value: Any) -> Any:
        return self.world.functions.cell(function, name, value)

    def missing_global(self, globals_dict: dict[str, Any], name: str) -> None:
        self.world.functions.missing_global(globals_dict, name)

    def missing_closure(self, function: Any, name: str) -> None:
        self.world.functions.missing(function, name)

    def load_attribute(self, obj: Any, name: str, value: Any) -> Any:
        if isinstance(obj, TracedTensor):
            if name in obj.__dict__:
                return self.world.attributes.found_on_tensor(obj, name, value)
            return self.world.attributes.given_by_class_of_tensor(obj, name, value)
        if name == "__class__" and isinstance(obj, NumberProxy):
            return type_of(obj, value)
        return self.world.attributes.found(obj, name, value)

    def missing_attribute(self, obj: Any, name: str) -> None:
        if isinstance(obj, TracedTensor):
            self.world.attributes.missing_on_tensor(obj, name)
        else:
            self.world.attributes.missing(obj, name)

    def key(self, container: Any, key: Any) -> Any:
        """Ask dicts of the outside world, such as the state of an optimizer, for the tensors that are their keys."""
        if isinstance(key, TracedTensor) and "_input" in key.__dict__ and self.world.source_of(container) is not None:
            found = key._input
            self.world.require(IdentityGuard(found.source, found.example, found.slot), id(found.example), "identity")
            return found.example
        return key

    def load_item(self, container: Any, key: Any, value: Any) -> Any:
        return self.world.containers.item(container, key, value)

    def missing_item(self, container: Any, key: Any) -> None:
        if isinstance(container, DICTS):
            self.world.containers.membership(container, key, False)
        elif isinstance(container, LISTS):
            self.world.containers.length(container)

    def iterate(self, container: Any, iterator: Any) -> None:
        if is_container(container):
            self.world.containers.structure(container)

    def iterated(self, container: Any, key_or_index: Any, value: Any) -> Any:
        if isinstance(container, LISTS):
            return self.world.containers.item(container, key_or_index, value)
        return value

    # --- stores ----------------------------------------------------------------------------------------------------

    def store_attribute(self, obj: Any, name: str, value: Any) -> None:
        if isinstance(obj, TracedTensor):
            if not isinstance(getattr(torch.Tensor, name, None), GetSetDescriptorType):
                self.world.journal.note("attribute", obj, name, obj.__dict__.get(name, MISSING))
            return
        if not isinstance(obj, type):
            self.world.classes.stored(type(obj), name)
        if type(obj).__setattr__ is dict.__setitem__:
            self.store_item(obj, name, value)
        elif self.world.source_of(obj) is not None:
            own = getattr(obj, "__dict__", None)
            plain = isinstance(own, (dict, types.MappingProxyType)) and not is_slot(obj, name)
            before = own.get(name, MISSING) if plain else getattr(obj, name, MISSING)
            self.world.journal.note("attribute", obj, name, before)

    def delete_attribute(self, obj: Any, name: str) -> None:
        self.store_attribute(obj, name, None)

    def store_item(self, container: Any, key: Any, value: Any) -> None:
        if isinstance(container, TracedTensor) or self.world.source_of(container) is None:
            return
        if isinstance(key, slice) or isinstance(container, deque):
            self.world.containers.contents(container)
            self.world.journal.note_container(container)
        elif isinstance(container, dict):
            self.world.containers.membership(container, key, key in container)
            self.world.journal.note("item", container, key, container.get(key, MISSING))
        else:
            self.world.containers.length(container)
            self.world.journal.note("item", container, key, container[key])

    def delete_item(self, container: Any, key: Any) -> None:
        journal = self.world.journal
        if isinstance(container, TracedTensor) or isinstance(container, dict) and journal.added(container, key):
            return
        if self.world.source_of(container) is not None:
            self.world.containers.contents(container)
            self.world.journal.note_container(container)

    def store_global(self, globals_dict: dict[str, Any], name: str, value: Any) -> None:
        self.sharp(f"it writes the global {name!r}, which each call does when it has computed everything")
        self.world.journal.note("item", globals_dict, name, globals_dict.get(name, MISSING))

    def delete_global(self, globals_dict: dict[str, Any], name: str) -> None:
        self.store_global(globals_dict, name, None)

    def store_closure(self, cell: Any, name: str, value: Any) -> None:
        if self.world.functions.is_outside(cell):
            self.world.journal.note("cell", cell, None, contents_of(cell))

    # --- calls -----------------------------------------------------------------------------------------------------

    def call(self, fn: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
        self.world.functions.entered(fn, args, kwargs)
        if fn.__name__ == "__missing__" and len(args) == 2:
            self.missing_item(*args)

    def special_methods(self, fn: Any, operands: list[Any]) -> None:
        self.world.classes.operands(fn, operands)
        if fn is operator.getitem:
            found_in_dict(self.world, *operands)

    def native_frame(self, frame: FrameType, call: tuple[Any, Sequence[Any], Mapping[str, Any]]) -> None:
        if not is_of_no_concern(frame):
            fn, args, kwargs = call
            if _makes_class(fn, args):
                for made in frame.f_locals.values():
                    if isinstance(made, type) and made.__name__ in args and self.world.source_of(made) is None:
                        self.world.classes.made(made)
            for name in self.world.native_frames.entered(frame, [fn, *args, *kwargs.values()]):
                self._varies(name)

    def opaque_call(self, fn: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        known = hashable(fn)
        if fn is warnings.warn_explicit:
            self.world.answers.warns()
        if known and fn in SPECIAL_METHODS:
            self.world.classes.operands(fn, args)
        elif fn.__class__ is types.FunctionType:
            self.world.functions.made_of(fn)
        if fn is isinstance or fn is issubclass:
            self.world.classes.checks("__instancecheck__" if fn is isinstance else "__subclasscheck__", args[1])
            self.world.classes.derives(class_of(args[0]) if fn is isinstance else args[0])
            if fn is isinstance and isinstance(args[0], type):
                self.world.classes.metaclass(args[0])
        if isinstance(getattr(fn, "__self__", None), contextvars.ContextVar):
            self._context_variable(fn.__self__, fn.__name__, args)
        for value in (getattr(fn, "__self__", None), *args):
            if is_buffer(value) and not (known and fn in TAKE_ARRAYS):
                self.arrays.looked_at(value)
                self.world.unwatched.escapes(value)
        if known and fn in BEFORE:
            BEFORE[fn](self.world, *args)
        methods = asked_inside(fn, known)
        if methods is not None:
            for value in (*args, *kwargs.values()):
                if fn not in SEARCHING or not is_container(value) or isinstance(value, LISTS):
                    self.world.unwatched.looked_into(value, methods)
        if args and isinstance(args[0], contextvars.Context):
            refuse(getattr(fn, "__name__", ""))
        if known and fn in PRECISE or fn is super:
            return
        name = getattr(fn, "__name__", "")
        owner = bound = getattr(fn, "__self__", None)
        if (owner is None or isinstance(owner, types.ModuleType)) and args:
            owner = args[0]
        shows = methods is TEXT and (fn is not operator.mod or isinstance(args[0], str))
        self.world.settings.called(fn, bound, args, kwargs, shows)
        self.world.registries.called(fn, bound, args, kwargs)
        refuse_callback(fn, args)
        if is_container(owner):
            if self.world.source_of(owner) is not None:
                self._method(owner, name, fn, args)
        elif bound is not None and not isinstance(bound, (types.ModuleType, type)):
            self.world.unwatched.escapes(bound)
        if name in TAKE_STATE and (args or bound is not None):
            self.world.unwatched.copied(args[0] if bound is None else bound)
        if known and is_unwatchable(fn, owner):
            refuse(name)
        if reads_stream(name, owner) and self.world.source_of(owner) is not None:
            refuse(name)
        self.world.states.called(fn, owner, args, kwargs)
        if known and varies(fn, owner, args):
            self._varies(name)
        if known and is_asked_again(fn, args):
            self.world.answers.asked(fn, args, kwargs)
        if any([isinstance(a, DECIMAL) for a in (bound, *args, *kwargs.values())]):
            self.world.answers.computes_decimals((bound, *args, *kwargs.values()))
        if isinstance(getattr(type(fn), "__call__", None), types.FunctionType):  # noqa: B004
            self.world.unwatched.escapes(fn, watched=False)
        self._passed(fn, owner, [*args, *kwargs.values()])

    def _varies(self, name: str) -> None:
        self.sharp(f"it calls {name}(), which happens while it is compiled and not on later calls", True)

    def _context_variable(self, variable: contextvars.ContextVar[Any], name: str, args: tuple[Any, ...]) -> None:
        if name != "get":
            self.world.journal.note("context", variable, None, variable.get(MISSING))
        elif not args and not self.world.journal.written_at(variable, "context", None):
            self.world.answers.unset(variable)

    def _passed(self, fn: Any, owner: Any, values: list[Any]) -> None:
        """Take in what is passed to a call that cannot be watched."""
        if hashable(fn) and fn in TAKE_ARRAYS and values and is_buffer(values[0]):
            return
        watched = isinstance(fn, type) or getattr(fn, "__module__", None) in BUILTIN or is_container(owner)
        for value in values:
            if not isinstance(value, TracedTensor) and (value is not owner or not is_container(value)):
                self.world.unwatched.escapes(value, watched)

    def _method(self, owner: Any, name: str, fn: Any, args: Sequence[Any]) -> None:
        if only_grows(fn, owner, args):
            self.world.containers.grows(owner)
            return
        changes = name in MUTATORS or _hashable_in(fn, INPLACE_OPERATORS)
        if changes and not isinstance(owner, (tuple, frozenset)):  # of these, += makes others
            self.world.containers.contents(owner)
            self.world.journal.note_container(owner)
        elif name not in READS:
            self.world.containers.contents(owner)

    def _checked(self, abstract: Any, cls: Any, answer: bool) -> None:
        """Take in what an abstract class says of a class that is not derived from it: classes may be registered."""
        if isinstance(cls, type) and abstract not in cls.__mro__ and (not answer or self.world.classes.is_outside(cls)):
            self.world.answers.registered(cls, abstract, answer)

    def opaque_result(self, fn: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> Any:
        self.world.journal.settle()
        if fn is type and len(args) == 1:
            if isinstance(args[0], type):
                self.world.classes.metaclass(args[0])
            return type_of(args[0], result)
        if isinstance(getattr(fn, "__self__", None), contextvars.ContextVar) and fn.__name__ == "reset":
            self.world.journal.take_back("context", fn.__self__, None)
        if isinstance(result, type) and _makes_class(fn, args):
            self.world.classes.made(result)
        if fn is globals:
            self.world.know(result, held(result, f"globals of {result.get('__name__', '?')}"))
        elif fn is builtins.__import__:
            self.world.answers.imported(result, args[0])
        if type(result) is types.MappingProxyType and args and isinstance(args[0], type):
            return self.world.attributes.found(args[0], "__dict__", result)
        if isinstance(result, torch.Tensor):
            result = self.arrays.made(fn, args, result)
            if isinstance(result, TracedTensor):
                return result
        if fn is operator.getitem and is_container(args[0]):
            return self.world.containers.item(args[0], args[1], result)
        if fn is _abc._abc_instancecheck or fn is _abc._abc_subclasscheck:
            self._checked(args[0], class_of(args[1]) if fn is _abc._abc_instancecheck else args[1], result)
        precise = PRECISE.get(fn) if hashable(fn) else None
        if precise is not None and fn in ASKED_OF_OBJECTS and self._is_foreign(args[0]):
            return self.world.answers.result_of(fn, tuple(args), result)
        if precise is not None:
            precise(self.world, *args)
            return result
        if is_query(fn, args, kwargs, result):
            if self.world.journal.written_at(getattr(fn, "__self__", None), "context", None):
                return result
            return self.world.answers.result_of(as_positional(fn, kwargs), tuple(args), result)
        name, owner = getattr(fn, "__name__", ""), getattr(fn, "__self__", None)
        if self.world.states.answers(fn, owner):
            return self.world.states.answered(owner, name, tuple(args), result)
        reader = READS.get(name)
        if reader is None:
            return result
        if is_container(owner):
            args = (owner, *args)
        if args and is_container(args[0]) and self.world.source_of(args[0]) is not None:
            with self.world.fixing():
                reader(self.world, *args)
        return result

    def _is_foreign(self, value: Any) -> bool:
        """Whether an outside object answers operators by code in C, and is of no kind that is read in another way."""
        if self.world.source_of(value) is None or isinstance(value, (*VALUES, *CODE, torch.Tensor, torch.nn.Module)):
            return False
        return not is_container(value) and not is_buffer(value) and any([hasattr(value, n) for n in OF_CONTAINERS])


def _makes_class(fn: Any, args: Sequence[Any]) -> bool:
    if fn is type.__new__:
        return True
    return isinstance(fn, type) and issubclass(fn, type) and (fn is not type or len(args) == 3)


def _hashable_in(fn: Any, table: Container[Any]) -> bool:
    return hashable(fn) and fn in table


def type_of(value: Any, cls: type) -> type:
    """Return what the type of a value is to the program: of what it stands for, where it is a stand-in."""
    if isinstance(value, TracedTensor):
        return value._stands_for
    return value.python_type if isinstance(value, NumberProxy) else cls


__all__ = ["Watch"]
