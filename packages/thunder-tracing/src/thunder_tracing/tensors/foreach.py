"""PyTorch's functions on lists of tensors, ``torch._foreach_*``: with them optimizers update all parameters at once."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

import torch

from thunder_guards.errors import AcquisitionError
from thunder_tracing.tensors.calls import Calls

T = torch.Tensor
PREFIX = "_foreach_"
OF_LISTS = (PREFIX, "_fused_", "_amp_foreach_")
"""How the names of functions on lists begin."""

WITH_VALUE = frozenset({"addcmul", "addcdiv"})
"""Functions whose last argument is the keyword argument ``value`` of the function of single tensors."""

OF_SINGLE: dict[str, Callable[..., Any]] = {"norm": torch.linalg.vector_norm}
"""What the others are, where their name does not say."""


FUSED = (
    "torch.{} updates parameters in one kernel that PyTorch does not describe; inside of a compiled program make the "
    "optimizer with fused=False"
)
SCALER = (
    "a GradScaler looks at the values of gradients before it lets the optimizer go on, and these are known only when "
    "the program runs; compile the forward and the loss, and leave the scaler outside"
)


def of_lists(calls: Calls, function: object) -> Callable[..., Any] | None:
    """Return what is done in place of a function on lists: the same on one tensor after the other.

    Args:
        calls: the acquisition.
        function: anything that is called; ``None`` is returned unless it is such a function.
    """
    if type(function) is not types.BuiltinFunctionType:
        return None
    name = function.__name__
    if getattr(torch, name, None) is not function:
        return None
    if name.startswith("_fused_"):
        return lambda *args, **kwargs: _refuse(FUSED.format(name))
    if name == "_amp_foreach_non_finite_check_and_unscale_":
        return lambda *args, **kwargs: _refuse(SCALER)
    if not name.startswith(PREFIX):
        return None
    single, in_place = name.removeprefix(PREFIX).removesuffix("_"), name.endswith("_")

    def run(*args: Any, **kwargs: Any) -> Any:
        given = args if not kwargs.get("scalars") else (*args, kwargs.pop("scalars"))
        for value in given:
            if _is_list(value):
                calls.external.contents(value)
        count = next(len(a) for a in given if _is_list(a))
        with torch._C.DisableTorchFunction():
            made = [
                _one(calls, single, in_place, [_item(calls, a, i, count) for a in given], kwargs) for i in range(count)
            ]
        return given[0] if in_place else tuple(made)

    return run


def _is_list(value: object) -> bool:
    return isinstance(value, (list, tuple))


def _item(calls: Calls, argument: Any, index: int, count: int) -> Any:
    """Return what an argument means for the tensor at ``index``."""
    if _is_list(argument):
        return argument[index]
    if isinstance(argument, T) and calls.value(argument).ndim == 1 and calls.value(argument).shape[0] == count:
        return calls(T.__getitem__, (argument, index), {})  # scalars, as one tensor
    return argument


def _one(calls: Calls, name: str, in_place: bool, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Do it on one tensor."""
    if name in WITH_VALUE and len(args) == 4:
        args, kwargs = args[:3], {**kwargs, "value": args[3]}
    if in_place:
        method = getattr(T, f"{name}_", None)
        if method is not None:
            return calls(method, tuple(args), kwargs)
        return calls(T.copy_, (args[0], _one(calls, name, False, args, kwargs)), {})
    function = OF_SINGLE.get(name) or getattr(torch, name)
    return calls(function, tuple(args), kwargs)


def _refuse(why: str) -> Any:
    raise AcquisitionError(why)
