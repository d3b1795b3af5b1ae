"""From a program to its joint program: the outputs and, given their cotangents, the gradients of the inputs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from thunder_autograd.groups import Group, Item, settle
from thunder_autograd.programs import ACCUMULATES, TakesCotangents
from thunder_autograd.rules import ZERO, Pullback, Through, VjpRule, vjp_rule
from thunder_autograd.traits import Trait, Traits, is_differentiable, tensor_slots
from thunder_ir import (
    BoundSymbol,
    Builder,
    MissingRuleError,
    OpTags,
    Proxy,
    ShapeError,
    Symbol,
    TensorProxy,
    ThunderError,
    Trace,
    flat_proxies,
    recording,
    substitute,
)
from thunder_ir.passes import trace_pass
from thunder_ir.trace import DEFAULT

RuleOf = Callable[[BoundSymbol], VjpRule | None]


@trace_pass
def grad_transform_on_trace(
    trace: Trace,
    *,
    rule_of: RuleOf | None = None,
    wanted: Collection[str] | None = None,
    runs_whole: Callable[[BoundSymbol], bool] | None = None,
    constant: Collection[str] = (),
    reserved: Collection[str] = (),
) -> Trace:
    """Return the joint program: outputs and gradients, from the inputs and the cotangents of the outputs.

    Args:
        trace: the program. Calls tagged ``CONSTANT_FOR_DERIVATIVE`` let no derivative through.
        rule_of: the rule that the executor of a call has for it, or ``None``. It goes before the symbol's own rule,
            and that before the symbol's decomposition.
        wanted: names of the inputs whose gradients are wanted; those with ``requires_grad`` if not given.
        runs_whole: whether some executor runs a composite as one operation, so that it is kept together in the forward
            program even where the pullbacks read what only its decomposition computes. By default: has an ``origin``.
        constant: names of outputs that take no cotangent.
        reserved: names that the joint program must not give to values of its own.

    Returns:
        A trace with the inputs of ``trace`` and one cotangent for each output that has a derivative (a value returned
        twice has two), in order, as inputs. Its output is ``(outputs, gradients)``, with one gradient per input of
        ``trace``: ``None`` for an input whose gradient is not wanted or is zero.

    Raises:
        MissingRuleError: a gradient must pass through a symbol that has no rule and no decomposition.
    """
    differentiator = _Differentiator(trace, rule_of, wanted)
    differentiator.names.reserve(reserved)
    differentiator.forward(trace.bound_symbols)
    results = [p for p in trace.outputs if p.name in differentiator.active and p.name not in constant]
    cotangents, gradients = differentiator.backward(trace, results)
    takes = tuple([p.name in differentiator.active and p.name not in constant for p in trace.outputs])
    return differentiator.finish(trace, cotangents, gradients, takes, runs_whole or has_origin)


def has_origin(bound: BoundSymbol) -> bool:
    """Whether a composite stands for one operation of the user's world, which an executor is likely to run whole."""
    return bound.symbol.origin is not None


def wanted_inputs(trace: Trace, wanted: Collection[str] | None = None) -> list[bool]:
    """Tell for each input whether its gradient is wanted and can exist."""
    if wanted is None:
        return [is_differentiable(p) and p.requires_grad for p in trace.inputs]  # type: ignore[attr-defined]
    return [is_differentiable(p) and p.name in wanted for p in trace.inputs]


@dataclass(slots=True)
class Step:
    """One entry of the tape: which pullback turns the cotangents of these outputs into those of these arguments."""

    bound: BoundSymbol
    outputs: list[str | None]
    pullback: Pullback
    arguments: tuple[Any, ...]


@dataclass(slots=True)
class Same:
    """An entry of the tape: a composite's output is the value that its decomposition computed."""

    outer: str
    inner: str


