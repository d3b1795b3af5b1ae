"""What autograd makes of values written over others: symbols whose result is the new value.

Written in place, a tensor goes on requiring grad though what is written does not. If autograd saw the write, zeros
reach the old value as its gradient; if it did not (under ``torch.no_grad()``, through ``.data``), all of the gradient
does, as if there had been no write.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from thunder_ir import Builder, Symbol, TensorProxy, bind
from thunder_torch import call, to_torch_device, to_torch_dtype, torch_language
from thunder_torch.traits import Trait, state


def _new_value(old: TensorProxy, new: TensorProxy) -> Any:
    return call(torch.Tensor.detach, (new,), {})


WRITTEN = Symbol("written", "thunder_tracing", decomposition=_new_value, language=torch_language)
"""``written(old, new)``: ``new``, written over ``old`` where autograd saw it."""

WRITTEN_UNSEEN = Symbol("written_unseen", "thunder_tracing", decomposition=_new_value, language=torch_language)
"""``written_unseen(old, new)``: ``new``, written over ``old`` behind autograd's back."""
state("written_unseen", traits=(Trait.SAVES_NOTHING,))


def _same_value(old: TensorProxy, new: TensorProxy) -> Any:
    return call(torch.ops.aten.alias.default, (new,), {})


WRITTEN_WHOLE = Symbol("written_whole", "thunder_tracing", decomposition=_same_value, language=torch_language)
"""``written_whole(old, new)``: ``new``, which has a gradient itself, written over all of ``old``."""


def _written_rule(old: TensorProxy, new: TensorProxy) -> tuple[Any, Callable[..., Any]]:
    return _new_value(old, new), lambda cotangent: (_no_gradient(old, cotangent), None)


def _unseen_rule(old: TensorProxy, new: TensorProxy) -> tuple[Any, Callable[..., Any]]:
    return _new_value(old, new), lambda cotangent: (cotangent, None)


def _whole_rule(old: TensorProxy, new: TensorProxy) -> tuple[Any, Callable[..., Any]]:
    return _same_value(old, new), lambda cotangent: (_no_gradient(old, cotangent), cotangent)


def _no_gradient(old: TensorProxy, cotangent: Any) -> Any:
    """Record zeros that are there if there is a cotangent: it is read, unless ``old`` is an unseen leaf."""
    if cotangent.ndim != old.ndim or cotangent.dtype is not old.dtype:
        return zeros_like(old)
    return call(torch.zeros_like, (cotangent,), {})


def zeros_like(proxy: TensorProxy) -> Any:
    """Record zeros like a cotangent that is missing, as autograd materialises them."""
    return call(
        torch.zeros,
        (tuple(proxy.shape),),
        {"dtype": to_torch_dtype(proxy.dtype), "device": to_torch_device(proxy.device)},
    )


RULES: dict[Symbol, Callable[..., Any]] = {
    WRITTEN: _written_rule, WRITTEN_UNSEEN: _unseen_rule, WRITTEN_WHOLE: _whole_rule,
}  # fmt: skip


def _again(symbol: Symbol, rule: Callable[..., Any]) -> Callable[..., Any]:
    return lambda old, new: (symbol(old, new), rule(old, new)[1])


RULES_AGAIN: dict[Symbol, Callable[..., Any]] = {symbol: _again(symbol, rule) for symbol, rule in RULES.items()}
"""The same for what is differentiated again: the calls stay what they are."""


def record_overwritten(builder: Builder, old: TensorProxy, new: TensorProxy, tracked: bool) -> TensorProxy:
    """Record that ``new``, which does not require grad, is written over ``old``, which does; return what it is then."""
    return _recorded(builder, WRITTEN if tracked else WRITTEN_UNSEEN, old, new)


def record_overwritten_whole(builder: Builder, old: TensorProxy, new: TensorProxy) -> TensorProxy:
    """Record that ``new`` is written over all of ``old``, both of which require grad; return what it is then."""
    return _recorded(builder, WRITTEN_WHOLE, old, new)


def _recorded(builder: Builder, symbol: Symbol, old: TensorProxy, new: TensorProxy) -> TensorProxy:
    made = new.like(requires_grad=True)
    made.strides = new.strides
    bind(builder, symbol, (old, new), {}, made)
    return made
