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


def notice_hooks(function: type[torch.autograd.Function], note: Callable[[Any, int, Mapping[int, Any]], None]) -> None:
    """Let hooks on results of a function be called with gradients only, and tell of results that get one.

    Nothing happens where nobody registers a hook: PyTorch then asks the node of a result to know of its hooks.

    Args:
        function: whose nodes.
        note: takes the node, the place of the result, and its hooks, which come and go.
    """

    def register(node: Any, result: Tensor) -> None:
        result._backward_hooks = hooks = Hooks(result._backward_hooks or ())
        _REGISTER(node, result)
        note(node, result.output_nr, hooks)

    function._backward_cls._register_hook_dict = register  # type: ignore[attr-defined]


__all__ = ["Hooks", "notice_hooks"]
