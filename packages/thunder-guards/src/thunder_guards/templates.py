"""Templates: what a program returns or writes, as a tree of values that it computes and of how the rest is built."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from thunder_guards.sources import Source
from thunder_ir import NumberProxy, Proxy


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Outside:
    """An outside object that a program returns or stores as it is: fetched again on each call.

    Args:
        source: how to get at it.
    """

    source: Source


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Built:
    """An object that a program made: built anew on each call.

    Args:
        build: takes the parts, returns the object.
        parts: templates of what is in it.
    """

    build: Callable[..., Any]
    parts: tuple[Any, ...]


def has_identity(tree: object) -> bool:
    """Whether a template stands for an object of its own, which is to be one in all places where it occurs."""
    return (
        isinstance(tree, Built)
        or tree.__class__ in (list, dict, slice, range)
        or tree.__class__ is tuple
        and bool(tree)
    )


def proxies_of(tree: object) -> list[Proxy]:
    """Return the proxies in a template, in order."""
    if isinstance(tree, Built):
        return [p for part in tree.parts for p in proxies_of(part)]
    if isinstance(tree, Proxy):
        return [tree]
    if isinstance(tree, (tuple, list)):
        return [p for part in tree for p in proxies_of(part)]
    if isinstance(tree, dict):
        return [p for part in tree.values() for p in proxies_of(part)]
    return []


def is_plain(tree: object) -> bool:
    """Whether a template is made of proxies, numbers and plain containers only, so that it prints as a literal."""
    return _is_plain(tree, set())


def _is_plain(tree: object, seen: set[int]) -> bool:
    if isinstance(tree, NumberProxy):
        return True
    if isinstance(tree, (Outside, Built)):
        return False
    if has_identity(tree):
        if id(tree) in seen:  # one object in two places, which a literal would make two of
            return False
        seen.add(id(tree))
    if isinstance(tree, (tuple, list)):
        return all(_is_plain(item, seen) for item in tree)
    if isinstance(tree, dict):
        return all(_is_plain(item, seen) for item in (*tree.values(), *tree))
    return True
