"""What calls of code that is not interpreted read and write, as far as it can be told from outside."""

from __future__ import annotations

import _abc  # type: ignore[import-not-found]
import builtins
import contextvars
import decimal
import operator
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from thunder_frontend._outside.builtin_reads import (
    BUILTIN,
    OF_CONTAINERS,
    TAKE_ARRAYS,
    TAKE_STATE,
    TEXT,
    asked_inside,
    found_in_dict,
    method_named,
    only_grows,
)
from thunder_frontend._outside.class_facts import SPECIAL_METHODS, class_of, type_of
from thunder_frontend._outside.finalisers import refuse_callback
from thunder_frontend._outside.library_settings import makes_text
from thunder_frontend._outside.native import Answer, hashable, native_of
from thunder_frontend._outside.queries import (
    answer_of,
    as_positional,
    asks_process,
    is_query,
    reads_stream,
    refuse,
)
from thunder_frontend._outside.world import World
from thunder_guards.journal import MISSING
from thunder_guards.kinds import CODE, ITERATORS, LISTS, VALUES, is_array, is_buffer, is_container
from thunder_guards.sources import held
from thunder_tracing.tensors.constants import Arrays
from thunder_tracing.tensors.run_arrays import run_arrays_in
from thunder_tracing.tensors.traced_tensor import TracedTensor

DESCRIPTORS = (types.MethodDescriptorType, types.WrapperDescriptorType)
METHODS = (types.BuiltinFunctionType, types.MethodWrapperType, *DESCRIPTORS)
DECIMAL = (decimal.Decimal, decimal.Context)


