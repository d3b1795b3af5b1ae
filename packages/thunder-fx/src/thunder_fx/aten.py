"""Which function of PyTorch that programs know an ATen operation is."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import torch

from thunder_torch import find_symbol
from thunder_torch.inplace import copy
from thunder_torch.torch_versions import OpOverload

Known = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
Rule = Callable[..., Known | None]
R = TypeVar("R", bound=Rule)
aten = torch.ops.aten


class _Rules(dict[OpOverload, Rule]):
    """For ATen operations that no function of PyTorch's Python interface is called like: what call says the same."""

    def define(self, *operations: OpOverload) -> Callable[[R], R]:
        def keep(rule: R) -> R:
            for operation in operations:
                if operation in self:
                    raise ValueError(f"{operation} has a rule already")
                self[operation] = rule
            return rule

        return keep


RULES = _Rules()


def known_call(operation: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Known | None:
    """Return a call of a function that programs know which does what an ATen operation does, or ``None``.

    Args:
        operation: an overload in ``torch.ops.aten``.
        args, kwargs: of its call.

    Example:
        >>> import torch
        >>> from thunder_fx.aten import known_call
        >>> known_call(torch.ops.aten.mul.Tensor, (2, 3), {})[0] is torch.mul
        True
    """
    rule = RULES.get(operation)
    if rule is not None:
        return rule(*args, **kwargs)
    function = function_of(operation)
    return None if function is None else (function, args, kwargs)


@cache
def function_of(operation: OpOverload) -> Callable[..., Any] | None:
    """Return the function of PyTorch that is called like an ATen operation, if programs know it.

    Those of ``torch``, methods and ``torch._C._nn`` are generated from the schemas of the operations.
    """
    if operation.namespace != "aten" or operation._schema.is_mutable or operation in UNLIKE:
        return None
    name = operation._opname
    places: list[tuple[Any, str]] = [(torch._C._VariableFunctions, name), (torch.Tensor, name), (torch._C._nn, name)]
    for prefix, place in (("linalg_", torch.linalg), ("fft_", torch.fft), ("special_", torch.special)):
        if name.startswith(prefix):
            places.append((place, name.removeprefix(prefix)))
    for place, key in places:
        function = getattr(place, key, None)
        if function is not None and find_symbol(function) is not None:
            return function  # type: ignore[no-any-return]
    return None


UNLIKE = frozenset({aten.detach.default})
"""Operations that the functions of their names are not: one of autograd's here, a view there."""


@RULES.define(aten.slice.Tensor)
def _slice(a: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Known:
    index = (*[slice(None)] * (dim % len(a.shape)), slice(start, end, step))
    return torch.Tensor.__getitem__, (a, index), {}


@RULES.define(aten.index.Tensor)
def _index(a: Any, indices: Any) -> Known:
    return torch.Tensor.__getitem__, (a, tuple([slice(None) if i is None else i for i in indices])), {}


@RULES.define(aten._softmax.default)
def _softmax(a: Any, dim: int, half_to_float: bool) -> Known | None:
    return None if half_to_float else (torch.softmax, (a, dim), {})


@RULES.define(aten._log_softmax.default)
def _log_softmax(a: Any, dim: int, half_to_float: bool) -> Known | None:
    return None if half_to_float else (torch.log_softmax, (a, dim), {})


@RULES.define(aten.copy.default)
def _copy(a: Any, source: Any, non_blocking: bool = False) -> Known:
    return copy, (a, source), {}


__all__ = ["RULES", "function_of", "known_call"]
