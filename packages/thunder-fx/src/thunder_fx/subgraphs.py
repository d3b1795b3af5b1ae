"""Higher-order operators of FX graphs that stand for the graphs which they are given, run in some state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch._ops import HigherOrderOperator

from thunder_fx._torch_versions import context_and_tensors

Running = Callable[[Any], Callable[..., Any]]
R = TypeVar("R", bound=Callable[..., Any])
operators = torch.ops.higher_order


class _Rules(dict[HigherOrderOperator, Callable[..., Any]]):
    """For operators what to do instead: a function of what runs a graph, and the operator's arguments."""

    def define(self, name: str) -> Callable[[R], R]:
        def keep(rule: R) -> R:
            operator = getattr(operators, name, None)
            if operator is not None:  # which PyTorch has, as from some version on
                self[operator] = rule
            return rule

        return keep


SUBGRAPHS = _Rules()


@SUBGRAPHS.define("tag_activation_checkpoint")
def _checkpoint(running: Running, graph: Any, *args: Any, **options: Any) -> Any:
    """What is saved and what is computed again is decided for the program as a whole."""
    return running(graph)(*args)


@SUBGRAPHS.define("invoke_subgraph")
def _invoke(running: Running, graph: Any, identifier: Any, *args: Any) -> Any:
    return running(graph)(*args)


@SUBGRAPHS.define("wrap")
def _wrap(running: Running, graph: Any, *args: Any, **kwargs: Any) -> Any:
    return running(graph)(*args, **kwargs)


@SUBGRAPHS.define("wrap_with_set_grad_enabled")
def _with_gradients(running: Running, enabled: bool, graph: Any, *args: Any) -> Any:
    with torch.set_grad_enabled(enabled):
        return running(graph)(*args)


@SUBGRAPHS.define("wrap_with_autocast")
def _with_autocast(
    running: Running, device: str, dtype: Any, enabled: bool, cache_enabled: bool | None, graph: Any, *args: Any
) -> Any:
    with torch.autocast(device, dtype, enabled, cache_enabled):
        return running(graph)(*args)


@SUBGRAPHS.define("autograd_function_apply")
def _apply(
    running: Running,
    forward: Any,
    backward: Any,
    *args: Any,
    non_differentiable_idx: Sequence[int] = (),
    dirty_idx: Sequence[int] = (),
    **options: Any,
) -> Any:
    """The graphs of a custom function are its forward and its backward."""
    context, count = context_and_tensors(args, options)
    constant = args[count:]

    class Applied(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *given: Any) -> Any:
            outputs, ctx.saved = running(forward)(*context, *given, *constant)
            results = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
            ctx.mark_non_differentiable(*[results[i] for i in non_differentiable_idx])
            ctx.mark_dirty(*[results[i] for i in dirty_idx])
            return tuple(outputs) if isinstance(outputs, list) else outputs

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> Any:
            return running(backward)(*context, *cotangents, *ctx.saved)

    return Applied.apply(*args[:count])  # type: ignore[no-untyped-call]


__all__ = ["SUBGRAPHS"]
