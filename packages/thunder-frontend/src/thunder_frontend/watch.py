"""What the interpreter reports while a program is acquired, handed on to the world."""

from __future__ import annotations

import builtins
import operator
import random
import time
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Container, Mapping
from typing import Any

from thunder_frontend.errors import AcquisitionError
from thunder_frontend.guards import DistinctTensorsGuard
from thunder_frontend.journal import MISSING
from thunder_frontend.traced_tensor import TracedTensor
from thunder_frontend.world import DICTS, LISTS, SETS, World
from thunder_interpreter import Callbacks

CONTAINERS = frozenset({list, tuple, deque, dict, OrderedDict, defaultdict, types.MappingProxyType, set, frozenset})
MUTATORS = frozenset(
    "append extend insert pop remove clear sort reverse update setdefault popitem add discard appendleft popleft extendleft "
    "rotate move_to_end difference_update intersection_update symmetric_difference_update __setitem__ __delitem__ __iadd__ "
    "__ior__ __iand__ __isub__ __ixor__ __imul__".split()
)
INPLACE_OPERATORS = frozenset(getattr(operator, n) for n in ("iadd", "ior", "iand", "isub", "ixor", "imul"))
SHARP = frozenset({print, builtins.input, open, time.time, time.perf_counter, time.monotonic, *(
    getattr(random, n) for n in ("random", "randint", "choice", "shuffle", "uniform", "gauss", "sample", "randrange")
)})  # fmt: skip


