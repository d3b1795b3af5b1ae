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

from thunder_frontend._external_state.builtin_reads import (
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
from thunder_frontend._external_state.class_facts import SPECIAL_METHODS, class_of, type_of
from thunder_frontend._external_state.finalisers import refuse_callback
from thunder_frontend._external_state.guarded_state import GuardedState
from thunder_frontend._external_state.library_settings import makes_text
from thunder_frontend._external_state.native import Answer, hashable, native_of
from thunder_frontend._external_state.queries import (
    answer_of,
    as_positional,
    asks_process,
    is_query,
    reads_stream,
    refuse,
)
from thunder_guards.kinds import CODE, DICTS, ITERATORS, LISTS, VALUES, is_array, is_buffer, is_container
from thunder_guards.mutations import MISSING
from thunder_guards.sources import held
from thunder_tracing.tensors.constants import Arrays
from thunder_tracing.tensors.run_arrays import run_arrays_in
from thunder_tracing.tensors.traced_tensor import TracedTensor

DESCRIPTORS = (types.MethodDescriptorType, types.WrapperDescriptorType)
METHODS = (types.BuiltinFunctionType, types.MethodWrapperType, *DESCRIPTORS)
DECIMAL = (decimal.Decimal, decimal.Context)


class OpaqueCalls:
    """Reports to external state what calls that are not interpreted read and write.

    Args:
        external: what is outside.
        sharp: called with a sentence about an effect that the compiled program will not repeat.
        arrays: what tensors are made of.
    """

    def __init__(self, external: GuardedState, sharp: Callable[..., None], arrays: Arrays) -> None:
        self._external = external
        self._sharp = sharp
        self._arrays = arrays

    def begin(self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Guard what a call reads, and may write, before it runs.

        Raises:
            AcquisitionError: it reads or writes what a program can neither watch nor repeat.
        """
        known, bound, native = hashable(fn), getattr(fn, "__self__", None), native_of(fn)
        self._asks_classes(fn, args, known)
        if isinstance(bound, contextvars.ContextVar):
            self._context_variable(bound, fn.__name__, args)
        if fn is not iter and fn is not len:
            for value in (bound, *args, *kwargs.values()):
                self._external.unwatched.shown(value)
        for value in (bound, *args):
            if is_buffer(value) and not (known and fn in TAKE_ARRAYS):
                self._arrays.looked_at(value)
                self._external.unwatched.escapes(value)
        self._arrays.looked_into((*args, *kwargs.values()))
        if fn is operator.setitem and is_array(args[0]) and run_arrays_in(args[1:]):
            self._arrays.is_of_the_run(args[0])
        if native.before is not None:
            native.before(self._external, *args)
        elif (subscribed := _subscribed(fn, args)) is not None:
            found_in_dict(self._external, *subscribed)
            if isinstance(subscribed[0], LISTS):
                self._external.containers.length(subscribed[0])
        methods = asked_inside(fn, native)
        if methods is not None:
            for value in (*args, *kwargs.values()):
                if not native.searches or not is_container(value) or isinstance(value, LISTS):
                    self._external.unwatched.looked_into(value, methods)
        if fn is type and len(args) == 3:
            self._external.containers.contents(args[2])
        if args and isinstance(args[0], contextvars.Context):
            refuse(getattr(fn, "__name__", ""))
        if native.reads is None and fn is not super:
            self._begin_unlisted(fn, bound, args, kwargs, methods is TEXT)

    def _asks_classes(self, fn: Callable[..., Any], args: Sequence[Any], known: bool) -> None:
        """Guard what an operator, or ``isinstance``, asks the classes of its arguments."""
        if known and fn in SPECIAL_METHODS:
            self._external.classes.operands(fn, args)
        elif fn.__class__ is types.FunctionType:
            self._external.functions.called_as_it_is(fn)
        elif fn is object.__new__ and args and isinstance(args[0], type):
            self._external.classes.makes_object(args[0])
        if fn is isinstance or fn is issubclass:
            self._external.classes.checks("__instancecheck__" if fn is isinstance else "__subclasscheck__", args[1])
            self._external.classes.derives(class_of(args[0]) if fn is isinstance else args[0])
            if fn is isinstance and isinstance(args[0], type):
                self._external.classes.metaclass(args[0])

    def _begin_unlisted(
        self, fn: Callable[..., Any], bound: object, args: Sequence[Any], kwargs: Mapping[str, Any], as_text: bool
    ) -> None:
        """Guard what a call may read of whose reads no list tells."""
        external, name, owner = self._external, getattr(fn, "__name__", ""), bound
        if (owner is None or isinstance(owner, types.ModuleType)) and args:
            owner = args[0]
        shows = as_text and (fn is not operator.mod or isinstance(args[0], str))
        if asks_process(fn, bound, args, kwargs) or makes_text(fn, bound, args, shows):
            self._sharp(f"it calls {name}(), which asks the process for what others may set; later calls do not")
        external.settings.called(fn, bound, args, kwargs)
        external.process.called(fn)
        refuse_callback(fn, args)
        if is_container(owner):
            if external.source_of(owner) is not None:
                self._method(owner, name, fn, args)
        elif bound is not None and not isinstance(bound, (types.ModuleType, type)):
            external.unwatched.escapes(bound)
        if name in TAKE_STATE and (args or bound is not None):
            external.unwatched.copied(args[0] if bound is None else bound)
        self._asks_outside(fn, name, owner, args, kwargs)
        given = (*args, *kwargs.values())
        if any([isinstance(a, DECIMAL) for a in (bound, *given)]):
            external.answers.computes_decimals((bound, *given))
        if isinstance(getattr(type(fn), "__call__", None), types.FunctionType):  # noqa: B004
            external.unwatched.escapes(fn, watched=False)
        self._passed(fn, owner, given)

    def _asks_outside(
        self, fn: Callable[..., Any], name: str, owner: object, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        """Guard what a call asks for that other code may change."""
        external, answer = self._external, answer_of(fn, owner, args)
        if answer is Answer.REFUSED or reads_stream(name, owner) and external.source_of(owner) is not None:
            refuse(name)
        external.states.called(fn, owner, len(args) - (bool(args) and args[0] is owner) + len(kwargs))
        if answer is Answer.VARIES:
            self.varies(name)
        if answer is Answer.ASKED_AGAIN:
            external.answers.asked(fn, args, kwargs)

    def varies(self, name: str) -> None:
        """Deal with a call whose answer is another one each time."""
        self._sharp(f"it calls {name}(), which happens while it is compiled and not on later calls", True)

    def _context_variable(self, variable: contextvars.ContextVar[Any], name: str, args: Sequence[Any]) -> None:
        if name != "get":
            self._external.mutations.note("context", variable, None, variable.get(MISSING))
        elif not args and not self._external.mutations.written_at(variable, "context", None):
            self._external.answers.unset(variable)

    def _passed(self, fn: Callable[..., Any], owner: object, values: Sequence[Any]) -> None:
        """Guard what is passed to a call that cannot be watched."""
        if hashable(fn) and fn in TAKE_ARRAYS and values and is_buffer(values[0]):
            return
        watched = isinstance(fn, type) or getattr(fn, "__module__", None) in BUILTIN or is_container(owner)
        for value in values:
            if watched and isinstance(value, METHODS) and is_container(getattr(value, "__self__", None)):
                self._method_passed(value.__self__, value.__name__)  # type: ignore[union-attr]
            elif type(value) in ITERATORS:
                self._external.containers.rest(value)
            of_its_own = value is owner and is_container(value)
            if of_its_own and (isinstance(fn, DESCRIPTORS) or self._external.source_of(value) is not None):
                continue
            if not isinstance(value, TracedTensor):
                self._external.unwatched.escapes(value, watched)

    def _method_passed(self, owner: object, name: str) -> None:
        """Guard what may be read through a method of a container that code in C is given, and may call."""
        if self._external.source_of(owner) is not None:
            self._external.containers.contents(owner)
            if method_named(name).writes:
                self._external.mutations.note_container(owner)

    def _method(self, owner: object, name: str, fn: Callable[..., Any], args: Sequence[Any]) -> None:
        """Guard what a method of an external container, or a function that is given one, reads and writes of it."""
        if only_grows(fn, owner, args):
            self._external.containers.grows(owner)
            return
        method = method_named(name)
        changes = method.writes or native_of(fn).writes
        if changes and not isinstance(owner, (tuple, frozenset)):  # of these, += makes others
            self._external.containers.contents(owner)
            self._external.mutations.note_container(owner)
        elif method.reads is None:
            self._external.containers.contents(owner)

    def end(self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Any:
        """Guard what a call that has run told the program; return what the program shall see."""
        self._external.mutations.settle()
        if fn is type and len(args) == 1:
            if isinstance(args[0], type):
                self._external.classes.metaclass(args[0])
            return type_of(args[0], result)
        self._made(fn, args, result)
        if type(result) is types.MappingProxyType and args and isinstance(args[0], type):
            return self._external.attributes.found(args[0], "__dict__", result)
        if isinstance(result, torch.Tensor):
            result = self._arrays.made(fn, args, result)
            if isinstance(result, TracedTensor):
                return result
        if is_array(result):
            result = self._arrays.computed(fn, args, kwargs, result)
        subscribed = _subscribed(fn, args)
        if subscribed is not None:
            return self._external.loaded(self._external.containers.item, *subscribed, result)
        if fn is _abc._abc_instancecheck or fn is _abc._abc_subclasscheck:
            self._checked(args[0], class_of(args[1]) if fn is _abc._abc_instancecheck else args[1], result)
        return self._external.stand_ins.of_result(fn, self._answered(fn, args, kwargs, result))

    def _made(self, fn: Any, args: Sequence[Any], result: Any) -> None:
        """Take note of what a call made, or undid."""
        if isinstance(getattr(fn, "__self__", None), contextvars.ContextVar) and fn.__name__ == "reset":
            self._external.mutations.take_back("context", fn.__self__, None)
        if isinstance(result, type) and makes_class(fn, args):
            self._external.classes.made(result)
        if fn is globals:
            self._external.know(result, held(result, f"globals of {result.get('__name__', '?')}"))
        elif fn is builtins.__import__:
            self._external.answers.imported(result, args[0])

    def _answered(self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], result: object) -> Any:
        native = native_of(fn)
        if native.asks_objects and self._is_foreign(args[0]):
            return self._external.answers.result_of(fn, tuple(args), result)
        if native.reads is not None:
            native.reads(self._external, *args)
            return result
        name, owner = getattr(fn, "__name__", ""), getattr(fn, "__self__", None)
        if is_query(fn, args, kwargs, result):
            query = as_positional(fn, kwargs)
            if self._external.mutations.written_at(owner, "context", None) or not self._external.process.answers(
                query, args, result
            ):
                return result
            return self._external.answers.result_of(query, tuple(args), result)
        if self._external.states.answers(fn, owner):
            return self._external.answers.result_of(fn, tuple(args), result)
        reader = method_named(name).reads
        if reader is None:
            return result
        if is_container(owner):
            args = (owner, *args)
        if args and is_container(args[0]) and self._external.source_of(args[0]) is not None:
            reader(self._external, *args)
        return result

    def _checked(self, abstract: type, cls: Any, answer: bool) -> None:
        """Guard what an abstract class says of a class that is not derived from it: classes may be registered."""
        if (
            isinstance(cls, type)
            and abstract not in cls.__mro__
            and (not answer or self._external.classes.is_outside(cls))
        ):
            self._external.answers.registered(cls, abstract, answer)

    def _is_foreign(self, value: object) -> bool:
        """Whether an external object answers operators by code in C, and is of no kind that is read in another way."""
        if self._external.source_of(value) is None or isinstance(
            value, (*VALUES, *CODE, torch.Tensor, torch.nn.Module)
        ):
            return False
        return not is_container(value) and not is_buffer(value) and any([hasattr(value, n) for n in OF_CONTAINERS])


def _subscribed(fn: object, args: Sequence[Any]) -> tuple[Any, Any] | None:
    """Return the container and the key of a call that returns what it has there; ``None`` if it is none."""
    if fn is operator.getitem:
        return (args[0], args[1]) if is_container(args[0]) else None
    if not isinstance(fn, METHODS) or fn.__name__ not in ("__getitem__", "get"):
        return None
    owner = getattr(fn, "__self__", None)
    container, *given = args if owner is None else (owner, *args)
    if fn.__name__ == "get" and not (isinstance(container, DICTS) and given[0] in container):
        return None
    return (container, given[0]) if is_container(container) else None


def makes_class(fn: object, args: Sequence[Any]) -> bool:
    """Whether a call makes a class."""
    if fn is type.__new__:
        return True
    return isinstance(fn, type) and issubclass(fn, type) and (fn is not type or len(args) == 3)
