"""Forward mode: from a program to the program of its outputs and their tangents."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any

from thunder_autograd.joint import grad_transform_on_trace, wanted_inputs
from thunder_autograd.programs import gradient_trace
from thunder_autograd.rules import JvpRule, jvp_rule, vjp_rule
from thunder_autograd.traits import is_differentiable, tensor_slots
from thunder_ir import (
    BoundSymbol,
    Builder,
    MissingRuleError,
    OpTags,
    Proxy,
    TensorProxy,
    Trace,
    current_builder,
    flat_proxies,
    recording,
    substitute,
)
from thunder_ir.passes import evaluate, trace_pass
from thunder_ir.passes.pairing import pair_outputs

JvpRuleOf = Callable[[BoundSymbol], JvpRule | None]


@trace_pass
def jvp_transform_on_trace(
    trace: Trace, *, rule_of: JvpRuleOf | None = None, wanted: Collection[str] | None = None
) -> Trace:
    """Return the program of the outputs and their tangents, from the inputs and theirs.

    Args:
        trace: the program.
        rule_of: a rule that goes before a symbol's own, or ``None``. A symbol without any is differentiated through its
            decomposition, or by transposing its vjp rule.
        wanted: names of the inputs that have tangents; every one that can have a derivative if not given.

    Returns:
        A trace with the inputs of ``trace`` and a tangent for each input that has one, in order, as inputs. Its output
        is ``(outputs, tangents)``, with one tangent per value in the outputs: ``None`` where it is zero.

    Raises:
        MissingRuleError: a tangent must pass through a symbol that has neither a rule nor a decomposition.
    """
    if wanted is None:
        wanted = {p.name for p in trace.inputs if is_differentiable(p)}
    pusher = Pusher(Builder(trace.names()), rule_of)
    tangents = []
    for proxy, has_tangent in zip(trace.inputs, wanted_inputs(trace, wanted), strict=True):
        if has_tangent:
            assert isinstance(proxy, TensorProxy)
            tangent = proxy.like(requires_grad=False)
            tangent.name = pusher.builder.names.take(f"d{proxy.name}")
            tangents.append(tangent)
            pusher.tangent[proxy.name] = tangent
    with recording(pusher.builder):
        pusher.run(trace.bound_symbols)
    output = substitute(trace.output, pusher.value)
    return trace.replace(
        name=f"{trace.name}_jvp",
        inputs=(*trace.inputs, *tangents),
        bound_symbols=tuple(pusher.builder.bound_symbols),
        output=(output, tuple([pusher.tangent.get(p.name) for p in trace.outputs])),
        constraints=(*trace.constraints, *pusher.builder.constraints),
    )


class Pusher:
    """Walks over a program once; keeps for each name the value and, unless it is zero, the tangent.

    Args:
        builder: takes the calls of the new program; :meth:`run` wants it to be the one that records.
        rule_of: see :func:`jvp_transform_on_trace`.
    """

    def __init__(self, builder: Builder, rule_of: JvpRuleOf | None) -> None:
        self.builder = builder
        self.rule_of = rule_of
        self.value: dict[str, Any] = {}
        self.tangent: dict[str, TensorProxy] = {}

    def run(self, bound_symbols: Any) -> None:
        """Push the tangents that are known through calls."""
        for bound in bound_symbols:
            if not self.depends(bound):
                self.builder.bound_symbols.append(bound.substituted(self.value))
                continue
            rule = self.rule_of(bound) if self.rule_of is not None else None
            rule = rule if rule is not None else jvp_rule.get(bound.symbol)
            if rule is not None:
                self.push(bound, rule)
            elif bound.symbol in vjp_rule:
                self.push(bound, partial(transposed, bound))
            elif bound.symbol.decomposition is not None:
                parts, output = bound.decomposed(self.builder.names)
                self.run(parts)
                self.pair(bound.output, output)
            else:
                raise MissingRuleError(
                    f"{bound.symbol.id} has no jvp rule, and a tangent must pass through it; "
                    f"add one with @jvp_rule({bound.symbol.id})"
                )

    def depends(self, bound: BoundSymbol) -> bool:
        return (
            any([p.name in self.tangent for p in bound.inputs])
            and not bound.has_tag(OpTags.CONSTANT_FOR_DERIVATIVE)
            and any(map(is_differentiable, bound.outputs))
        )

    def push(self, bound: BoundSymbol, rule: JvpRule) -> None:
        """Run a rule in the place of the call."""
        builder = self.builder
        builder.tags, builder.language = bound.tags, bound.symbol.language
        builder.locate = lambda: bound.location
        args, kwargs = substitute(bound.args, self.value), substitute(bound.kwargs, self.value)
        output, tangents = rule(*args, *[self.tangents(a) for a in bound.args], **kwargs)
        self.pair(bound.output, output)
        outputs = bound.outputs
        given = [tangents] if isinstance(bound.output, Proxy) else list(tangents or ())
        for proxy, tangent in zip(outputs, given, strict=False):
            if tangent is not None and is_differentiable(proxy):
                self.tangent[proxy.name] = tangent

    def tangents(self, argument: Any) -> Any:
        """Return an argument's tangent, in a container where the argument is one."""
        if isinstance(argument, Proxy):
            return self.tangent.get(argument.name)
        if isinstance(argument, (tuple, list)) and flat_proxies(argument):
            return tuple([self.tangents(item) for item in argument])
        return None

    def pair(self, old: Any, new: Any) -> None:
        """What a rule or decomposition returned stands for the outputs of the call."""
        found: dict[str, Any] = {}
        pair_outputs(old, new, found)
        for name, proxy in found.items():
            if isinstance(proxy, Proxy):
                if proxy.name in self.tangent:
                    self.tangent[name] = self.tangent[proxy.name]
                if proxy.name != name:
                    self.value[name] = self.value.get(proxy.name, proxy)


