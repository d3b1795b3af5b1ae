"""Containers of values: the quick walks over arguments that every pass makes, and pytrees through optree."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
from collections.abc import Callable
from operator import is_
from typing import Any

import optree

from thunder_ir.proxies import Proxy
from thunder_ir.tensor_proxies import TensorProxy

NAMESPACE = "thunder"
_ORDERED = contextlib.ExitStack()  # never closed: in this namespace, dicts keep their order
_ORDERED.enter_context(optree.dict_insertion_ordered(True, namespace=NAMESPACE))


def flat_proxies(value: Any) -> list[Proxy]:
    """Return the proxies in ``value`` in order: in tuples, lists, dicts, slices and dataclasses, however nested."""
    found: list[Proxy] = []
    _collect(value, found)
    return found


def _collect(value: Any, found: list[Proxy]) -> None:
    if isinstance(value, Proxy):
        found.append(value)
    elif isinstance(value, (tuple, list)):
        for item in value:
            cls = item.__class__
            if cls is TensorProxy:
                found.append(item)
            elif cls not in _LEAVES:
                _collect(item, found)
    elif isinstance(value, dict):
        for item in value.values():
            _collect(item, found)
    elif isinstance(value, slice):
        _collect((value.start, value.stop, value.step), found)
    elif value.__class__ not in _LEAVES and dataclasses.is_dataclass(value) and not isinstance(value, type):
        if value.__class__.__module__.startswith("thunder_ir."):
            return
        for name in value.__dataclass_fields__:
            _collect(getattr(value, name), found)


_LEAVES = frozenset({int, float, bool, complex, str, bytes, type(None), type(...)})


def substitute(value: Any, mapping: dict[str, Any]) -> Any:
    """Return ``value`` with every proxy whose name is in ``mapping`` replaced; the very same object if none is."""
    if value.__class__ in _LEAVES:
        return value
    if isinstance(value, Proxy):
        return mapping.get(value.name, value)
    if isinstance(value, (tuple, list)):
        items = [
            mapping.get(item.name, item)
            if item.__class__ is TensorProxy
            else item
            if item.__class__ in _LEAVES
            else substitute(item, mapping)
            for item in value
        ]
        if all(map(is_, items, value)):
            return value
        if value.__class__ is tuple:
            return tuple(items)
        if value.__class__ is list:
            return items
        return value._make(items) if hasattr(value, "_make") else value.__class__(items)
    if value.__class__ is dict:
        values = {key: substitute(item, mapping) for key, item in value.items()}
        return value if all(map(is_, values.values(), value.values())) else values
    if isinstance(value, slice):
        parts = (value.start, value.stop, value.step)
        new = substitute(parts, mapping)
        return value if new is parts else slice(*new)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        if value.__class__.__module__.startswith("thunder_ir."):
            return value
        fields = {n: getattr(value, n) for n in value.__dataclass_fields__}
        new = substitute(fields, mapping)
        return value if new is fields else rebuild(value.__class__, new)
    if isinstance(value, dict):
        items_before = dict(value)
        items_after = substitute(items_before, mapping)
        if items_after is items_before:
            return value
        other = copy.copy(value)  # keeps what a subclass holds besides, such as the factory of a defaultdict
        other.update(items_after)
        return other
    return value


def map_values(function: Callable[[Any], Any], tree: Any) -> Any:
    """Return a tree with ``function`` applied to each value in it.

    Tuples, lists, dicts and slices are nodes, and what is of a class derived from ``tuple`` or ``dict``: that stays the
    very same object if no value in it is replaced, and becomes a plain dict otherwise, or another one of its class. All
    else is a value.

    Args:
        function: returns what takes a value's place.
        tree: arguments of a call, or what one returned.

    Example:
        >>> from thunder_ir import map_values
        >>> map_values(str, {"a": [1, (2,)], "b": slice(3, None)})
        {'a': ['1', ('2',)], 'b': slice('3', 'None', 'None')}
    """
    cls = tree.__class__
    if cls is tuple or cls is list:
        return cls([map_values(function, item) for item in tree])
    if cls is dict:
        return {key: map_values(function, item) for key, item in tree.items()}
    if cls is slice:
        return slice(*[map_values(function, end) for end in (tree.start, tree.stop, tree.step)])
    if isinstance(tree, tuple):
        items = [map_values(function, item) for item in tree]
        if all(map(is_, items, tree)):
            return tree
        return tree._make(items) if hasattr(tree, "_make") else cls(items)
    if isinstance(tree, dict):
        found = {key: map_values(function, item) for key, item in tree.items()}
        return tree if all(map(is_, found.values(), tree.values())) else found
    return function(tree)


def values_in(tree: Any) -> list[Any]:
    """Return the values of a tree in order, as `map_values` would come by them.

    Example:
        >>> from thunder_ir import values_in
        >>> values_in({"a": [1, (2,)], "b": slice(3, None)})
        [1, 2, 3, None, None]
    """
    found: list[Any] = []

    def keep(value: Any) -> Any:
        found.append(value)
        return value

    map_values(keep, tree)
    return found


def rebuild(cls: Any, fields: dict[str, Any]) -> Any:
    """Return an instance of a dataclass with these fields, through its constructor if that takes them all."""
    if can_construct(cls):
        return cls(**fields)
    made = cls.__new__(cls)
    for name, value in fields.items():
        object.__setattr__(made, name, value)
    return made


def can_construct(cls: Any) -> bool:
    """Whether the constructor of a dataclass takes all of its fields, and does nothing but to keep them."""
    own = cls.__dict__.get("__dataclass_params__")
    if own is None or not own.init or hasattr(cls, "__post_init__"):
        return False
    return all([field.init for field in dataclasses.fields(cls)])


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """Return the leaves of a pytree and its structure.

    Tuples, lists, dicts (in the order of their keys), the containers that optree knows and dataclasses are nodes;
    ``None`` is a leaf.

    Example:
        >>> from thunder_ir.trees import flatten, unflatten
        >>> leaves, structure = flatten({"b": (1, None), "a": [2]})
        >>> leaves
        [1, None, 2]
        >>> unflatten(structure, "xyz")
        {'b': ('x', 'y'), 'a': ['z']}
    """
    while True:
        leaves, structure = optree.tree_flatten(tree, none_is_leaf=True, namespace=NAMESPACE)
        unknown = {leaf.__class__ for leaf in leaves if _is_node(leaf)}
        if not unknown:
            return leaves, structure
        for cls in unknown:
            _register(cls)


def _is_node(leaf: Any) -> bool:
    """Whether a leaf is a dataclass, of which optree has to be told."""
    cls = leaf.__class__
    return hasattr(cls, "__dataclass_fields__") and not cls.__module__.startswith("thunder_ir.")


def _register(cls: Any) -> None:
    """Make instances of a dataclass nodes, whose children are its fields."""
    names = tuple([field.name for field in dataclasses.fields(cls)])

    def take_apart(value: Any) -> tuple[list[Any], None, tuple[str, ...]]:
        return [getattr(value, name) for name in names], None, names

    def put_together(_: Any, children: Any) -> Any:
        made = cls.__new__(cls)
        for name, child in zip(names, children, strict=True):
            object.__setattr__(made, name, child)
        return made

    with contextlib.suppress(ValueError):  # another thread was faster
        optree.register_pytree_node(cls, take_apart, put_together, namespace=NAMESPACE)


def unflatten(structure: Any, leaves: Any) -> Any:
    """Return the pytree of that structure with these leaves."""
    return optree.tree_unflatten(structure, leaves)


def tree_map(function: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """Return the pytree with ``function`` applied to each leaf, and to what stands at its place in ``rest``."""
    leaves, structure = flatten(tree)
    others = [structure.flatten_up_to(other) for other in rest]
    return unflatten(structure, [function(*values) for values in zip(leaves, *others, strict=True)])
