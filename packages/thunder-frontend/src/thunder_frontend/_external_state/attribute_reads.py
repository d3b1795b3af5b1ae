"""What a program reads of attributes: what is found on objects, classes, modules and tensors, and what is not."""

from __future__ import annotations

import types
from typing import Any

import torch

from thunder_frontend._external_state.class_facts import GIVEN_AS_THEY_ARE, class_of, is_mutable
from thunder_frontend._external_state.class_reads import ClassReads
from thunder_frontend._external_state.container_reads import ContainerReads
from thunder_frontend._external_state.known import Known
from thunder_guards import AttributeAbsentGuard, MembershipGuard
from thunder_guards.kinds import CODE, is_of_library
from thunder_guards.mutations import MISSING, is_slot
from thunder_guards.own_code import name_in
from thunder_guards.sources import Source, held
from thunder_ir import NumberProxy
from thunder_tracing.tensors.traced_tensor import TracedTensor

OF_TYPES = frozenset({"__name__", "__qualname__"})
"""What classes say of themselves, wherever it is kept."""


class AttributeReads:
    """Guards what attributes of external objects are.

    Args:
        external: takes the guards.
        classes, containers: guard what is read of these.
    """

    def __init__(self, external: Known, classes: ClassReads, containers: ContainerReads) -> None:
        self._external, self._classes, self._containers = external, classes, containers

    def found(self, obj: object, name: str, value: object) -> Any:
        """Guard ``obj.name``, found without running Python code."""
        if isinstance(obj, super):
            start, cls = obj.__thisclass__, obj.__self_class__  # type: ignore[attr-defined]
            return self._dynamic(cls, name, self._classes.after(start, cls, name), value)
        if isinstance(obj, type):
            return self._attribute_of_class(obj, name, value)
        if isinstance(obj, types.ModuleType) and self._external.source_of(obj) is None:
            self._external.know(obj, held(obj, name_in(vars(obj)) or "module"))
        source = self._external.source_of(obj)
        if source is None:
            return self._class_of_own(obj, name, value)
        if self._external.mutations.written_at(obj, "attribute", name):
            return value
        if isinstance(obj, types.ModuleType):
            self.class_of_module(obj)
        if type(obj) is types.ModuleType or isinstance(obj, types.ModuleType) and is_of_library(name_in(vars(obj))):
            if name not in obj.__dict__:
                of_class = type(obj) is types.ModuleType and hasattr(types.ModuleType, name)  # which cannot be changed
                return value if of_class else self._external.read(source, "attribute", name, value)
            return self._external.read(source, "attribute", name, value, (obj.__dict__, name))
        self._classes.finds_attributes(type(obj))
        own = getattr(obj, "__dict__", None)
        if source.is_held and isinstance(own, dict):
            self._external.own_dict(obj, source)
        if name == "__dict__":
            inside = held(value, f"{source}.__dict__") if source.is_held else Source(source, "attribute", name)
            self._external.know(value, inside)
            return value
        if isinstance(own, dict) and name in own and not is_slot(obj, name):
            self._classes.no_data_descriptor(type(obj), name)
            slot = (own, name) if source.is_held and type(own) is dict else None
            return self._external.read(source, "attribute", name, value, slot)
        return self._found_on_class(obj, source, own, name, value)

    def _attribute_of_class(self, cls: type, name: str, value: object = None) -> Any:
        if self._external.mutations.written_at(cls, "attribute", name) or not is_mutable(cls):
            return value
        if name == "__dict__" and self._classes.is_outside(cls):
            self._classes.shows_dict(cls, value)
            return value
        if name in OF_TYPES and isinstance(value, str) and self._classes.is_outside(cls):
            return self._external.read(held(cls, cls.__qualname__), "attribute", name, value)
        found = self._classes.lookup(cls, name)
        if type(cls) is not type:
            self._classes.finds_attributes(type(cls))
            self._classes.lookup(type(cls), name)
        return self._dynamic(cls, name, found, value)

    def _dynamic(self, cls: type, name: str, found: object, value: object) -> Any:
        """Return what stands for a number on a class, if it is dynamic and still what it was."""
        return found if isinstance(found, NumberProxy) and not self._classes.wrote(cls, name) else value

    def _class_of_own(self, obj: object, name: str, value: object = None) -> Any:
        """Guard that an object of the program's own finds an attribute on its class."""
        if is_mutable(type(obj)) and name not in getattr(obj, "__dict__", ()):
            self._classes.finds_attributes(type(obj))
            found = self._classes.lookup(type(obj), name)
            return self._dynamic(type(obj), name, found, value)
        return value

    def _found_on_class(self, obj: object, source: Source, own: object, name: str, value: object) -> Any:
        raw = self._classes.lookup(type(obj), name)
        if raw is MISSING:
            getter = self._classes.lookup(type(obj), "__getattr__")
            if getter is MISSING and _computes_attributes(type(obj)):
                return self._external.read(source, "attribute", name, value)
            if getter is MISSING or isinstance(getter, types.FunctionType) and not isinstance(obj, types.ModuleType):
                return value
            if getter is dict.__getitem__:
                return self._containers.item(obj, name, value)
            return self._external.read(source, "attribute", name, value)
        if isinstance(own, dict) and not isinstance(raw, types.MemberDescriptorType):
            self._external.lacks(obj, source, own, name)
        if isinstance(raw, NumberProxy) or self._classes.wrote(type(obj), name):
            return self._dynamic(type(obj), name, raw, value)
        if isinstance(value, types.MethodType):
            self._external.know(value, Source(source, "attribute", name))
        elif raw is not value and (not isinstance(raw, CODE) or isinstance(raw, types.GetSetDescriptorType)):
            # a slot, or another descriptor written in C, computed the value
            return self._external.read(source, "attribute", name, value)
        return value

    def missing(self, obj: object, name: str) -> None:
        """Guard that ``obj`` has no attribute ``name``."""
        if isinstance(obj, type):
            self._attribute_of_class(obj, name)
            if type(obj) is not type:
                self._classes.lookup(type(obj), "__getattr__")
            return
        source = self._external.source_of(obj)
        if source is None and is_mutable(type(obj)):
            self._class_of_own(obj, name)
            self._classes.lookup(type(obj), "__getattr__")
        if source is None or self._external.mutations.written_at(obj, "attribute", name):
            return
        if isinstance(obj, types.ModuleType):
            self.class_of_module(obj)
        self._classes.finds_attributes(type(obj))
        on_class = self._classes.lookup(type(obj), name)
        self._classes.lookup(type(obj), "__getattr__")
        own = getattr(obj, "__dict__", None)
        if isinstance(own, dict) and not isinstance(on_class, types.MemberDescriptorType):
            self._external.lacks(obj, source, own, name)
        elif isinstance(obj, types.ModuleType) or not hasattr(type(obj), "__getattr__"):
            self._external.require(AttributeAbsentGuard(source, name), id(source), name, "absent")

    def class_of_module(self, module: types.ModuleType) -> None:
        """Guard the class of a module of the user's, which may be given another one."""
        name = name_in(vars(module))
        if not is_of_library(name):
            self._external.part(module, name or "module", "type")

    def found_on_tensor(self, tensor: TracedTensor, name: str, value: object) -> Any:
        """Guard an attribute that user code gave to a tensor."""
        source = tensor.source
        if source is None or self._external.mutations.written_at(tensor, "attribute", name) or name in tensor.OWN:
            return value
        return self._external.read(source, "attribute", name, value)

    def given_by_class_of_tensor(self, tensor: TracedTensor, name: str, value: object) -> Any:
        """Guard an attribute that the class of a tensor has; return what the program shall see."""
        if name in tensor.OWN:
            return value
        cls = class_of(tensor)
        raw = self._classes.lookup(cls, name)
        if type(raw) not in GIVEN_AS_THEY_ARE:
            self.missing_on_tensor(tensor, name)
        if tensor._shadow is not None and isinstance(raw, property):
            return value
        if cls is torch.Tensor or raw is self._classes.lookup(torch.Tensor, name):
            return value
        return raw.__get__(tensor, cls) if hasattr(type(raw), "__get__") else raw

    def missing_on_tensor(self, tensor: TracedTensor, name: str) -> None:
        """Guard that a tensor was given no attribute of that name."""
        source = tensor.source
        self._classes.lookup(class_of(tensor), name)
        if source is not None and not self._external.mutations.written_at(tensor, "attribute", name):
            own = Source(source, "attribute", "__dict__")
            self._external.require(MembershipGuard(own, (name,), False), id(source), name, "absent")


def _computes_attributes(cls: type) -> bool:
    """Whether code in C finds attributes of objects of a class that neither they nor their class have."""
    return type(cls.__getattribute__) is types.WrapperDescriptorType and cls.__getattribute__ not in PLAIN


PLAIN = (object.__getattribute__, type.__getattribute__, types.ModuleType.__getattribute__, super.__getattribute__)
"""What finds attributes of objects, classes, modules and of what comes after a class."""
