"""What functions written in C read and write of containers, and of the objects in these: by function, and by name.

A function that is listed here guards no more than it looks at. To all others an external container goes as a whole.
"""

from __future__ import annotations

import gc
import itertools
import operator
import types
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from thunder_frontend._external_state.class_facts import class_of
from thunder_frontend._external_state.dynamic_values import is_loaded
from thunder_frontend._external_state.guarded_state import GuardedState
from thunder_frontend._external_state.native import UNLISTED, Native, file
from thunder_guards.kinds import DICTS, ITERATORS, LISTS, SETS, is_container, item_of, pairs_of
from thunder_guards.mutations import MISSING
from thunder_tracing.tensors.run_arrays import OF_ARRAYS

EQUAL = ("__eq__",)
ORDER = ("__lt__", "__gt__")
KEYS = ("__eq__", "__hash__")
TEXT = ("__str__", "__repr__", "__format__")


def asked_inside(fn: Callable[..., Any], native: Native) -> tuple[str, ...] | None:
    """Which methods a function calls of the objects that containers hold which it gets; ``None`` if it has none."""
    if native.calls is not None:
        return native.calls
    if getattr(fn, "__module__", None) == "math":
        return ()
    owner = getattr(fn, "__self__", None)
    return method_named(fn.__name__).calls if isinstance(owner, (*LISTS, *DICTS, *SETS, str)) else None


def only_grows(fn: Callable[..., Any], owner: Any, args: Sequence[Any]) -> bool:
    """Whether a call appends to a list, and looks at nothing of what that holds.

    Args:
        fn: what is called.
        owner: the container that it is called for.
        args: of the call.
    """
    if type(owner) is not list:
        return False
    name = fn.__name__ if getattr(fn, "__self__", None) is owner else "" if fn is not list.extend else "extend"
    return name == "append" or name == "extend" and type(args[-1]) is list and args[-1] is not owner


def _contains(external: GuardedState, container: Any, key: Any, *rest: Any) -> None:
    if is_container(container) and external.source_of(container) is not None:
        if isinstance(container, LISTS):
            external.containers.contents(container)
        else:
            external.containers.membership(container, key, key in container)


def found_in_dict(external: GuardedState, container: object, key: object) -> None:
    """Guard what subscription is about to find in a dict, which may be of a class of its own."""
    if not isinstance(container, DICTS) or external.source_of(container) is None or key in container:
        return
    external.containers.membership(container, key, False)
    if isinstance(container, defaultdict) and container.default_factory is not None:
        source = external.source_of(container)
        assert source is not None
        if source.is_held:
            external.part(container, str(source), "default_factory")
            external.hold(container.default_factory, f"{source}.default_factory")
        else:
            external.attributes.found(container, "default_factory", container.default_factory)
        external.mutations.note("item", container, key, MISSING)


def _elements(external: GuardedState, *iterables: Any) -> None:
    for iterable in iterables:
        if type(iterable) in ITERATORS:
            _elements(external, *gc.get_referents(iterable))
        elif is_container(iterable):
            external.containers.elements(iterable)
        else:
            external.unwatched.escapes(iterable)


def _rest(external: GuardedState, container: object, *rest: Any) -> None:
    if type(container) in ITERATORS:
        external.containers.rest(container)


def _get(external: GuardedState, container: Any, key: Any, *rest: Any) -> None:
    if key in container:
        external.containers.item(container, key, item_of(container, key))
    else:
        external.containers.membership(container, key, False)


def _view(external: GuardedState, container: object, *rest: Any) -> None:
    """Numbers and texts that a view of a dict shows are guarded when they are loaded: they may be dynamic then."""
    external.containers.structure(container)
    later = not isinstance(container, (OrderedDict, types.MappingProxyType))  # whose views are of other classes
    for key, value in pairs_of(container):
        if not (later and is_loaded(value)):
            external.containers.item(container, key, value)


def _structure(external: GuardedState, container: object, *rest: Any) -> None:
    external.containers.structure(container)


def _bool(external: GuardedState, value: object = None) -> None:
    if is_container(value) and external.source_of(value) is not None:
        (external.containers.structure if value else external.containers.empty)(value)


