"""Lazy modules: what they are made of is settled while a program is acquired, which begins anew."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.modules.lazy import LazyModuleMixin
from torch.utils._pytree import tree_map_only

from thunder_frontend._acquiring import Acquiring
from thunder_guards.errors import BeginAgain
from thunder_tracing.tensors.traced_tensor import TracedTensor

INFER = LazyModuleMixin._infer_parameters


class LazyModuleSettled(BeginAgain):
    """A lazy module has got its parameters, so that what was acquired until then does not hold any more."""


def infer_parameters(acquisition: Acquiring) -> Any:
    """Return what is done in place of the hook by which a lazy module makes its parameters in its first call."""

    def infer(
        hook_of: Any, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
    ) -> None:
        examples = tree_map_only(TracedTensor, acquisition.layouts.fake, (args, kwargs or {}))
        with torch._C.DisableTorchFunction():
            INFER(hook_of, module, *examples)
        raise LazyModuleSettled

    return infer
