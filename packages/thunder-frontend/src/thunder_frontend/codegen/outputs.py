"""What a program returns: the tensors in it, and how the rest is built around them on each call."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch

from thunder_frontend.errors import AcquisitionError
from thunder_frontend.kinds import SCALARS
from thunder_frontend.outside.made_objects import parts_of
from thunder_frontend.outside.world import World
from thunder_frontend.sources import Source
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


def template(
    value: Any, tensor: Callable[[torch.Tensor], Any], world: World, seen: dict[int, Any] | None = None
) -> Any:
    """Return ``value`` as a tree of proxies, plain containers, scalars, :class:`Outside` and :class:`Built`.

    Args:
        value: what user code returned or stored.
        tensor: gives the proxy, or another template, that stands for a tensor.
        world: knows outside objects.
        seen: objects on the way down, to refuse cycles.
    """
    if isinstance(value, torch.Tensor):
        return tensor(value)
    if isinstance(value, (Proxy, SCALARS)) and not isinstance(value, torch.Size):
        return value
    seen = {} if seen is None else seen
    if id(value) in world.templates:
        return world.templates[id(value)][0]
    if id(value) in seen:
        raise AcquisitionError("a compiled program cannot return or keep an object that contains itself")
    source = world.source_of(value)
    if source is not None:
        return Outside(source)
    seen = {**seen, id(value): value}

    def inner(part: Any) -> Any:
        return template(part, tensor, world, seen)

    cls = value.__class__
    if cls is tuple or cls is list:
        made: Any = cls([inner(v) for v in value])
    elif cls is dict:
        made = {k: inner(v) for k, v in value.items()}
    else:
        parts = parts_of(value)
        if parts is None:
            made = Outside(Source(None, "root", cls.__name__, value, True))
        else:
            made = Built(parts[0], tuple([inner(part) for part in parts[1]]))
    world.templates[id(value)] = (made, value)
    return made


def has_identity(tree: Any) -> bool:
    """Whether a template stands for an object of its own, which is to be one in all places where it occurs."""
    return (
        isinstance(tree, Built)
        or tree.__class__ in (list, dict, slice, range)
        or tree.__class__ is tuple
        and bool(tree)
    )


def proxies_of(tree: Any) -> list[Proxy]:
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


def is_plain(tree: Any) -> bool:
    """Whether a template is made of proxies, numbers and plain containers only, so that it prints as a literal."""
    return _is_plain(tree, set())


def _is_plain(tree: Any, seen: set[int]) -> bool:
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
