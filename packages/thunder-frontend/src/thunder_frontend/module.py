"""The compiled module: what ``thunder.jit`` returns for an ``nn.Module``."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from thunder_frontend.compiled import CompiledFunction
from thunder_frontend.one_way import OtherWay
from thunder_frontend.options import Options
from thunder_frontend.tracebacks import tell_the_user


class ThunderModule(torch.nn.Module):
    """A module that runs compiled and is in all else the module that it was made of.

    Parameters, buffers, submodules, hooks, state dicts and attributes are the original's, shared and not copied: what
    is done to one is done to the other. The original stays usable.

    Args:
        module: what is compiled.
        options: how.
    """

    _OWN = frozenset({"_original", "_compiled", "_dispatch", "_options"})

    def __new__(cls, module: torch.nn.Module, options: Options) -> ThunderModule:
        """Return an instance that is a container where ``module`` is one."""
        return super().__new__(_as_container(cls, tuple([n for n in _CONTAINERS if hasattr(type(module), n)])))

    def __init__(self, module: torch.nn.Module, options: Options) -> None:
        object.__setattr__(self, "_original", module)
        object.__setattr__(self, "_options", options)
        object.__setattr__(self, "_compiled", CompiledFunction(module, options))
        object.__setattr__(self, "_dispatch", self._compiled._dispatch)
        # nn.Module's own methods find the original's tables here, so that they act on the original.
        for name in ("_parameters", "_buffers", "_modules"):
            self.__dict__[name] = module.__dict__[name]
        # libraries that pick from a batch what a model takes ask its forward for a signature: the original's
        self.__dict__["forward"] = functools.update_wrapper(functools.partial(self.__call__), module.forward)
        for transform in options.transforms:
            transform.transform_module(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._dispatch(args, kwargs)
        except OtherWay:
            return self._original(*args, **kwargs)
        except Exception as error:
            tell_the_user(error, self._compiled.programs())
            raise

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run compiled."""
        return self(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_original"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._OWN:
            object.__setattr__(self, name, value)
        else:
            setattr(self._original, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._original, name)

    def compiles(self) -> torch.nn.Module:
        """Return what is compiled: inside of another compiled program, that is what runs."""
        return self._original

    def train(self, mode: bool = True) -> ThunderModule:
        """Set the original's training mode; return the compiled module."""
        self._original.train(mode)
        return self

    def eval(self) -> ThunderModule:
        """Set the original to evaluation mode; return the compiled module."""
        self._original.eval()
        return self

    def requires_grad_(self, requires_grad: bool = True) -> ThunderModule:
        """Change whether the original's parameters require gradients; return the compiled module."""
        self._original.requires_grad_(requires_grad)
        return self

    def _apply(self, fn: Any, recurse: bool = True) -> ThunderModule:
        self._original._apply(fn, recurse)
        return self

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Leave out the synchronisation of gradients between processes, where the original does any."""
        inner = getattr(self._original, "no_sync", None)
        if inner is None:
            yield
        else:
            with inner():
                yield

    def __deepcopy__(self, memo: dict[int, Any]) -> ThunderModule:
        return ThunderModule(copy.deepcopy(self._original, memo), self._options)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return ThunderModule, (self._original, self._options)

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._original), *self._OWN})

    def __repr__(self) -> str:
        return f"thunder.jit({self._original!r})"


_CONTAINERS = ("__len__", "__getitem__", "__setitem__", "__delitem__", "__iter__", "__contains__")
"""Special methods are looked up on classes, so that ``__getattr__`` would not pass them on."""


@functools.cache
def _as_container(cls: type[ThunderModule], names: tuple[str, ...]) -> type[ThunderModule]:
    """Return ``cls`` with these special methods passed on to the original."""
    if not names:
        return cls
    return type(cls.__name__, (cls,), {n: _of_original(n) for n in names} | {"__module__": cls.__module__})


_FROM_ORIGINAL = frozenset({
    "training", "state_dict", "load_state_dict", "named_parameters", "parameters", "named_buffers", "buffers",
    "named_modules", "modules", "named_children", "children", "register_forward_hook", "register_forward_pre_hook",
    "register_full_backward_hook", "register_full_backward_pre_hook", "register_buffer", "register_parameter",
    "register_module", "add_module", "get_submodule", "get_parameter", "get_buffer", "zero_grad", "extra_repr",
    "_get_name", "register_state_dict_pre_hook", "register_load_state_dict_pre_hook",
    "register_load_state_dict_post_hook", "register_state_dict_post_hook", "_forward_hooks", "_forward_pre_hooks",
    "_backward_hooks", "_backward_pre_hooks", "_is_full_backward_hook", "_forward_hooks_with_kwargs",
    "_forward_pre_hooks_with_kwargs", "_forward_hooks_always_called", "_state_dict_hooks", "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks", "_non_persistent_buffers_set",
})  # fmt: skip
"""Names that ``nn.Module`` defines itself, so that ``__getattr__`` would not pass them on."""


def _of_original(name: str) -> property:
    return property(lambda self: getattr(self._original, name))


for _name in _FROM_ORIGINAL:
    setattr(ThunderModule, _name, _of_original(_name))