class OpaqueCalls:
    """Reports to the world what calls that are not interpreted read and write.

    Args:
        world: what is outside.
        sharp: called with a sentence about an effect that the compiled program will not repeat.
        arrays: what tensors are made of.
    """

    def __init__(self, world: World, sharp: Callable[..., None], arrays: Arrays) -> None:
        self._world = world
        self._sharp = sharp
        self._arrays = arrays

    def begin(self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Take in what a call reads, and may write, before it runs.

        Raises:
            AcquisitionError: it reads or writes what a program can neither watch nor repeat.
        """
        known, bound, native = hashable(fn), getattr(fn, "__self__", None), native_of(fn)
        self._asks_classes(fn, args, known)
        if isinstance(bound, contextvars.ContextVar):
            self._context_variable(bound, fn.__name__, args)
        for value in (bound, *args):
            if is_buffer(value) and not (known and fn in TAKE_ARRAYS):
                self._arrays.looked_at(value)
                self._world.unwatched.escapes(value)
        if fn is operator.setitem and is_array(args[0]) and run_arrays_in(args[1:]):
            self._arrays.is_of_the_run(args[0])
        if native.before is not None:
            native.before(self._world, *args)
        elif (subscribed := _subscribed(fn, args)) is not None:
            found_in_dict(self._world, *subscribed)
            if isinstance(subscribed[0], LISTS):
                self._world.containers.length(subscribed[0])
        methods = asked_inside(fn, native)
        if methods is not None:
            for value in (*args, *kwargs.values()):
                if not native.searches or not is_container(value) or isinstance(value, LISTS):
                    self._world.unwatched.looked_into(value, methods)
        if fn is type and len(args) == 3:
            self._world.containers.contents(args[2])
        if args and isinstance(args[0], contextvars.Context):
            refuse(getattr(fn, "__name__", ""))
        if native.reads is None and fn is not super:
            self._begin_unlisted(fn, bound, args, kwargs, methods is TEXT)

    def _asks_classes(self, fn: Callable[..., Any], args: Sequence[Any], known: bool) -> None:
        """Take in what an operator, or ``isinstance``, asks the classes of its arguments."""
        if known and fn in SPECIAL_METHODS:
            self._world.classes.operands(fn, args)
        elif fn.__class__ is types.FunctionType:
            self._world.functions.called_as_it_is(fn)
        elif fn is object.__new__ and args and isinstance(args[0], type):
            self._world.classes.makes_object(args[0])
        if fn is isinstance or fn is issubclass:
            self._world.classes.checks("__instancecheck__" if fn is isinstance else "__subclasscheck__", args[1])
            self._world.classes.derives(class_of(args[0]) if fn is isinstance else args[0])
            if fn is isinstance and isinstance(args[0], type):
                self._world.classes.metaclass(args[0])

    def _begin_unlisted(
        self, fn: Callable[..., Any], bound: object, args: Sequence[Any], kwargs: Mapping[str, Any], as_text: bool
    ) -> None:
        """Take in what a call may read of whose reads no list tells."""
        world, name, owner = self._world, getattr(fn, "__name__", ""), bound
        if (owner is None or isinstance(owner, types.ModuleType)) and args:
            owner = args[0]
        shows = as_text and (fn is not operator.mod or isinstance(args[0], str))
        if asks_process(fn, bound, args, kwargs) or makes_text(fn, bound, args, shows):
            self._sharp(f"it calls {name}(), which asks the process for what others may set; later calls do not")
        world.settings.called(fn, bound, args, kwargs)
        world.process.called(fn)
        refuse_callback(fn, args)
        if is_container(owner):
            if world.source_of(owner) is not None:
                self._method(owner, name, fn, args)
        elif bound is not None and not isinstance(bound, (types.ModuleType, type)):
            world.unwatched.escapes(bound)
        if name in TAKE_STATE and (args or bound is not None):
            world.unwatched.copied(args[0] if bound is None else bound)
        self._asks_outside(fn, name, owner, args, kwargs)
        given = (*args, *kwargs.values())
        if any([isinstance(a, DECIMAL) for a in (bound, *given)]):
            world.answers.computes_decimals((bound, *given))
        if isinstance(getattr(type(fn), "__call__", None), types.FunctionType):  # noqa: B004
            world.unwatched.escapes(fn, watched=False)
        self._passed(fn, owner, given)

    def _asks_outside(
        self, fn: Callable[..., Any], name: str, owner: object, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        """Take in what a call asks for that somebody else may change."""
        world, answer = self._world, answer_of(fn, owner, args)
        if answer is Answer.REFUSED or reads_stream(name, owner) and world.source_of(owner) is not None:
            refuse(name)
        world.states.called(fn, owner, args, kwargs)
        if answer is Answer.VARIES:
            self.varies(name)
        if answer is Answer.ASKED_AGAIN:
            world.answers.asked(fn, args, kwargs)

    def varies(self, name: str) -> None:
        """Deal with a call whose answer is another one each time."""
        self._sharp(f"it calls {name}(), which happens while it is compiled and not on later calls", True)

    def _context_variable(self, variable: contextvars.ContextVar[Any], name: str, args: Sequence[Any]) -> None:
        if name != "get":
            self._world.journal.note("context", variable, None, variable.get(MISSING))
        elif not args and not self._world.journal.written_at(variable, "context", None):
            self._world.answers.unset(variable)

    def _passed(self, fn: Callable[..., Any], owner: object, values: Sequence[Any]) -> None:
        """Take in what is passed to a call that cannot be watched."""
        if hashable(fn) and fn in TAKE_ARRAYS and values and is_buffer(values[0]):
            return
        watched = isinstance(fn, type) or getattr(fn, "__module__", None) in BUILTIN or is_container(owner)
        for value in values:
            if watched and isinstance(value, METHODS) and is_container(getattr(value, "__self__", None)):
                self._method_passed(value.__self__, value.__name__)  # type: ignore[union-attr]
            elif type(value) in ITERATORS:
                self._world.containers.rest(value)
            of_its_own = value is owner and is_container(value)
            if of_its_own and (isinstance(fn, DESCRIPTORS) or self._world.source_of(value) is not None):
                continue
            if not isinstance(value, TracedTensor):
                self._world.unwatched.escapes(value, watched)

    def _method_passed(self, owner: object, name: str) -> None:
        """Take in a method of a container that code in C is given, and may call."""
        if self._world.source_of(owner) is not None:
            self._world.containers.contents(owner)
            if method_named(name).writes:
                self._world.journal.note_container(owner)

    def _method(self, owner: object, name: str, fn: Callable[..., Any], args: Sequence[Any]) -> None:
        """Take in what a method of an outside container, or a function that is given one, reads and writes of it."""
        if only_grows(fn, owner, args):
            self._world.containers.grows(owner)
            return
        method = method_named(name)
        changes = method.writes or native_of(fn).writes
        if changes and not isinstance(owner, (tuple, frozenset)):  # of these, += makes others
            self._world.containers.contents(owner)
            self._world.journal.note_container(owner)
        elif method.reads is None:
            self._world.containers.contents(owner)

    def end(self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Any:
        """Take in what a call that has run told the program; return what the program shall see."""
        self._world.journal.settle()
        if fn is type and len(args) == 1:
            if isinstance(args[0], type):
                self._world.classes.metaclass(args[0])
            return type_of(args[0], result)
        self._made(fn, args, result)
        if type(result) is types.MappingProxyType and args and isinstance(args[0], type):
            return self._world.attributes.found(args[0], "__dict__", result)
        if isinstance(result, torch.Tensor):
            result = self._arrays.made(fn, args, result)
            if isinstance(result, TracedTensor):
                return result
        if is_array(result):
            result = self._arrays.computed(fn, args, kwargs, result)
        subscribed = _subscribed(fn, args)
        if subscribed is not None:
            return self._world.containers.item(*subscribed, result)
        if fn is _abc._abc_instancecheck or fn is _abc._abc_subclasscheck:
            self._checked(args[0], class_of(args[1]) if fn is _abc._abc_instancecheck else args[1], result)
        return self._world.stand_ins.of_result(fn, self._answered(fn, args, kwargs, result))

    def _made(self, fn: Any, args: Sequence[Any], result: Any) -> None:
        """Take note of what a call made, or undid."""
        if isinstance(getattr(fn, "__self__", None), contextvars.ContextVar) and fn.__name__ == "reset":
            self._world.journal.take_back("context", fn.__self__, None)
        if isinstance(result, type) and makes_class(fn, args):
            self._world.classes.made(result)
        if fn is globals:
            self._world.know(result, held(result, f"globals of {result.get('__name__', '?')}"))
        elif fn is builtins.__import__:
            self._world.answers.imported(result, args[0])

    def _answered(self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], result: object) -> Any:
        native = native_of(fn)
        if native.asks_objects and self._is_foreign(args[0]):
            return self._world.answers.result_of(fn, tuple(args), result)
        if native.reads is not None:
            native.reads(self._world, *args)
            return result
        name, owner = getattr(fn, "__name__", ""), getattr(fn, "__self__", None)
        if is_query(fn, args, kwargs, result):
            query = as_positional(fn, kwargs)
            if self._world.journal.written_at(owner, "context", None) or not self._world.process.answers(
                query, args, result
            ):
                return result
            return self._world.answers.result_of(query, tuple(args), result)
        if self._world.states.answers(fn, owner):
            return self._world.states.answered(owner, name, tuple(args), result)
        reader = method_named(name).reads
        if reader is None:
            return result
        if is_container(owner):
            args = (owner, *args)
        if args and is_container(args[0]) and self._world.source_of(args[0]) is not None:
            reader(self._world, *args)
        return result

    def _checked(self, abstract: type, cls: Any, answer: bool) -> None:
        """Take in what an abstract class says of a class that is not derived from it: classes may be registered."""
        if (
            isinstance(cls, type)
            and abstract not in cls.__mro__
            and (not answer or self._world.classes.is_outside(cls))
        ):
            self._world.answers.registered(cls, abstract, answer)

    def _is_foreign(self, value: object) -> bool:
        """Whether an outside object answers operators by code in C, and is of no kind that is read in another way."""
        if self._world.source_of(value) is None or isinstance(value, (*VALUES, *CODE, torch.Tensor, torch.nn.Module)):
            return False
        return not is_container(value) and not is_buffer(value) and any([hasattr(value, n) for n in OF_CONTAINERS])


def _subscribed(fn: object, args: Sequence[Any]) -> tuple[Any, Any] | None:
    """Return the container and the key of a call that subscribes; ``None`` if it is none."""
    if fn is operator.getitem:
        return (args[0], args[1]) if is_container(args[0]) else None
    if not isinstance(fn, METHODS) or fn.__name__ != "__getitem__":
        return None
    owner = getattr(fn, "__self__", None)
    given = args if owner is None else (owner, *args)
    return (given[0], given[1]) if is_container(given[0]) else None


def makes_class(fn: object, args: Sequence[Any]) -> bool:
    """Whether a call makes a class."""
    if fn is type.__new__:
        return True
    return isinstance(fn, type) and issubclass(fn, type) and (fn is not type or len(args) == 3)
