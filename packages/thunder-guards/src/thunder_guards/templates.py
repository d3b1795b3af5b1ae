"""Templates: what a program returns or writes, as a tree of values that it computes and of how the rest is built."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from thunder_guards.sources import Source
from thunder_ir import Context, NumberProxy, Proxy, literal, register_literal


class External:
    """An external object that a program returns or stores as it is: fetched again on each call.

    Args:
        source: how to get at it. Nothing of the program is in it, so that passes do not look into it.
    """

    __slots__ = ("source",)

    def __init__(self, source: Source) -> None:
        self.source = source


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Built:
    """An object that a program made: built anew on each call.

    Args:
        build: takes the parts, returns the object.
        parts: templates of what is in it.
    """

    build: Callable[..., Any]
    parts: tuple[Any, ...]


def _built(built: Built, context: Context) -> str:
    build = context.object(built.build, getattr(built.build, "__name__", "build"))
    return f"{build}({', '.join([literal(part, context) for part in built.parts])})"


register_literal(External, lambda found, context: found.source.expression(context))
register_literal(Built, _built)


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
    return [part for part in within(tree) if isinstance(part, Proxy)]


def within(tree: object) -> Iterator[Any]:
    """Yield all parts of a template, the inner ones first."""
    for part in children_of(tree):
        yield from within(part)
    yield tree


def children_of(tree: object) -> Iterable[Any]:
    """Return the parts of a template, without theirs."""
    if isinstance(tree, Built):
        return tree.parts
    if isinstance(tree, dict):
        return tree.values()
    return tree if isinstance(tree, (tuple, list)) else ()


def is_plain(tree: object) -> bool:
    """Whether a template is made of proxies, numbers and plain containers only, so that it prints as a literal."""
    return _is_plain(tree, set())


def _is_plain(tree: object, seen: set[int]) -> bool:
    if isinstance(tree, NumberProxy):
        return True
    if isinstance(tree, (External, Built)):
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
