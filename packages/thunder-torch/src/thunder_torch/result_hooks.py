"""Hooks on the gradients of results, where one node of autograd's graph has several.

PyTorch calls them with ``None`` where the node runs and nothing comes to their result. Eager's results have nodes of
their own, which do not run then.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

_REGISTER = torch._C._FunctionBase.__dict__["_register_hook_dict"]


class Hooks(OrderedDict[int, Any]):
    """Hooks on the gradient of a result, which are called where there is one."""

    def __setitem__(self, key: int, hook: Callable[[Tensor], Any]) -> None:
        @functools.wraps(hook, updated=())
        def with_gradient(gradient: Tensor | None) -> Any:
            return None if gradient is None else hook(gradient)

        super().__setitem__(key, with_gradient)


def skip_nothing(function: type[torch.autograd.Function]) -> None:
    """Let hooks on results of a function be called with gradients only.

    Nothing happens where no hook is registered: PyTorch then asks the node of a result to know of its hooks.

    Args:
        function: whose nodes.
    """

    def register(node: Any, result: Tensor) -> None:
        result._backward_hooks = Hooks(result._backward_hooks or ())
        _REGISTER(node, result)

    function._backward_cls._register_hook_dict = register  # type: ignore[attr-defined]


def let_be_hooked(result: Tensor) -> Mapping[int, Any]:
    """Return where hooks on a result are to be found from now on, also once it is gone.

    Args:
        result: computed. Hooks that it has, as a view that was made of a result may, are there.
    """
    there: Mapping[int, Any] | None = result._backward_hooks
    if there is not None:
        return there
    hooks = Hooks()
    node: Any = result.grad_fn
    result._backward_hooks = hooks
    node._register_hook_dict(result)
    return hooks
