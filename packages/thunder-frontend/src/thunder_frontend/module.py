"""The compiled module: what ``thunder.jit`` returns for an ``nn.Module``."""

from __future__ import annotations

import copy
import functools
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from thunder_frontend.compiled import CompiledFunction
from thunder_frontend.one_way import OtherWay
from thunder_frontend.options import Options
from thunder_frontend.tracebacks import tell_the_user


class Forward:
    """The ``forward`` of a compiled module runs compiled; that of its class, and what is set, are the original's."""

    def __get__(self, module: ThunderModule | None, owner: type) -> Any:
        if module is None:
            return super(ThunderModule, owner).forward  # type: ignore[misc]
        # libraries that pick from a batch what a model takes ask its forward for a signature: the original's
        return functools.update_wrapper(functools.partial(module.__call__), module._thunder_original.forward)

    def __set__(self, module: ThunderModule, value: Any) -> None:
        module.__dict__["forward"] = value

    def __delete__(self, module: ThunderModule) -> None:
        del module.__dict__["forward"]


class ThunderModule(torch.nn.Module):
    """A module that runs compiled and is in all else the module that it was made of.

    It is of a class derived from the original's and has the original's ``__dict__``: attributes, parameters, buffers,
    submodules and hooks are shared and not copied, so that what is done to one is done to the other. Methods run on the
    compiled module: a ``generate`` or ``training_step`` that calls ``self(...)`` or ``self.forward(...)`` runs
    compiled. The original stays usable.

    Args:
        module: what is compiled.
        options: how.
    """

    __slots__ = ("_thunder_compiled", "_thunder_dispatch", "_thunder_options", "_thunder_original")

    _thunder_compiled: CompiledFunction
    _thunder_options: Options
    _thunder_original: torch.nn.Module

    def __new__(cls, module: torch.nn.Module, options: Options) -> ThunderModule:
        """Return an instance of a class derived from this one and the module's."""
        original = type(module)
        names = {"__module__": original.__module__, "__qualname__": original.__qualname__, "__doc__": original.__doc__}
        derived = types.new_class(original.__name__, (cls, original), exec_body=lambda body: body.update(names))
        return object.__new__(derived)

    def __init__(self, module: torch.nn.Module, options: Options) -> None:
        object.__setattr__(self, "__dict__", module.__dict__)
        object.__setattr__(self, "_thunder_original", module)
        object.__setattr__(self, "_thunder_options", options)
        object.__setattr__(self, "_thunder_compiled", CompiledFunction(module, options))
        object.__setattr__(self, "_thunder_dispatch", self._thunder_compiled._dispatch)
        for transform in options.transforms:
            transform.transform_module(self)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Nothing that classes do when others are derived from them is meant for those of compiled modules."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._thunder_dispatch(args, kwargs)
        except OtherWay:
            return self._thunder_original(*args, **kwargs)
        except Exception as error:
            tell_the_user(error, self._thunder_compiled.programs())
            raise

    forward = Forward()

    def compiles(self) -> torch.nn.Module:
        """Return what is compiled: inside of another compiled program, that is what runs."""
        return self._thunder_original

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Leave out the synchronisation of gradients between processes, where the original does any."""
        inner = getattr(self._thunder_original, "no_sync", None)
        if inner is None:
            yield
        else:
            with inner():
                yield

    def __deepcopy__(self, memo: dict[int, Any]) -> ThunderModule:
        return ThunderModule(copy.deepcopy(self._thunder_original, memo), self._thunder_options)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return ThunderModule, (self._thunder_original, self._thunder_options)

    def __repr__(self) -> str:
        return f"thunder.jit({self._thunder_original!r})"
