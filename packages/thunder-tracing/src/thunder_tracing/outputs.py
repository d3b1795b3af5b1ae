"""What a program returns or stores, as a template: the tensors in it, and how each call builds the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from thunder_guards.errors import AcquisitionError
from thunder_guards.kinds import SCALARS
from thunder_guards.sources import Source
from thunder_guards.templates import Built, External
from thunder_ir import Proxy
from thunder_tracing.external_state import ExternalState
from thunder_tracing.made_objects import parts_of
from thunder_tracing.tensors.run_arrays import RunArray, built
from thunder_tracing.tensors.run_texts import RunText
from thunder_tracing.tensors.sizes import fixed


def template(
    value: Any, tensor: Callable[[torch.Tensor], Any], external: ExternalState, seen: dict[int, Any] | None = None
) -> Any:
    """Return ``value`` as a tree of proxies, plain containers, scalars, :class:`External` and :class:`Built`.

    Args:
        value: what user code returned or stored.
        tensor: gives the proxy, or another template, that stands for a tensor.
        external: knows external objects.
        seen: objects on the way down, to refuse cycles.
    """
    if isinstance(value, torch.Tensor):
        return tensor(value)
    if type(value) is RunArray and value.given is not None:
        value = value.given
    if type(value) is RunArray:
        return external.templates.setdefault(id(value), (built(value, tensor), value))[0]
    if type(value) is RunText:
        return external.templates.setdefault(id(value), (value.template, value))[0]
    if isinstance(value, (Proxy, SCALARS)) and not isinstance(value, torch.Size):
        return value
    seen = {} if seen is None else seen
    if id(value) in external.templates:
        return external.templates[id(value)][0]
    if id(value) in seen:
        raise AcquisitionError("a compiled program cannot return or keep an object that contains itself")
    source = external.source_of(value)
    if source is not None:
        return External(source)
    seen = {**seen, id(value): value}

    def inner(part: object) -> Any:
        return template(part, tensor, external, seen)

    cls = value.__class__
    if cls is tuple or cls is list:
        made: Any = cls([inner(v) for v in value])
    elif cls is dict and any(map(_has_tensors, value)):
        made = Built(dict_of, (tuple(map(inner, value)), tuple(map(inner, value.values()))))
    elif cls is dict:
        made = {fixed(k): inner(v) for k, v in value.items()}
    else:
        parts = parts_of(value)
        if parts is None:
            made = External(Source(None, "root", cls.__name__, value, True))
        else:
            made = Built(parts[0], tuple([inner(part) for part in parts[1]]))
    external.templates[id(value)] = (made, value)
    return made


def _has_tensors(key: object) -> bool:
    return isinstance(key, torch.Tensor) or isinstance(key, (tuple, frozenset)) and any(map(_has_tensors, key))


def dict_of(keys: tuple[Any, ...], values: tuple[Any, ...]) -> dict[Any, Any]:
    """Return a dict of keys that are tensors, or hold some: those of each call."""
    return dict(zip(keys, values, strict=True))
