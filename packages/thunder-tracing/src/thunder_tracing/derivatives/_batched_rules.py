"""Calls with a derivative of their own, such as ``torch.autograd.Function``, for batches: the derivative goes along."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from thunder_autograd import differentiable_outputs, grad_transform_on_trace
from thunder_ir import BoundSymbol, Names, Symbol, TensorProxy, Trace, flat_proxies, substitute
from thunder_ir.passes import evaluate
from thunder_torch import call
from thunder_tracing.derivatives.custom_functions import CustomRule, rule_for_higher_derivatives
from thunder_tracing.tensors.overwrites import zeros_like
from thunder_vmap import batch_transform_on_trace
from thunder_vmap.batching import Randomness

T = torch.Tensor


class BatchedRule:
    """Batches one call as a call whose derivative is the batch of the derivatives.

    Args:
        bound: the call for one example.
        rules: the derivatives that calls of the program have; gets that of the new one.
        names: of the program around it.
        randomness: what random operations do.
    """

    def __init__(
        self, bound: BoundSymbol, rules: dict[Symbol, Callable[..., Any]], names: Names, randomness: Randomness
    ) -> None:
        self._bound, self._rules, self._names, self._randomness = bound, rules, names, randomness

    def __call__(self, size: object, args: tuple[Any, ...], dims: tuple[Any, ...], **kwargs: Any) -> tuple[Any, Any]:
        """Do what a batching rule does."""
        inputs = {p.name: p for p in self._bound.inputs}
        batches, places = _values(self._bound.args, args, dims)
        of_input = [places[name] for name in inputs]
        example = Trace("example", tuple(inputs.values()), (self._bound,), tuple(self._bound.outputs))
        forward = self._batched(example, size, of_input)
        symbol = Symbol(
            self._bound.symbol.name,
            self._bound.symbol.namespace,
            decomposition=lambda *values: _first(forward, values),
            language=self._bound.symbol.language,
        )
        wanted = [name for name, p in inputs.items() if isinstance(p, TensorProxy) and p.dtype.is_inexact]
        joint = grad_transform_on_trace(
            example, rule_of=lambda bound: rule_for_higher_derivatives(self._rules, bound), wanted=wanted
        )
        takes = differentiable_outputs(joint)
        pulled = self._batched(
            joint.replace(output=joint.output[1]), size, of_input + [0] * (len(joint.inputs) - len(inputs))
        )

        def rule(*values: Any) -> Any:
            made = symbol(*values)

            def pullback(*cotangents: Any) -> tuple[Any, ...]:
                given = [
                    zeros_like(m) if c is None else c for c, m, t in zip(cotangents, made, takes, strict=True) if t
                ]
                gradients, found = evaluate(pulled, [*values, *given])
                left = iter(found)
                placed = [(None, None) if g is None else (g, next(left)) for g in gradients]
                return tuple([_gradient(g, d, v, p) for (g, d), v, p in zip(placed, values, of_input, strict=True)])

            return made, pullback

        self._rules[symbol] = CustomRule(rule, rule)
        made = symbol(*[batches[name] for name in inputs])
        return substitute(self._bound.output, dict(zip([p.name for p in self._bound.outputs], made, strict=True))), (
            tuple([0] * len(made)) if len(made) > 1 or not isinstance(self._bound.output, TensorProxy) else 0
        )

    def _batched(self, trace: Trace, size: Any, dims: list[int | None]) -> Trace:
        return batch_transform_on_trace(trace, size, dims, randomness=self._randomness, names=self._names)


def _values(template: object, values: object, dims: object) -> tuple[dict[str, Any], dict[str, int | None]]:
    """Return the values of a call for the batch, and where they have it, by the names of those for one example."""
    names = [p.name for p in flat_proxies(template)]
    return dict(zip(names, flat_proxies(values), strict=True)), dict(zip(names, _flat(template, dims), strict=True))


def _flat(template: Any, dims: Any) -> list[int | None]:
    if isinstance(template, (tuple, list)):
        of_items = dims if isinstance(dims, tuple) else [None] * len(template)
        return [d for item, of in zip(template, of_items, strict=True) for d in _flat(item, of)]
    return [dims] if flat_proxies(template) else []


def _first(trace: Trace, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Record a batched program; return its outputs with the batch in front."""
    outputs, dims = evaluate(trace, values)
    return tuple([call(T.movedim, (o, d, 0), {}) for o, d in zip(outputs, dims, strict=True)])


def _gradient(gradient: Any, dim: int | None, value: Any, place: int | None) -> Any:
    """Return a gradient with its batch where that of the value is, summed up for a value that has none."""
    if gradient is None:
        return None
    if place is None:
        return gradient if dim is None else call(torch.sum, (gradient, dim), {})
    if dim is None:
        return call(T.expand, (call(T.unsqueeze, (gradient, place), {}), tuple(value.shape)), {})
    return call(T.movedim, (gradient, dim, place), {})