def transposed(bound: BoundSymbol, *args_and_tangents: Any, **kwargs: Any) -> tuple[Any, Any]:
    """Push a tangent through a call whose symbol has only a vjp rule.

    The pullback is linear in its cotangent ``u``, so the gradient with respect to ``u`` of its result along the
    tangents is the tangent of the output, whatever ``u`` is.

    Raises:
        MissingRuleError: the pullback computes with its cotangent in a way that is not linear.
    """
    args, tangents = args_and_tangents[: len(bound.args)], args_and_tangents[len(bound.args) :]
    output, cotangents, gradients, recorded = _pulled_back(bound, args, kwargs)
    pairs = [(g, d) for g, d in _pairs(gradients, tangents) if isinstance(g, Proxy) and d is not None]
    inputs = tuple([c for c in cotangents if is_differentiable(c)])
    program = Trace("pullback", inputs, tuple(recorded), tuple([g for g, _ in pairs]))
    linear = gradient_trace(grad_transform_on_trace(program, wanted={p.name for p in inputs}))
    if {p.name for b in linear.bound_symbols for p in b.inputs} & {p.name for p in inputs}:
        raise MissingRuleError(
            f"{bound.symbol.id} has no jvp rule, and its pullback is not linear; "
            f"add one with @jvp_rule({bound.symbol.id})"
        )
    pushed = dict(zip([c.name for c in inputs], evaluate(linear, [*inputs, *[d for _, d in pairs]]), strict=True))
    results = [pushed.get(c.name) for c in cotangents]
    return output, results[0] if isinstance(output, Proxy) else tuple(results)


def _pulled_back(
    bound: BoundSymbol, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, list[TensorProxy], Any, list[BoundSymbol]]:
    """Run a vjp rule; return its output, stand-ins for cotangents, what the pullback made of them, and its calls."""
    builder = current_builder()
    output, pullback = vjp_rule[bound.symbol](*args, **kwargs)
    slots = [None if p is None else p.like(requires_grad=False) for p in tensor_slots(output)]
    cotangents = [c for c in slots if c is not None]
    for cotangent in cotangents:
        cotangent.name = builder.names.fresh("u")
    around, builder.bound_symbols = builder.bound_symbols, []
    gradients = pullback(*[c if is_differentiable(c) else None for c in slots])
    recorded, builder.bound_symbols = builder.bound_symbols, around
    return output, cotangents, gradients if isinstance(gradients, (tuple, list)) else (gradients,), recorded


def _pairs(gradients: Any, tangents: Any) -> Iterator[tuple[Any, Any]]:
    """Pair gradients with the tangents at the same places."""
    for gradient, tangent in zip(gradients, tangents, strict=False):
        if isinstance(gradient, (tuple, list)) and tangent is not None:
            yield from _pairs(gradient, tangent)
        else:
            yield gradient, tangent
