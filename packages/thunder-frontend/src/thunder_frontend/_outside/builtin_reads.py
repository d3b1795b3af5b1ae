"""What functions written in C read and write of containers, and of the objects in these: by function, and by name.

A function that is listed here takes in no more than it looks at. To all others an outside container goes as a whole.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import torch

from thunder_frontend._outside.class_facts import class_of
from thunder_frontend._outside.world import World
from thunder_guards.journal import MISSING
from thunder_guards.kinds import DICTS, ITERATORS, LISTS, SETS, is_container, item_of, pairs_of
from thunder_tracing.tensors.constants import OF_ARRAYS

MUTATORS = frozenset(
    "append extend insert pop remove clear sort reverse update setdefault popitem add discard appendleft popleft "
    "extendleft rotate move_to_end difference_update intersection_update symmetric_difference_update __setitem__ "
    "__delitem__ __iadd__ __ior__ __iand__ __isub__ __ixor__ __imul__ "
    "_count_elements heappush heappop heapify heappushpop heapreplace insort insort_left insort_right".split()
)
INPLACE_OPERATORS = frozenset(
    getattr(operator, n) for n in ("iadd", "ior", "iand", "isub", "ixor", "imul", "setitem", "delitem")
)
"""What changes the container that it is called for: methods and functions by name, and operators."""


def asked_inside(fn: Callable[..., Any], known: bool) -> tuple[str, ...] | None:
    """Which methods a function calls of the objects that containers hold which it gets; ``None`` if it has none."""
    if known and fn in LOOKING_INSIDE:
        return LOOKING_INSIDE[fn]
    if getattr(fn, "__module__", None) == "math":
        return ()
    owner = getattr(fn, "__self__", None)
    return ASKING_METHODS.get(fn.__name__) if isinstance(owner, (*LISTS, *DICTS, *SETS, str)) else None


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


def _contains(world: World, container: Any, key: Any, *rest: Any) -> None:
    if is_container(container) and world.source_of(container) is not None:
        if isinstance(container, LISTS):
            world.containers.contents(container)
        else:
            world.containers.membership(container, key, key in container)


def found_in_dict(world: World, container: object, key: object) -> None:
    """Take in what subscription is about to find in a dict, which may be of a class of its own."""
    if not isinstance(container, DICTS) or world.source_of(container) is None or key in container:
        return
    world.containers.membership(container, key, False)
    if isinstance(container, defaultdict) and container.default_factory is not None:
        source = world.source_of(container)
        assert source is not None
        if source.is_held:
            world.part(container, str(source), "default_factory")
            world.hold(container.default_factory, f"{source}.default_factory")
        else:
            world.attributes.found(container, "default_factory", container.default_factory)
        world.journal.note("item", container, key, MISSING)


def _whole(world: World, container: object, *rest: Any) -> None:
    if is_container(container):
        world.containers.contents(container)
    _rest(world, container)


def _rest(world: World, container: object, *rest: Any) -> None:
    if type(container) in ITERATORS:
        world.containers.rest(container)


def _get(world: World, container: Any, key: Any, *rest: Any) -> None:
    present = key in container
    if present:
        world.containers.item(container, key, item_of(container, key))
    else:
        world.containers.membership(container, key, False)


def _all_items(world: World, container: object, *rest: Any) -> None:
    world.containers.structure(container)
    for key, value in pairs_of(container):
        world.containers.item(container, key, value)


def _keys(world: World, container: object, *rest: Any) -> None:
    world.containers.structure(container)


def _len(world: World, container: object) -> None:
    if isinstance(container, DICTS):
        world.containers.keys(container)
    elif isinstance(container, (*LISTS, *SETS)):
        world.containers.structure(container)


def _bool(world: World, value: object = None) -> None:
    if is_container(value) and world.source_of(value) is not None:
        if value:
            _len(world, value)
        else:
            world.containers.empty(value)


def _names(world: World, value: object = None) -> None:
    """What ``dir`` looks at of an object: the attributes of its own and those of its classes."""
    source, own = world.source_of(value), getattr(value, "__dict__", None)
    if source is not None and isinstance(own, dict):
        world.attributes.found(value, "__dict__", own)
        world.containers.keys(own)
    classes = value.__mro__ if isinstance(value, type) else class_of(value).__mro__
    for cls in filter(world.classes.is_outside, classes):
        names = cls.__dict__
        world.attributes.found(cls, "__dict__", names)
        world.containers.keys(names)


def _nothing(world: World, *args: Any) -> None:
    pass


BEFORE: dict[Any, Callable[..., None]] = {
    bool: _bool,
    operator.truth: _bool,
    operator.not_: _bool,
    operator.getitem: found_in_dict,
    operator.contains: _rest,
    iter: _whole,
    dir: _names,
}
"""Functions: what each takes in before it runs."""

TAKE_STATE = frozenset({"__reduce_ex__", "__reduce__", "__getstate__"})
"""Methods that return all that an object is made of, for copies."""

TAKE_ARRAYS = frozenset({torch.from_numpy, *OF_ARRAYS})
"""Functions that make a tensor of an array, which becomes an input of the program."""

EQUAL = ("__eq__",)
ORDER = ("__lt__", "__gt__")
KEYS = ("__eq__", "__hash__")
TEXT = ("__str__", "__repr__", "__format__")

LOOKING_INSIDE: dict[Any, tuple[str, ...]] = {
    **dict.fromkeys((operator.contains, operator.indexOf, operator.countOf, operator.eq, operator.ne), EQUAL),
    **dict.fromkeys((min, max, sorted, operator.lt, operator.le, operator.gt, operator.ge), ORDER),
    **dict.fromkeys((hash, dict, set, frozenset), KEYS),
    **dict.fromkeys((repr, str, format, print, operator.mod), TEXT),
    **dict.fromkeys((any, all, filter), ("__bool__", "__len__")),
    **dict.fromkeys((float, int, complex, range, divmod, pow, round, operator.getitem, operator.index), ()),
    **dict.fromkeys((operator.add, operator.mul, iter, next, list, tuple), ()),
    sum: ("__radd__", "__add__"),
}
"""Builtins that look at what containers hold, and the special methods that they call of these objects."""

SEARCHING = (operator.getitem, operator.contains, iter, next, list, tuple)
"""Those of them that need not look at all that a dict or a set holds."""

ASKING_METHODS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys("index count remove __contains__ __eq__ __ne__".split(), EQUAL),
    **dict.fromkeys("sort __lt__ __gt__".split(), ORDER),
    **dict.fromkeys("format join".split(), TEXT),
    **dict.fromkeys("get pop setdefault __getitem__ add discard update issubset issuperset isdisjoint".split(), KEYS),
    **dict.fromkeys("union intersection difference".split(), KEYS),
}
"""Methods of containers and strings that do the same."""

BUILTIN = frozenset(
    {None, "builtins", "_abc", "collections", "itertools", "_operator", "_functools", "operator", "functools", "typing"}
)
"""Modules of functions that look into objects of the user's classes only by calling their methods."""