class Watch(Callbacks):
    """Reports reads and writes of outside objects to the world.

    Args:
        world: what is outside.
        sharp: called with a sentence about an effect that the compiled program will not repeat.
        truth: decides what is true of a traced tensor or number.
    """

    def __init__(self, world: World, sharp: Callable[[str], None]) -> None:
        self.world = world
        self.sharp = sharp

    # --- loads -----------------------------------------------------------------------------------------------------

    def load_global(self, globals_dict: dict[str, Any], name: str, value: Any) -> Any:
        return self.world.global_(globals_dict, name, value)

    def load_closure(self, function: Any, name: str, value: Any) -> Any:
        return self.world.cell(function, name, value)

    def load_attribute(self, obj: Any, name: str, value: Any) -> Any:
        return self.world.attribute(obj, name, value)

    def missing_attribute(self, obj: Any, name: str) -> None:
        self.world.missing(obj, name)

    def load_item(self, container: Any, key: Any, value: Any) -> Any:
        return self.world.item(container, key, value)

    def iterate(self, container: Any, iterator: Any) -> None:
        if container.__class__ in CONTAINERS or isinstance(container, (*LISTS, *DICTS, *SETS)):
            self.world.structure(container)

    def iterated(self, container: Any, key_or_index: Any, value: Any) -> Any:
        if isinstance(container, LISTS):
            return self.world.item(container, key_or_index, value)
        return value

    # --- stores ----------------------------------------------------------------------------------------------------

    def store_attribute(self, obj: Any, name: str, value: Any) -> None:
        if isinstance(obj, TracedTensor):
            return
        if self.world.source_of(obj) is not None:
            own = getattr(obj, "__dict__", None)
            before = own.get(name, MISSING) if isinstance(own, dict) else getattr(obj, name, MISSING)
            self.world.journal.note("attribute", obj, name, before)

    def delete_attribute(self, obj: Any, name: str) -> None:
        self.store_attribute(obj, name, None)

    def store_item(self, container: Any, key: Any, value: Any) -> None:
        if isinstance(container, TracedTensor) or self.world.source_of(container) is None:
            return
        if isinstance(key, slice) or isinstance(container, deque):
            self.world.contents(container)
            self.world.journal.note_container(container)
        elif isinstance(container, dict):
            self.world.membership(container, key, key in container)
            self.world.journal.note("item", container, key, container.get(key, MISSING))
        else:
            self.world.length(container)
            self.world.journal.note("item", container, key, container[key])

    def delete_item(self, container: Any, key: Any) -> None:
        if isinstance(container, dict) or isinstance(container, TracedTensor):
            self.store_item(container, key, None)
        elif self.world.source_of(container) is not None:
            self.world.contents(container)
            self.world.journal.note_container(container)

    def store_global(self, globals_dict: dict[str, Any], name: str, value: Any) -> None:
        self.sharp(f"it writes the global {name!r}")
        self.world.journal.note("item", globals_dict, name, globals_dict.get(name, MISSING))

    def store_closure(self, cell: Any, name: str, value: Any) -> None:
        if self.world.source_of(cell) is not None:
            self.world.journal.note("cell", cell, None, cell.cell_contents)

    # --- opaque calls ----------------------------------------------------------------------------------------------

    def opaque_call(self, fn: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        if fn is operator.is_ or fn is operator.is_not:
            self.identity(*args)
            return
        if _hashable_in(fn, PRECISE):
            return
        name = getattr(fn, "__name__", "")
        owner = getattr(fn, "__self__", None)
        if owner is None and args:
            owner = args[0]
        if owner.__class__ in CONTAINERS and self.world.source_of(owner) is not None:
            self._method(owner, name, fn)
        elif isinstance(fn, type) and fn is super:
            return
        if fn.__class__ is types.BuiltinFunctionType and _hashable_in(fn, SHARP):
            self.sharp(f"it calls {name}()")
        for value in (*args, *kwargs.values()):
            if value.__class__ in CONTAINERS and value is not owner:
                self.world.contents(value)

    def identity(self, a: Any, b: Any) -> None:
        """Take in that two tensors are not the same one."""
        if isinstance(a, TracedTensor) and isinstance(b, TracedTensor) and a is not b:
            sources = [t._input.source for t in (a, b) if hasattr(t, "_input")]
            if len(sources) == 2:
                self.world.require(DistinctTensorsGuard(sources[0], (sources[1],), storages=False), *map(str, sources))

    def _method(self, owner: Any, name: str, fn: Any) -> None:
        if name in MUTATORS or (_hashable_in(fn, INPLACE_OPERATORS)):
            self.world.contents(owner)
            self.world.journal.note_container(owner)
        elif name not in READS:
            self.world.contents(owner)

    def opaque_result(self, fn: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> Any:
        precise = PRECISE.get(fn) if _hashable(fn) else None
        if precise is not None:
            precise(self.world, *args)
            return result
        name = getattr(fn, "__name__", "")
        reader = READS.get(name)
        if reader is None:
            return result
        owner = getattr(fn, "__self__", None)
        if owner.__class__ in CONTAINERS:
            if self.world.source_of(owner) is not None:
                reader(self.world, owner, *args)
        elif args and args[0].__class__ in CONTAINERS and self.world.source_of(args[0]) is not None:
            reader(self.world, *args)
        return result


def _hashable(fn: Any) -> bool:
    return type(fn).__hash__ is not None


def _hashable_in(fn: Any, table: Container[Any]) -> bool:
    return _hashable(fn) and fn in table


def _contains(world: World, container: Any, key: Any, *rest: Any) -> None:
    if container.__class__ in CONTAINERS and world.source_of(container) is not None:
        if isinstance(container, LISTS):
            world.contents(container)
        else:
            world.membership(container, key, key in container)


def _get(world: World, container: Any, key: Any, *rest: Any) -> None:
    present = key in container
    if present:
        world.item(container, key, container[key])
    else:
        world.membership(container, key, False)


def _all_items(world: World, container: Any, *rest: Any) -> None:
    world.structure(container)
    for key, value in container.items():
        world.item(container, key, value)


def _keys(world: World, container: Any, *rest: Any) -> None:
    world.structure(container)


def _len(world: World, container: Any) -> None:
    if isinstance(container, DICTS):
        world.keys(container)
    elif isinstance(container, (*LISTS, *SETS)):
        world.structure(container)


def _bool(world: World, value: Any = None) -> None:
    if value.__class__ in CONTAINERS:
        if value:
            _len(world, value)
        else:
            world.empty(value)


def _nothing(world: World, *args: Any) -> None:
    pass


PRECISE: dict[Any, Callable[..., None]] = {
    len: _len, bool: _bool, operator.truth: _bool, operator.not_: _bool, operator.contains: _contains, isinstance: _nothing,
    operator.is_: _nothing, operator.is_not: _nothing, id: _nothing, callable: _nothing, issubclass: _nothing,
    operator.getitem: _nothing, iter: _nothing, next: _nothing, type: _nothing,
}  # fmt: skip
"""Functions whose reads of outside containers are known: what each takes in, once it has run."""

READS: dict[str, Callable[..., None]] = {
    "get": _get, "__contains__": _contains, "items": _all_items, "values": _all_items, "keys": _keys, "__len__": _len,
    "__getitem__": _nothing, "__iter__": _keys,
}  # fmt: skip
"""The same for methods of containers, by name."""

__all__ = ["AcquisitionError", "Watch"]
