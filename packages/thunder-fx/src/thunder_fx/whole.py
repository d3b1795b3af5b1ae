"""Higher-order operators that stay whole operations of a program: PyTorch runs and differentiates them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._ops import HigherOrderOperator
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree

from thunder_fx.errors import FXError
from thunder_torch.opaque import call_of

operators = torch.ops.higher_order


@dataclass(frozen=True, eq=False)
class Conditional:
    """Runs one of two graphs. Of fake tensors, whose values are not known, both are computed.

    Args:
        if_true, if_false: the graphs.
    """

    if_true: Callable[..., Any]
    if_false: Callable[..., Any]

    __name__ = "cond"

    def __call__(self, condition: Any, operands: Sequence[Any]) -> Any:
        """Run the graph that ``condition`` says.

        Raises:
            FXError: the graphs return tensors of different kinds.
        """
        if isinstance(condition, FakeTensor):
            return either(condition, self.if_true(*operands), self.if_false(*operands), "the branches of cond return")
        return (self.if_true if condition else self.if_false)(*operands)


@dataclass(frozen=True, eq=False)
class Loop:
    """Runs a graph as long as another one says. Of fake tensors, each result may be of each operand.

    Args:
        condition: takes what the loop carries, and what it reads besides; returns whether it goes on.
        body: takes the same, returns what is carried on.
    """

    condition: Callable[..., Any]
    body: Callable[..., Any]

    __name__ = "while_loop"

    def __call__(self, carried: Sequence[Any], read: Sequence[Any]) -> Any:
        """Run the loop.

        Raises:
            FXError: the body returns tensors of other kinds than it is given.
        """
        known = tuple(carried)
        if any([isinstance(t, FakeTensor) for t in (*known, *read)]):
            for _ in known:  # a step for each, as what one result is of may pass through all others
                again = self.condition(*known, *read)
                known = either(again, tuple(self.body(*known, *read)), known, "the body of while_loop returns")
            return known
        while self.condition(*known, *read):
            known = tuple(self.body(*known, *read))
        return tuple([t.clone() if t is c else t for t, c in zip(known, carried, strict=True)])


def either(condition: Any, left: Any, right: Any, told: str) -> Any:
    """Return fake results that may be either of two.

    Raises:
        FXError: these are not alike.
    """
    first, spec = pytree.tree_flatten(left)
    second, other = pytree.tree_flatten(right)
    if spec != other or [_kind(t) for t in first] != [_kind(t) for t in second]:
        raise FXError(f"{told} {[_kind(t) for t in first]} and {[_kind(t) for t in second]}, which are not alike")
    return pytree.tree_unflatten(
        [
            torch.where(condition, a, b) if isinstance(a, torch.Tensor) else a
            for a, b in zip(first, second, strict=True)
        ],
        spec,
    )


def _kind(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)} on {value.device}"


def _cond(condition: Any, if_true: Any, if_false: Any, operands: Sequence[Any] = ()) -> Any:
    return Conditional(if_true, if_false), (condition, tuple(operands))


def _while_loop(condition: Any, body: Any, carried: Sequence[Any], read: Sequence[Any] = ()) -> Any:
    return Loop(condition, body), (tuple(carried), tuple(read))


OWN: dict[HigherOrderOperator, Callable[..., Any]] = {operators.cond: _cond, operators.while_loop: _while_loop}
"""Operators that PyTorch can differentiate only by tracing them again: as functions that autograd sees into."""

AS_THEY_ARE = frozenset(
    [getattr(operators, name) for name in ("flex_attention", "autograd_function_apply") if hasattr(operators, name)]
)


def whole(
    operator: HigherOrderOperator, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Callable[..., Any], list[Any]] | None:
    """Return a call of a higher-order operator as a callable of tensors and numbers, and these.

    Args:
        operator: one that takes graphs.
        args, kwargs: of its call.

    Returns:
        ``None`` if it is not known whether the operator has no effects besides its result.
    """
    if operator in OWN:
        function, given = OWN[operator](*args, **kwargs)
        return call_of(function, given, {})
    return call_of(operator, args, kwargs) if operator in AS_THEY_ARE else None


__all__ = ["Conditional", "Loop", "whole"]