def _names(external: GuardedState, value: object = None) -> None:
    """What ``dir`` looks at of an object: the attributes of its own and those of its classes."""
    source, own = external.source_of(value), getattr(value, "__dict__", None)
    if source is not None and isinstance(own, dict):
        external.attributes.found(value, "__dict__", own)
        external.containers.keys(own)
    classes = value.__mro__ if isinstance(value, type) else class_of(value).__mro__
    for cls in filter(external.classes.is_outside, classes):
        names = cls.__dict__
        external.attributes.found(cls, "__dict__", names)
        external.containers.keys(names)


def _nothing(external: GuardedState, *args: Any) -> None:
    pass


SEARCHES = Native(reads=_nothing, calls=(), searches=True)
TRUTH = Native(before=_bool, reads=_nothing, asks_objects=True)
file(Native(reads=_nothing), isinstance, issubclass, operator.is_, operator.is_not, id, callable, type, torch.is_tensor)
file(TRUTH, bool, operator.truth, operator.not_)
file(Native(reads=_structure, asks_objects=True), len)
file(Native(before=_names), dir)
file(replace(SEARCHES, before=_rest, reads=_contains, calls=EQUAL, asks_objects=True), operator.contains)
file(replace(SEARCHES, before=found_in_dict, asks_objects=True), operator.getitem)
file(
    Native(before=_elements, reads=_nothing), iter, reversed, list, tuple, enumerate, zip,
    itertools.chain, itertools.islice, itertools.zip_longest, itertools.product,
)  # fmt: skip
file(SEARCHES, next)
file(Native(calls=EQUAL), operator.indexOf, operator.countOf, operator.eq, operator.ne)
file(Native(calls=ORDER), min, max, sorted, operator.lt, operator.le, operator.gt, operator.ge)
file(Native(calls=KEYS), hash, dict, set, frozenset)
file(Native(calls=TEXT), repr, str, format, print, operator.mod)
file(Native(calls=("__bool__", "__len__")), any, all, filter)
file(Native(calls=("__radd__", "__add__")), sum)
file(Native(calls=()), float, int, complex, range, divmod, pow, round, operator.index, operator.add, operator.mul)
file(
    Native(writes=True), operator.iadd, operator.ior, operator.iand, operator.isub, operator.ixor, operator.imul,
    operator.setitem, operator.delitem,
)  # fmt: skip

_METHODS: dict[str, Native] = {}
for _native, _names_of in (
    (Native(reads=_view), "items values"),
    (Native(reads=_structure), "keys __len__"),
    (Native(reads=_elements), "__iter__"),
    (Native(reads=_get, calls=KEYS), "get"),
    (Native(reads=_nothing, calls=KEYS), "__getitem__"),
    (Native(reads=_contains, calls=EQUAL), "__contains__"),
    (Native(calls=EQUAL), "index count __eq__ __ne__"),
    (Native(calls=ORDER), "__lt__ __gt__"),
    (Native(calls=TEXT), "format join"),
    (Native(calls=KEYS), "issubset issuperset isdisjoint union intersection difference"),
    (Native(calls=EQUAL, writes=True), "remove"),
    (Native(calls=ORDER, writes=True), "sort"),
    (Native(calls=KEYS, writes=True), "pop setdefault add discard update"),
    (Native(writes=True), "append extend insert clear reverse popitem appendleft popleft extendleft rotate"),
    (Native(writes=True), "difference_update intersection_update symmetric_difference_update __setitem__ __delitem__"),
    (Native(writes=True), "__iadd__ __ior__ __iand__ __isub__ __ixor__ __imul__ _count_elements heappush heappop"),
    (Native(writes=True), "move_to_end heapify heappushpop heapreplace insort insort_left insort_right"),
):
    _METHODS.update(dict.fromkeys(_names_of.split(), _native))


def method_named(name: str) -> Native:
    """Return what is known of a method of containers or strings, or of a function that is given one, by its name."""
    return _METHODS.get(name, UNLISTED)


TAKE_STATE = frozenset({"__reduce_ex__", "__reduce__", "__getstate__"})
"""Methods that return all that an object is made of, for copies."""

TAKE_ARRAYS = frozenset({torch.from_numpy, *OF_ARRAYS})
"""Functions that make a tensor of an array, which becomes an input of the program."""

BUILTIN = frozenset(
    {None, "builtins", "_abc", "collections", "itertools", "_operator", "_functools", "operator", "functools", "typing"}
)
"""Modules of functions that look into objects of the user's classes only by calling their methods."""

OF_CONTAINERS = ("__len__", "__bool__", "__contains__", "__getitem__")
