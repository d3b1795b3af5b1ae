"""Lazy modules: what they are made of is settled before a program is acquired."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.parameter import is_lazy
from torch.utils._pytree import tree_map_only

from thunder_frontend.traced_tensor import TracedTensor

INFER = LazyModuleMixin._infer_parameters


class LazyModuleSettled(BaseException):  # noqa: N818  (a signal, which no handler of the user's may take for an error)
    """A lazy module has got its parameters, so that what was acquired until then does not hold any more."""


def infer_parameters(acquisition: Any) -> Any:
    """Return what is done in place of the hook by which a lazy module makes its parameters in its first call."""

    def infer(hook_of: Any, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> None:
        examples = tree_map_only(TracedTensor, acquisition.layouts.example, (args, kwargs or {}))
        with torch._C.DisableTorchFunction():
            INFER(hook_of, module, *examples)
        raise LazyModuleSettled

    return infer


def settle_lazy_parameters(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Give the parameters of a module that have no shape yet one, by running it once, in eval mode.

    Args:
        function: what is about to be compiled.
        args, kwargs: of the call; copies are passed.
    """
    if not isinstance(function, torch.nn.Module) or not any(
        map(is_lazy, (*function.parameters(), *function.buffers()))
    ):
        return
    modes = {module: module.training for module in function.modules()}
    function.eval()
    try:
        with torch.no_grad():
            function(*copy.deepcopy(args), **copy.deepcopy(dict(kwargs)))
    finally:
        for module, training in modes.items():
            module.training = training