@dataclass(slots=True)
class _Cotangents:
    """Cotangents so far, by the name of the value; they are summed in the order in which they arrive.

    Args:
        of: those that something computes.
        zero: names of values that have one of zeros, beside what there is in ``of``.
        taken: names of the sums of those that were taken, by the name of the value.
    """

    of: dict[str, TensorProxy] = field(default_factory=dict)
    zero: set[str] = field(default_factory=set)
    taken: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, cotangent: TensorProxy, builder: Builder) -> None:
        before = self.of.get(name)
        if before is None:
            self.of[name] = cotangent
            return
        language = DEFAULT.language or builder.language
        if language is None:
            raise ThunderError("no language is active that could add two gradients")
        with builder.tagged(ACCUMULATES):
            self.of[name] = language.resolve("add")(before, cotangent)

    def take(self, name: str) -> TensorProxy | None:
        found = self.of.pop(name, None)
        if found is not None:
            self.taken[name] = found.name
        return found

    def gradient(self, value: TensorProxy, builder: Builder) -> TensorProxy | None:
        """Return what came together for an input, ``None`` if nothing did."""
        found = self.of.get(value.name)
        if found is not None or value.name not in self.zero:
            return found
        language = DEFAULT.language or builder.language
        zeros = language and language.find("zeros_like")
        return zeros(value) if zeros else None


