"""What the interpreter reports while a program is acquired, handed on to external state."""

from __future__ import annotations

import operator
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import BuiltinFunctionType, CellType, CodeType, FrameType, FunctionType, GetSetDescriptorType
from typing import Any

import torch

from thunder_frontend._external_state.builtin_reads import BUILTIN, found_in_dict
from thunder_frontend._external_state.class_facts import type_of
from thunder_frontend._external_state.given_numbers import numbers_given
from thunder_frontend._external_state.guarded_state import GuardedState
from thunder_frontend._external_state.native import hashable
from thunder_frontend._external_state.opaque_calls import OpaqueCalls, makes_class
from thunder_frontend._external_state.symbolic_numbers import compare_with_zero, identical, refuse_array, refuse_number
from thunder_frontend._library_code.native_code import is_of_no_concern
from thunder_guards.errors import BeginAgain
from thunder_guards.kinds import (
    DICTS,
    ITEMS_VIEW,
    LISTS,
    NOTHING_INSIDE,
    VALUES_VIEW,
    dict_of,
    is_array,
    is_container,
    item_of,
)
from thunder_guards.mutations import MISSING, contents_of, kept_as
from thunder_interpreter import Callbacks, names_of
from thunder_ir import (
    DeviceError,
    DimensionError,
    DTypeError,
    IntegerProxy,
    NumberProxy,
    ShapeError,
    ThunderError,
    UnknownNumberError,
    map_values,
)
from thunder_tracing.tensors.comparisons import compared
from thunder_tracing.tensors.constants import Arrays
from thunder_tracing.tensors.run_arrays import RunArray
from thunder_tracing.tensors.run_numbers import item_of_the_run
from thunder_tracing.tensors.run_texts import RunText, interpolated
from thunder_tracing.tensors.sizes import SymbolicSize, fixed, sum_of_sizes
from thunder_tracing.tensors.traced_tensor import TracedTensor

HAND_ON = frozenset(map(id, (
    operator.add, operator.iadd, RunText.__add__, RunText.__radd__, torch.is_tensor,
    list.append, list.insert, deque.append, deque.appendleft,
)))  # fmt: skip
"""What does not look at text that it is given, by identity: comparing callables may run a user's code."""
HAND_ON_BY_NAME = frozenset({"append", "insert", "appendleft"})
"""The same of lists and deques, as methods of one."""
REMAINDERS = (operator.mod, operator.imod)
LEVELS = 4
"""How many containers within each other are searched for such text."""
NUMBERS = re.compile(r"\b((Integer|Float|Complex|Bool)Proxy|RunArray|RunText)\b")
"""How code in C calls a number that is symbolic, where it refuses it."""

EAGER_RAISES_TOO = (ShapeError, DTypeError, DeviceError, DimensionError)


