"""Lazy modules: what they are made of is settled before a program is acquired."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch.nn.parameter import is_lazy


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
