"""Containers of values: the quick walks over arguments that every pass makes, and pytrees through optree."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import optree

from thunder_ir.proxies import Proxy

NAMESPACE = "thunder"


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
            if isinstance(item, Proxy):
                found.append(item)
            elif item.__class__ not in _LEAVES:
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
    if isinstance(value, Proxy):
        return mapping.get(value.name, value)
    if value.__class__ in _LEAVES:
        return value
    if isinstance(value, (tuple, list)):
        items = [substitute(item, mapping) for item in value]
        if all(map(_is, items, value)):
            return value
        if value.__class__ is tuple:
            return tuple(items)
        if value.__class__ is list:
            return items
        return value._make(items) if hasattr(value, "_make") else value.__class__(items)
    if isinstance(value, dict):
        values = {key: substitute(item, mapping) for key, item in value.items()}
        if all(map(_is, values.values(), value.values())):
            return value
        return values if value.__class__ is dict else value.__class__(values)
    if isinstance(value, slice):
        parts = (value.start, value.stop, value.step)
        new = substitute(parts, mapping)
        return value if new is parts else slice(*new)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        if value.__class__.__module__.startswith("thunder_ir."):
            return value
        fields = {n: getattr(value, n) for n in value.__dataclass_fields__}
        new = substitute(fields, mapping)
        return value if new is fields else dataclasses.replace(value, **new)
    return value


def _is(a: Any, b: Any) -> bool:
    return a is b


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """Return the leaves of a pytree and its structure; ``None`` is a leaf, dicts keep their order."""
    return optree.tree_flatten(tree, none_is_leaf=True, namespace=NAMESPACE)


def unflatten(structure: Any, leaves: Any) -> Any:
    """Return the pytree of that structure with these leaves."""
    return optree.tree_unflatten(structure, leaves)


def tree_map(function: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """Return the pytree with ``function`` applied to each leaf."""
    return optree.tree_map(function, tree, *rest, none_is_leaf=True, namespace=NAMESPACE)
