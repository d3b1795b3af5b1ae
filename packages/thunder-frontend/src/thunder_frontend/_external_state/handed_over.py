"""What a program gives to Thunder's own operations: guarded as a whole, and as it is at that moment.

Nothing of what such an operation looks at can be watched, and it runs later than the program that calls it. So all
that is in its arguments is guarded where it comes from outside, and copied, for the program may write to it afterwards.
"""

from __future__ import annotations

import copyreg
import dataclasses
from collections.abc import Callable
from typing import Any

import torch

from thunder_frontend._external_state.guarded_state import GuardedState
from thunder_guards.errors import HandedOverError
from thunder_guards.kinds import (
    CODE,
    DICTS,
    HEAP_TYPE,
    LISTS,
    NumPyScalar,
    has_attributes,
    is_buffer,
    is_container,
    is_value,
    items_of,
    pairs_of,
    refuse_iterators,
)
from thunder_guards.own_code import PACKAGES, package_of
from thunder_ir import Proxy, flat_proxies
from thunder_tracing.made_objects import BASES, PARTS, new_object
from thunder_tracing.tensors.sizes import SymbolicSize


class HandedOver:
    """Guards the arguments of one call.

    Args:
        external: what is outside.
        tensor: returns what the operation gets in the place of a tensor.
        name: of the operation, for messages.
    """

    def __init__(self, external: GuardedState, tensor: Callable[[torch.Tensor], Any], name: str) -> None:
        self._external = external
        self._tensor = tensor
        self._name = name
        self._above: set[int] = set()

    def now(self, value: Any) -> Any:
        """Return ``value`` as the operation gets it: what is in it now, and no change that is made to it later."""
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, (Proxy, *CODE)):
            return value
        cls = value.__class__
        if cls is SymbolicSize:
            return tuple(value)
        if isinstance(value, NumPyScalar):
            return value.item()  # type: ignore[attr-defined]
        if is_value(value) and not has_attributes(value):
            return slice(*map(self.now, (value.start, value.stop, value.step))) if cls is slice else value
        if package_of(cls.__module__) in PACKAGES:  # a dtype, a device
            return value
        self._refuse(value)
        if id(value) in self._above:
            raise HandedOverError(f"the program gives {self._name} an object that contains itself")
        self._above.add(id(value))
        try:
            return self._container(value) if is_container(value) else self._object(value)
        finally:
            self._above.discard(id(value))

    def _refuse(self, value: object) -> None:
        what = None
        if isinstance(value, torch.nn.Module):
            what = "a module; give it the tensors and numbers that it is to compute with"
        elif is_buffer(value):
            what = f"a {type(value).__name__}, which is no tensor; make one of it (torch.from_numpy, torch.frombuffer)"
        elif self._external.source_of(value) is None and hasattr(type(value), "__next__"):
            what = f"a {type(value).__name__}, which its first call would use up; make a list of it"
        if what is not None:
            raise HandedOverError(f"the program gives {self._name} {what}")
        refuse_iterators(f"what it gives {self._name}", value)

    def _container(self, value: object) -> Any:
        containers = self._external.containers
        containers.structure(value)
        items: Any
        if isinstance(value, DICTS):
            items = {self._key(key): self.now(containers.item(value, key, item)) for key, item in pairs_of(value)}
        elif isinstance(value, LISTS):
            items = [self.now(containers.item(value, i, item)) for i, item in enumerate(items_of(value))]
        else:
            items = [self._key(item) for item in items_of(value)]
        cls = value.__class__
        if cls is list or cls is tuple or cls is dict:
            return tuple(items) if cls is tuple else items
        if cls in PARTS:
            if flat_proxies(items) and not isinstance(value, dict):
                self._refuse_to_hold_tensors(value)
            make, parts = PARTS[cls](value)  # type: ignore[misc]
            return make(*[items if isinstance(part, (list, dict)) else part for part in parts])
        if isinstance(value, tuple) and hasattr(value, "_make"):
            return value._make(items)
        if value.__class__.__module__ == "torch.return_types":
            return tuple(items)
        return self._copied(value, items)

    def _object(self, value: object) -> Any:
        base = next(owner for owner in type(value).__mro__ if not owner.__flags__ & HEAP_TYPE)
        if base not in BASES:  # its state is known to code in C
            self._external.unwatched.escapes(value, watched=False)
            return value
        return self._copied(value, None)

    def _copied(self, value: object, items: object) -> Any:
        """Return a copy of an object with attributes; of a container of the user's class, with these items."""
        self._external.unwatched.copied(value)
        attributes = {name: self._attribute(value, name, item) for name, item in getattr(value, "__dict__", {}).items()}
        names = [n for n in copyreg._slotnames(type(value)) if hasattr(value, n)]  # type: ignore[attr-defined]
        slots = {name: self._attribute(value, name, getattr(value, name)) for name in names}
        if items is None and dataclasses.is_dataclass(value):
            fields = {field.name for field in dataclasses.fields(value)}
            if others := sorted({*attributes, *slots} - fields):
                raise HandedOverError(
                    f"the program gives {self._name} a {type(value).__name__} with attributes that are no fields of "
                    f"it ({', '.join(others)}); give it these on their own"
                )
        elif flat_proxies([items, attributes, slots]):
            self._refuse_to_hold_tensors(value)
        return new_object(type(value), attributes, slots, items)

    def _refuse_to_hold_tensors(self, value: object) -> None:
        raise HandedOverError(
            f"the program gives {self._name} a {type(value).__name__} that holds tensors; give it these on their own, "
            "or in a tuple, list, dict or dataclass"
        )

    def _attribute(self, value: object, name: str, item: object) -> Any:
        return self.now(self._external.attributes.found(value, name, item))

    def _key(self, key: Any) -> Any:
        """Return a key of a dict, or a member of a set."""
        if type(key) in (tuple, frozenset):
            return type(key)([self._key(item) for item in key])
        if not isinstance(key, CODE) and not is_value(key) and package_of(type(key).__module__) not in PACKAGES:
            raise HandedOverError(
                f"the program gives {self._name} a set or a dict with a {type(key).__name__} as a member or a key; "
                "only numbers, texts and the like are for that"
            )
        return key
