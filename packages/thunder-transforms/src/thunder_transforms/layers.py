"""Layers of a model that become layers of a derived class, in place: what holds them, hooks and names stay."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch

from thunder_frontend import ThunderModule

Where = Callable[[str, torch.nn.Module], bool]
"""Tells of a layer, by its name in the model and itself, whether it is meant."""


def everywhere(name: str, layer: torch.nn.Module) -> bool:
    """Mean all layers."""
    return True


class Changed:
    """What classes of changed layers have in common: they are derived from this and the class of the layer."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        mixins, cls = [], type(self)
        while issubclass(cls, Changed):
            mixin, cls = cls.__bases__
            mixins.append(mixin)
        return _remade, (cls, *reversed(mixins)), self.__dict__


def _remade(original: Any, *mixins: type) -> Any:
    for mixin in mixins:
        original = class_of(mixin, original)
    return object.__new__(original)


@functools.cache
def class_of(mixin: type, original: Any) -> type:
    """Return the class derived from a mixin and the class of a layer; the name stays that of the layer."""
    names = {"__module__": original.__module__, "__qualname__": original.__qualname__, "__doc__": mixin.__doc__}
    return types.new_class(original.__name__, (mixin, original), exec_body=lambda body: body.update(names))


def change(layer: torch.nn.Module, mixin: type) -> None:
    """Give a layer the methods of ``mixin``."""
    original: Any = type(layer)
    layer.__class__ = class_of(mixin, original)


def linear_layers(model: torch.nn.Module, where: Where) -> Iterator[torch.nn.Linear]:
    """Yield the linear layers of a model that are meant; a class of the user's own that computes otherwise is none.

    Args:
        model: as it is or compiled.
        where: tells which are meant.

    Raises:
        TypeError: the weight of one is no parameter, as with ``torch.nn.utils.parametrize``.
    """
    for name, layer in list(original(model).named_modules()):
        plain = type(layer).forward is torch.nn.Linear.forward or isinstance(layer, Changed)
        if not (isinstance(layer, torch.nn.Linear) and plain and where(name, layer)):
            continue
        if "weight" not in layer._parameters and not isinstance(layer, Changed):
            raise TypeError(f"the weight of {name} is computed and no parameter; leave the layer out by where=")
        yield layer


def original(model: torch.nn.Module) -> torch.nn.Module:
    """Return what a compiled module was made of; any other module is that itself."""
    return model.compiles() if isinstance(model, ThunderModule) else model