class Watch(Callbacks):
    """Reports reads and writes of external objects to external state.

    Args:
        external: what is outside.
        sharp: called with a sentence about an effect that the compiled program will not repeat.
        branches: takes a traced tensor or number that code branches on, the code, and the place in it; returns the
            truth to go by, or ``NotImplemented``.
        arrays: what tensors are made of.
    """

    def __init__(
        self,
        external: GuardedState,
        sharp: Callable[[str], None],
        branches: Callable[[Any, CodeType, int], Any],
        arrays: Arrays,
    ) -> None:
        self.external = external
        self.sharp = sharp
        self.branches = branches
        self._arrays = arrays
        self._calls = OpaqueCalls(external, sharp, arrays)
        self.opaque_result = self._calls.end  # type: ignore[method-assign]
        self.refusal: ThunderError | None = None
        self.signal: BeginAgain | None = None
        self.frames: tuple[Any, ...] = ()
        """The frames that a refusal went through first, innermost first."""
        self.waiting: Callable[[], tuple[Any, ...]] = tuple

    def branch(self, value: object, code: CodeType, offset: int) -> Any:
        if isinstance(value, (TracedTensor, NumberProxy)):
            return self.branches(value, code, offset)
        return NotImplemented

    def raised(self, error: BaseException) -> None:
        """Keep what says that there is no program, or not yet: a handler of the user's is not meant for it."""
        if self.signal is None and isinstance(error, BeginAgain):
            self.signal = error
        if self.refusal is None and isinstance(error, ThunderError) and not isinstance(error, EAGER_RAISES_TOO):
            self.refusal = error
        if isinstance(error, TypeError) and self.refusal is None and NUMBERS.search(str(error)):
            self.refusal = UnknownNumberError(f"Python needs the value of a number that is symbolic: {error}")
        if not self.frames and (self.refusal is not None or isinstance(error, ThunderError)):
            self.frames = self.waiting()
        if isinstance(error, ImportError) and isinstance(error.name, str):
            self.external.answers.not_imported(error.name)

    # --- loads -----------------------------------------------------------------------------------------------------

    def load_global(self, globals_dict: dict[str, Any], name: str, value: object) -> Any:
        return self.external.loaded(self.external.functions.global_, globals_dict, name, value)

    def load_closure(self, function: FunctionType, name: str, value: object) -> Any:
        return self.external.loaded(self.external.functions.cell, function, name, value)

    def missing_global(self, globals_dict: dict[str, Any], name: str) -> None:
        self.external.functions.missing_global(globals_dict, name)

    def missing_closure(self, function: FunctionType, name: str) -> None:
        self.external.functions.missing(function, name)

    def load_attribute(self, obj: Any, name: str, value: Any) -> Any:
        if name == "__class__" and isinstance(obj, (TracedTensor, NumberProxy, RunText, SymbolicSize)):
            return type_of(obj, value)
        if name == "mapping":
            self.external.unwatched.shown(obj)
        if isinstance(obj, TracedTensor):
            if name in obj.__dict__:
                return self.external.attributes.found_on_tensor(obj, name, value)
            return self.external.attributes.given_by_class_of_tensor(obj, name, value)
        return self.external.stand_ins.of(self.external.loaded(self.external.attributes.found, obj, name, value))

    def missing_attribute(self, obj: object, name: str) -> None:
        if isinstance(obj, TracedTensor):
            self.external.attributes.missing_on_tensor(obj, name)
        else:
            self.external.attributes.missing(obj, name)

    def key(self, container: object, key: object) -> Any:
        """Ask external dicts, such as the state of an optimizer, for the tensors that are their keys.

        Symbolic numbers get fixed by that.
        """
        if type(key) in NOTHING_INSIDE:
            return key
        self.external.depends_on_identity(key)
        if self.external.source_of(container) is None:
            return key
        self.external.fix_hash(key)
        if isinstance(key, (NumberProxy, RunText, tuple)):
            return fixed(key)
        if isinstance(key, TracedTensor) and "_input" in key.__dict__:
            found = key._input
            self.external.fix_identity(found.example, found.slot, found.source)
            return found.example
        return key

    def load_item(self, container: object, key: object, value: object) -> Any:
        if isinstance(key, slice) and (type(container) is list or type(container) is tuple):
            return self._slice(container, key, value)
        return self.external.loaded(self.external.containers.item, container, key, value)

    def _slice(self, container: Sequence[Any], key: slice, value: Any) -> Any:
        """Guard the items of a slice one by one, for numbers among them to become dynamic; return what they are."""
        if self.external.source_of(container) is None:
            return self.external.containers.item(container, key, value)
        self.external.containers.length(container)
        places = range(len(container))[key]
        read = self.external.containers.item
        seen = [self.external.loaded(read, container, i, held) for i, held in zip(places, value, strict=True)]
        return value if all(map(operator.is_, seen, value)) else type(value)(seen)

    def missing_item(self, container: object, key: object) -> None:
        if isinstance(container, DICTS):
            self.external.containers.membership(container, key, False)
        elif isinstance(container, LISTS):
            self.external.containers.length(container)

    def iterate(self, container: object, iterator: object) -> None:
        if is_container(container):
            self.external.containers.iterated(container)

    def iterated(self, container: object, place: object, value: Any) -> Any:
        if isinstance(container, LISTS):
            return self.external.loaded(self.external.containers.item, container, place, value)
        if type(container) is VALUES_VIEW:
            return self.external.loaded(self.external.containers.item, dict_of(container), place, value)
        if type(container) is ITEMS_VIEW:
            key, held = value
            seen = self.external.loaded(self.external.containers.item, dict_of(container), key, held)
            return value if seen is held else (key, seen)
        return self.external.stand_ins.of(value)

    def advanced(self, iterator: object, value: object) -> Any:
        return self.external.stand_ins.of(value)

    # --- stores ----------------------------------------------------------------------------------------------------

    def store_attribute(self, obj: object, name: str, value: object) -> None:
        if isinstance(obj, TracedTensor):
            if not isinstance(getattr(torch.Tensor, name, None), GetSetDescriptorType):
                self.external.mutations.note("attribute", obj, name, obj.__dict__.get(name, MISSING))
            return
        if not isinstance(obj, type):
            self.external.classes.stored(type(obj), name)
        cls: Any = type(obj)
        if cls.__setattr__ is dict.__setitem__:
            self.store_item(obj, name, value)
        elif self.external.source_of(obj) is not None:
            self.external.mutations.note("attribute", obj, name, kept_as(obj, name))

    def delete_attribute(self, obj: object, name: str) -> None:
        self.store_attribute(obj, name, None)

    def store_item(self, container: object, key: object, value: object) -> None:
        if isinstance(container, TracedTensor) or self.external.source_of(container) is None:
            return
        if isinstance(key, slice) or isinstance(container, deque):
            self.external.containers.contents(container)
            self.external.mutations.note_container(container)
        elif isinstance(container, dict):
            self.external.containers.membership(container, key, key in container)
            self.external.mutations.note("item", container, key, dict.get(container, key, MISSING))
        else:
            self.external.containers.length(container)
            place = fixed(key)
            self.external.mutations.note("item", container, place, item_of(container, place))

    def delete_item(self, container: object, key: object) -> None:
        mutations = self.external.mutations
        if isinstance(container, TracedTensor) or isinstance(container, dict) and mutations.added(container, key):
            return
        if self.external.source_of(container) is not None:
            self.external.containers.contents(container)
            self.external.mutations.note_container(container)

    def store_global(self, globals_dict: dict[str, Any], name: str, value: object) -> None:
        self.sharp(f"it writes the global {name!r}, which each call does when it has computed everything")
        self.external.mutations.note("item", globals_dict, name, globals_dict.get(name, MISSING))

    def delete_global(self, globals_dict: dict[str, Any], name: str) -> None:
        self.store_global(globals_dict, name, None)

    def store_closure(self, cell: CellType, name: str, value: object) -> None:
        if self.external.functions.is_outside(cell):
            self.external.mutations.note("cell", cell, None, contents_of(cell))

    # --- calls -----------------------------------------------------------------------------------------------------

    def opaque_call(self, fn: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> None:
        seen = numbers_given(self.external, fn, args, kwargs)
        if seen is not None:
            args[:], named = seen
            kwargs.update(named)
        if (fn is operator.getitem or fn is operator.setitem) and isinstance(args[0], TracedTensor):
            args[1] = self._arrays.given_index(args[1])
        self._calls.begin(fn, args, kwargs)

    def call(self, fn: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
        self.external.functions.entered(fn, args, kwargs)
        if fn.__name__ == "__missing__" and len(args) == 2:
            self.missing_item(*args)

    def special_methods(self, fn: object, operands: list[Any]) -> None:
        self.external.classes.operands(fn, operands)
        if fn is operator.getitem:
            found_in_dict(self.external, *operands)

    def native_frame(self, frame: FrameType, call: tuple[Any, Sequence[Any], Mapping[str, Any]]) -> None:
        if not is_of_no_concern(frame):
            fn, args, kwargs = call
            if makes_class(fn, args):
                for made in frame.f_locals.values():
                    if isinstance(made, type) and made.__name__ in args and self.external.source_of(made) is None:
                        self.external.classes.made(made)
            for name in self.external.native_frames.entered(frame, [fn, *args, *kwargs.values()]):
                self._calls.varies(name)

    def native_callables(self, found: list[tuple[type | None, str, Any]], given: Sequence[Any] | None) -> None:
        for name in self.external.native_frames.found(found, given):
            self._calls.varies(name)

    def native_call(self, frame: FrameType, fn: Callable[..., Any]) -> None:
        if not is_of_no_concern(frame):
            for name in self.external.native_frames.calls(fn, names_of(frame.f_code)):
                self._calls.varies(name)


class WatchSymbolic(Watch):
    """The same for programs with symbolic numbers, of which Python has other objects than there are."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.opaque_result = self._end  # type: ignore[method-assign]
        self._has_number = False
        """Whether the call that code in C was entered for last, and did not return from, has a symbolic number."""

    def opaque_call(self, fn: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> None:
        if hashable(fn):
            compare_with_zero(fn, args)
        if not _hands_on(fn):
            looks_within = self.external.any_symbolic and getattr(fn, "__module__", None) not in BUILTIN
            levels = LEVELS if looks_within else 0
            _fix_texts(args, enumerate(args), levels)
            _fix_texts(kwargs, kwargs.items(), levels)
        if (fn is operator.getitem or fn is operator.setitem) and is_array(args[0]) and type(args[0]) is not RunArray:
            args[1] = map_values(fixed, args[1])  # NumPy asks the numbers in lists for no integers
        self._has_number = any([isinstance(value, NumberProxy) for value in (*args, *kwargs.values())])
        super().opaque_call(fn, args, kwargs)

    def _end(self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], result: object) -> Any:
        if self._has_number:
            refuse_number(fn, result)
        self._has_number = False
        refuse_array(result, (args, kwargs))
        return self._calls.end(fn, args, kwargs, result)

    def raised(self, error: BaseException) -> None:
        """Keep, too, what may be due to numbers that are symbolic: whom code in C refuses its words need not say."""
        has_number, self._has_number = self._has_number, False
        kind = type(error)
        due = kind is TypeError and (self.external.any_symbolic or has_number) or kind is ValueError and has_number
        if due and self.refusal is None:
            self.refusal = UnknownNumberError(f"Python needs the value of a number that is symbolic: {error}")
        super().raised(error)

    def item(self, sequence: Sequence[Any], index: object) -> Any:
        """Numbers that are found by a number which changes, as in a schedule, are looked up when the program runs."""
        if is_array(sequence):
            return self._arrays.element(sequence, index)
        if isinstance(index, IntegerProxy) and self.external.containers.may_look_up(sequence):
            return item_of_the_run(sequence, index)
        return NotImplemented

    def identical(self, a: object, b: object) -> bool:
        return identical(a, b)

    def arithmetic(self, fn: Callable[..., Any], a: Any, b: Any) -> Any:
        return interpolated(a, b) if fn in REMAINDERS else sum_of_sizes(fn, a, b)

    def compare(self, fn: Callable[..., Any], a: Any, b: Any) -> Any:
        return compared(fn, a, b)


def _hands_on(fn: Any) -> bool:
    """Whether code in C does not look at text that it is given."""
    if id(fn) in HAND_ON:
        return True
    return type(fn) is BuiltinFunctionType and type(fn.__self__) in (list, deque) and fn.__name__ in HAND_ON_BY_NAME


def _fix_texts(given: Any, items: Iterable[tuple[Any, Any]], levels: int) -> None:
    """Give code in C the text that there is in place of one that each call has its own of.

    Args:
        given: the arguments, or a container that the program made and that is among them.
        items: keys and values of that.
        levels: how far down the code may look into containers.
    """
    for key, value in items:
        if type(value) is RunText:
            given[key] = value.fixed()
        elif levels and type(value) is tuple:
            made = list(value)
            _fix_texts(made, enumerate(value), levels - 1)
            if any([a is not b for a, b in zip(made, value, strict=True)]):
                given[key] = tuple(made)
        elif levels and type(value) in (list, dict):
            _fix_texts(value, [*(value.items() if type(value) is dict else enumerate(value))], levels - 1)