PRECISE: dict[Any, Callable[..., None]] = {
    len: _len, bool: _nothing, operator.truth: _nothing, operator.not_: _nothing, operator.contains: _contains,
    isinstance: _nothing, operator.is_: _nothing, operator.is_not: _nothing, id: _nothing, callable: _nothing,
    issubclass: _nothing, operator.getitem: _nothing, iter: _nothing, next: _nothing, type: _nothing,
}  # fmt: skip
"""Functions whose reads of outside containers are known: what each takes in, once it has run."""

ASKED_OF_OBJECTS = (len, bool, operator.truth, operator.not_, operator.contains, operator.getitem)
"""Those of them that are asked again of objects of other kinds."""

OF_CONTAINERS = ("__len__", "__bool__", "__contains__", "__getitem__")

READS: dict[str, Callable[..., None]] = {
    "get": _get, "__contains__": _contains, "items": _all_items, "values": _all_items, "keys": _keys, "__len__": _len,
    "__getitem__": _nothing, "__iter__": _whole,
}  # fmt: skip
"""The same for methods of containers, by name."""

__all__ = [
    "ASKED_OF_OBJECTS", "BEFORE", "BUILTIN", "INPLACE_OPERATORS", "MUTATORS", "OF_CONTAINERS", "PRECISE", "READS",
    "SEARCHING", "TAKE_ARRAYS", "TAKE_STATE", "TEXT", "asked_inside", "found_in_dict", "only_grows",
]  # fmt: skip