class _Differentiator:
    """Runs rules forward over the program, then pullbacks backward over the tape."""

    def __init__(self, trace: Trace, rule_of: RuleOf | None, wanted: Collection[str] | None) -> None:
        self.names = trace.names()
        self.builder = Builder(self.names)
        self.rule_of = rule_of
        self.wanted = wanted_inputs(trace, wanted)
        self.active = {p.name for p, w in zip(trace.inputs, self.wanted, strict=True) if w}
        self.items: list[Item] = []
        self.tape: list[Step | Same] = []
        self.renamed: dict[str, Any] = {}
        self.traits = Traits()
        self.zeros: tuple[tuple[str, tuple[int, ...]], ...] = ()
        self.totals: tuple[tuple[str, str], ...] = ()

    # Forward ------------------------------------------------------------------------------------------------------

    def forward(self, bound_symbols: Any) -> None:
        for bound in bound_symbols:
            if not self.depends(bound):
                self.items.append(bound)
                continue
            rule = self.executors_rule(bound) or vjp_rule.get(bound.symbol)
            if rule is not None:
                self.apply(bound, rule)
            elif bound.symbol.decomposition is not None:
                self.decompose(bound)
            else:
                self.items.append(bound)
                self.record(bound, _missing(bound), bound.args)

    def executors_rule(self, bound: BoundSymbol) -> VjpRule | None:
        """Return the rule that the executor of a call has for it; what it asks of symbolic numbers are constraints."""
        if self.rule_of is None:
            return None
        self.builder.language = bound.symbol.language or DEFAULT.language
        with recording(self.builder):
            return self.rule_of(bound)

    def depends(self, bound: BoundSymbol) -> bool:
        """Whether a derivative flows through a call."""
        active = self.active
        return (
            any([p.name in active for p in bound.inputs])
            and not bound.has_tag(OpTags.CONSTANT_FOR_DERIVATIVE)
            and any(map(is_differentiable, bound.outputs))
        )

    def apply(self, bound: BoundSymbol, rule: VjpRule) -> None:
        """Run a symbol's rule in the place of the call; what it computes takes the names that the call had."""
        builder = self.builder
        builder.bound_symbols, builder.tags = [], bound.tags
        builder.language, builder.locate = bound.symbol.language or DEFAULT.language, lambda: bound.location
        asked = self.asked(bound)
        with recording(builder):
            output, pullback = rule(*asked.args, **asked.kwargs)
        self.items += self.described(bound, builder.bound_symbols)
        fresh = {id(p) for made in builder.bound_symbols for p in made.outputs}
        for new, old in zip(self.matched(output, bound), bound.outputs, strict=True):
            if new.name == old.name:
                continue
            if id(new) in fresh and new.name not in self.renamed:
                fresh.discard(id(new))
                new.name = old.name
            else:
                self.renamed[old.name] = new
        self.record(bound, pullback, _positional(rule, bound) if bound.kwargs else bound.args)

    def asked(self, bound: BoundSymbol) -> BoundSymbol:
        """Return a call whose tensors require grad where their gradient is wanted."""
        told: dict[str, Proxy] = {}
        for proxy in bound.inputs:
            if isinstance(proxy, TensorProxy) and proxy.requires_grad is not (proxy.name in self.active):
                other = proxy.renamed(proxy.name)
                assert isinstance(other, TensorProxy)
                other.requires_grad = not proxy.requires_grad
                told[proxy.name] = other
        return bound.substituted(told) if told else bound

    def described(self, bound: BoundSymbol, made: list[BoundSymbol]) -> list[BoundSymbol]:
        """Return the calls that a rule made, those of which nothing is known with what the composite's parts say."""
        if bound.symbol.is_prim or not any([self.traits.of(b) is Trait.UNKNOWN for b in made]):
            return made
        tag = frozenset({self.traits.parts_of(bound)})
        return [b.replace(tags=b.tags | tag) if self.traits.of(b) is Trait.UNKNOWN else b for b in made]

    def matched(self, output: Any, bound: BoundSymbol) -> list[Proxy]:
        """Return the proxies of what a rule or decomposition returned, as many as the call has outputs."""
        proxies = flat_proxies(output)
        if len(proxies) != len(bound.outputs):
            raise ShapeError(
                f"the rule or decomposition of {bound.symbol.id} returns {len(proxies)} values "
                f"where the operation has {len(bound.outputs)}"
            )
        return proxies

    def record(self, bound: BoundSymbol, pullback: Pullback, arguments: tuple[Any, ...]) -> None:
        outputs = tensor_slots(bound.output)
        if isinstance(pullback, Through):
            outputs = [p if flows else None for p, flows in zip(outputs, pullback.outputs, strict=True)]
        self.active.update([p.name for p in outputs if p is not None and p.dtype.is_inexact])
        self.tape.append(Step(bound, [None if p is None else p.name for p in outputs], pullback, arguments))

    def decompose(self, bound: BoundSymbol) -> None:
        """Differentiate a composite through its decomposition; the group remembers both forms of it."""
        parts, output = bound.decomposed(self.names)
        around, self.items = self.items, []
        self.forward(parts)
        inner = self.matched(output, bound)
        around.append(Group(bound, self.items, list(zip(inner, bound.outputs, strict=True))))
        self.items = around
        for new, old in zip(inner, bound.outputs, strict=True):
            if new.name in self.active and new.name != old.name:
                self.active.add(old.name)
                self.tape.append(Same(old.name, new.name))

    # Backward -----------------------------------------------------------------------------------------------------

    def backward(self, trace: Trace, results: Sequence[Proxy]) -> tuple[list[TensorProxy], list[Any]]:
        """Run the tape backward; return the cotangents, as inputs, and the gradients."""
        builder = self.builder
        builder.bound_symbols, builder.tags, builder.locate = [], frozenset(), None
        builder.language = DEFAULT.language
        sums, cotangents = _Cotangents(), []
        with recording(builder):
            for out in results:
                assert isinstance(out, TensorProxy)
                cotangent = out.like(requires_grad=False)
                cotangent.name = self.names.take(f"d{out.name}")
                cotangents.append(cotangent)
                sums.add(out.name, cotangent, builder)
            for step in reversed(self.tape):
                if isinstance(step, Same):
                    known = sums.take(step.outer)
                    if known is not None:
                        sums.add(step.inner, known, builder)
                    if step.outer in sums.zero:
                        sums.zero.add(step.inner)
                else:
                    self.pull(step, sums)
            builder.language, builder.locate = DEFAULT.language, None
            gradients = [
                sums.gradient(p, builder) if w and isinstance(p, TensorProxy) else None
                for p, w in zip(trace.inputs, self.wanted, strict=True)
            ]
        self.zeros = self.reached([p.name for p in trace.inputs if p.name in sums.zero], results)
        taken = [(c.name, sums.taken.get(out.name, c.name)) for c, out in zip(cotangents, results, strict=True)]
        self.totals = tuple([(own, total) for own, total in taken if own != total])
        return cotangents, gradients

    def reached(self, inputs: list[str], results: Sequence[Proxy]) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Return for each of these inputs the places of the results from which the tape leads to it."""
        places: dict[str, list[int]] = {name: [] for name in inputs}
        for i, out in enumerate(results if inputs else ()):
            names = {out.name}
            for step in reversed(self.tape):
                if isinstance(step, Same):
                    names.update([step.inner] if step.outer in names else [])
                elif any([name in names for name in step.outputs]):
                    names.update([p.name for p in flat_proxies(step.arguments)])
            for name in inputs:
                if name in names:
                    places[name].append(i)
        return tuple([(name, tuple(found)) for name, found in places.items()])

    def pull(self, step: Step, sums: _Cotangents) -> None:
        """Run one pullback and add what it returns to the cotangents of the arguments."""
        incoming = [sums.take(name) if name is not None else None for name in step.outputs]
        if any([name in sums.zero for name in step.outputs]):
            sums.zero.update([p.name for p in flat_proxies(step.arguments) if p.name in self.active])
        if all([c is None for c in incoming]):
            return
        builder, bound = self.builder, step.bound
        builder.language, builder.locate = bound.symbol.language or DEFAULT.language, lambda: bound.location
        gradients = step.pullback(*incoming)
        if not isinstance(gradients, (tuple, list)):
            gradients = (gradients,)
        for argument, gradient in zip(step.arguments, gradients, strict=False):
            if gradient is None:
                continue
            if isinstance(argument, Proxy) or gradient is ZERO:
                for proxy in flat_proxies(argument):
                    self.add(proxy, gradient, bound, sums)
            elif isinstance(argument, (tuple, list)):
                for item, part in zip(argument, gradient, strict=True):
                    if part is not None and isinstance(item, Proxy):
                        self.add(item, part, bound, sums)

    def add(self, argument: Proxy, gradient: Any, bound: BoundSymbol, sums: _Cotangents) -> None:
        if argument.name not in self.active or not isinstance(argument, TensorProxy):
            return
        if gradient is ZERO:
            sums.zero.add(argument.name)
            return
        if gradient.dtype is not argument.dtype or not _same_shape(gradient, argument):
            real = DEFAULT.language and DEFAULT.language.find("real")
            if gradient.dtype.is_complex and not argument.dtype.is_complex and real and _same_shape(gradient, argument):
                gradient = real(gradient)
            else:
                raise ShapeError(
                    f"the vjp rule of {bound.symbol.id} gives {gradient.type_string} as the gradient of an argument "
                    f"that is {argument.type_string}"
                )
        sums.add(argument.name, gradient, self.builder)

    # Together -----------------------------------------------------------------------------------------------------

    def finish(
        self,
        trace: Trace,
        cotangents: list[TensorProxy],
        gradients: list[Any],
        takes: tuple[bool, ...],
        runs_whole: Callable[..., bool],
    ) -> Trace:
        """Decide for each composite which form stays, drop what nothing reads, and put the joint program together."""
        backward = self.builder.bound_symbols
        output = (trace.output, tuple(gradients))
        kept = settle(self.items, backward, flat_proxies(output), self.renamed, runs_whole, self.traits)
        mapping = _resolved(self.renamed)
        if mapping:
            kept = [bound.substituted(mapping) for bound in kept]
            output = substitute(output, mapping)
        tag = TakesCotangents(takes, self.zeros, self.totals)
        return Trace(
            f"{trace.name}_joint",
            (*trace.inputs, *cotangents),
            tuple(kept),
            output,
            (*trace.constraints, *self.builder.constraints),
            frozenset([t for t in trace.tags if not isinstance(t, TakesCotangents)] + [tag]),
        )


def _resolved(renamed: dict[str, Any]) -> dict[str, Any]:
    """Follow chains of renamings to their ends."""
    mapping = {}
    for name, proxy in renamed.items():
        while proxy.name in renamed and renamed[proxy.name] is not proxy:
            proxy = renamed[proxy.name]
        mapping[name] = proxy
    return mapping


def _same_shape(a: TensorProxy, b: TensorProxy) -> bool:
    if len(a.shape) != len(b.shape):
        return False
    return all(isinstance(x, Proxy) or isinstance(y, Proxy) or x == y for x, y in zip(a.shape, b.shape, strict=True))


def _missing(bound: BoundSymbol) -> Pullback:
    def pullback(*cotangents: Any) -> Any:
        symbol: Symbol = bound.symbol
        place = f" (called at {bound.location})" if bound.location is not None else ""
        raise MissingRuleError(
            f"{symbol.id} has no vjp rule, and a gradient must pass through it{place}; "
            f"add one with @vjp_rule({symbol.id}), or detach its result"
        )

    return pullback


def _positional(rule: VjpRule, bound: BoundSymbol) -> tuple[Any, ...]:
    """Return the arguments of a call in the order of the rule's parameters, which is that of its gradients."""
    if not any(isinstance(p, TensorProxy) for p in flat_proxies(bound.kwargs)):
        return bound.args
    try:
        called = inspect.signature(rule).bind(*bound.args, **bound.kwargs)
    except ValueError:  # a callable without a signature takes gradients of positional arguments only
        return bound.args
    called.apply_defaults()
    return (*called.args, *called.kwargs.values())
