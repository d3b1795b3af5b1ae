"""Torch functions that are recorded as calls of others, which say the same in more usual terms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from thunder_torch.convert import to_torch_device, to_torch_dtype
from thunder_tracing.tensors.calls import Calls

T = torch.Tensor
REWRITES: dict[Any, Callable[..., tuple[Any, tuple[Any, ...], dict[str, Any]]]] = {}
"""By function: takes the calls in progress, the function and its arguments, and returns another such call."""


def rewrites(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """File the decorated function as what writes calls of these in another way."""

    def register(rewrite: Callable[..., Any]) -> Callable[..., Any]:
        REWRITES.update(dict.fromkeys(functions, rewrite))
        return rewrite

    return register


LIKE_ANOTHER = {T.view_as: T.view, T.reshape_as: T.reshape, T.expand_as: T.expand}
"""Views that take their shape from another tensor, of which they read nothing else."""


@rewrites(*LIKE_ANOTHER)
def _of_shape(calls: Calls, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if len(args) == 2 and isinstance(args[1], T):
        return LIKE_ANOTHER[function], (args[0], tuple(calls.value(args[1]).shape)), kwargs
    return function, args, kwargs


@rewrites(T.to, T.type_as)
def _of_kind(calls: Calls, function: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if len(args) < 2 or not isinstance(args[1], T):
        return function, args, kwargs
    model = calls.value(args[1])
    return T.to, (args[0], to_torch_device(model.device), to_torch_dtype(model.dtype), *args[2:]), kwargs


@rewrites(T.select, torch.select)
def _by_a_tensor(calls: Calls, function: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if any([isinstance(a, T) for a in (*args[1:], *kwargs.values())]):
        return T.__getitem__, _key_of_select(calls, *args, **kwargs), {}
    return function, args, kwargs


def _key_of_select(calls: Calls, input: Any, dim: int, index: Any) -> tuple[Any, Any]:
    return input, (*[slice(None)] * (dim % max(calls.traced(input).ndim, 1)), index)


__all__ = ["REWRITES"]
