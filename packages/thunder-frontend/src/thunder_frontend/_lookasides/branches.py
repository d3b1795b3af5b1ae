"""``torch.cond`` and ``torch.while_loop``: functions recorded as programs of their own, of which the run picks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch.utils import _pytree as pytree

from thunder_autograd import Traits, differentiable_outputs, grad_transform_on_trace, gradient_trace
from thunder_executors import transform_for_execution
from thunder_frontend._acquiring import Acquiring
from thunder_guards.errors import AcquisitionError
from thunder_ir import (
    BoundSymbol,
    Builder,
    Names,
    OpTags,
    Proxy,
    Symbol,
    TensorProxy,
    Trace,
    recording,
)
from thunder_ir.passes import depends_on_the_run, read_from_outside, renamed
from thunder_prims import tidy
from thunder_torch.opaque import drawing_call, opaque_call
from thunder_tracing.derivatives.custom_functions import CustomRule, rule_for_higher_derivatives
from thunder_tracing.derivatives.derivative_levels import SAME
from thunder_tracing.tensors.levels import Level
from thunder_tracing.tensors.overwrites import zeros_like
from thunder_tracing.tensors.traced_tensor import TracedTensor

T = torch.Tensor


@dataclass(slots=True, eq=False)
class BranchLevel(Level):
    """A function that is recorded apart."""

    def check_write(self, target: TracedTensor, held: TensorProxy, value: TensorProxy, by_operator: bool) -> None:
        """Refuse writes to what is outside: the run may not come here."""
        if not self.made(target):
            raise AcquisitionError(
                "a function given to torch.cond or torch.while_loop writes to a tensor from outside of it; return the "
                "new value instead"
            )


class Part:
    """A function recorded apart; no dataclass, as programs that hold it name it rather than spell it out.

    Args:
        trace: its program.
        structure: of the pytree that it returns.
    """

    def __init__(self, trace: Trace, structure: Any = None) -> None:
        self.trace, self.structure = trace, structure

    @cached_property
    def run(self) -> Callable[..., Any]:
        """What runs it."""
        with torch.no_grad():
            return transform_for_execution(tidy(self.trace)).python_callable()

    def reading(self, inputs: Sequence[Any]) -> Part:
        """Return the part as a function of ``inputs``, of which it need not read all."""
        return Part(self.trace.replace(inputs=tuple(inputs)), self.structure)


def _fresh(results: Sequence[T], values: Sequence[Any]) -> tuple[T, ...]:
    """Return results that are no arguments."""
    return tuple([r.clone() if any([r is v for v in values]) else r for r in results])


class Choice:
    """Runs one of two programs.

    Args:
        first: runs if the first argument is true.
        second: runs if it is not.
    """

    __name__ = "cond"

    def __init__(self, first: Part, second: Part) -> None:
        self.first, self.second = first, second

    def __call__(self, predicate: object, *values: Any) -> Any:
        return _fresh((self.first if predicate else self.second).run(*values), values)

    def metadata(self, values: Sequence[Any]) -> Any:
        """Return proxies for what it returns."""
        return tuple([p.like() for p in self.first.trace.outputs])  # type: ignore[attr-defined]


class Loop:
    """Runs a program again and again, on what it returned.

    Args:
        condition: tells whether to go on.
        body: takes what is carried on, and returns it.
        carried: how many values are.
    """

    __name__ = "while_loop"

    def __init__(self, condition: Part, body: Part, carried: int) -> None:
        self.condition, self.body, self.carried = condition, body, carried

    def __call__(self, *values: Any) -> Any:
        carried, rest = tuple(values[: self.carried]), values[self.carried :]
        while self.condition.run(*carried, *rest)[0]:
            carried = self.body.run(*carried, *rest)
        return _fresh(carried, values)

    def metadata(self, values: Sequence[Any]) -> Any:
        """Return proxies for what it returns."""
        return tuple([p.like() for p in self.body.trace.outputs])  # type: ignore[attr-defined]


class Branches:
    """Records functions of which the run picks.

    Args:
        calls: the acquisition.
    """

    def __init__(self, calls: Acquiring) -> None:
        self._calls, self._levels = calls, calls.levels

    def cond(
        self, predicate: T, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Sequence[Any]
    ) -> Any:
        """Do what ``torch.cond`` does for a predicate that is a tensor."""
        calls = self._calls
        if calls.value(predicate).numel != 1:
            raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {predicate}.")
        values, leaves = self._operands(operands)
        parts = [self._recorded(f, operands, leaves, "a branch of torch.cond") for f in (true_fn, false_fn)]
        if parts[0].structure != parts[1].structure:
            raise AcquisitionError(
                f"the branches of torch.cond return {parts[0].structure} and {parts[1].structure}; they must return "
                "the same structure"
            )
        pairs = zip(*[p.trace.outputs for p in parts], strict=True)
        for one, other in pairs:
            if _kind(one) != _kind(other):
                raise AcquisitionError(
                    f"the branches of torch.cond return {one.type_string} and {other.type_string}; they must return "
                    "tensors of the same shape, dtype and device"
                )
        read = _free(parts)
        with torch._C.DisableTorchFunction():
            made = self._choice(*[p.reading(read) for p in parts])(calls.value(predicate), *read)
            self._settle(made, read, parts)
            return pytree.tree_unflatten([calls.wrap(p) for p in made], parts[0].structure)

    def while_loop(
        self,
        cond_fn: Callable[..., Any],
        body_fn: Callable[..., Any],
        carried: Sequence[Any],
        additional: Sequence[Any],
    ) -> Any:
        """Do what ``torch.while_loop`` does."""
        calls = self._calls
        values, leaves = self._operands(carried)
        condition = self._recorded(cond_fn, carried, leaves, "the condition of torch.while_loop", separate=True)
        body = self._recorded(body_fn, carried, leaves, "the body of torch.while_loop", separate=True)
        if [_kind(p) for p in body.trace.outputs] != [_kind(v) for v in values]:
            raise AcquisitionError(
                "the body of torch.while_loop must return tensors of the shapes, dtypes and devices that it is given: "
                f"{[v.type_string for v in values]}, not {[p.type_string for p in body.trace.outputs]}"
            )
        inputs = body.trace.inputs
        own = [p.name for p in condition.trace.inputs]
        condition = Part(renamed(condition.trace, dict(zip(own, inputs, strict=True))))
        read = _free([condition, body])
        if (
            any([p.requires_grad for p in (*values, *read) if isinstance(p, TensorProxy)])
            and torch.is_grad_enabled()
            and _has_constants(body.trace)
        ):
            raise AcquisitionError(
                "a torch.while_loop with gradients whose body detaches tensors, or computes without gradients, is not "
                "supported inside of a compiled program"
            )
        parts = [p.reading((*inputs, *read)) for p in (condition, body)]
        with torch._C.DisableTorchFunction(), calls.builder.tagged(*_failing(parts)):
            loop = Loop(parts[0], parts[1], len(values))
            made = (drawing_call if _draws(parts) else opaque_call)(loop, *values, *read)
            self._settle(made, [*values, *read], [body])
            return pytree.tree_unflatten([calls.wrap(p) for p in made], body.structure)

    # --- parts ------------------------------------------------------------------------------------------------------

    def _operands(self, operands: Sequence[Any]) -> tuple[list[TensorProxy], list[Any]]:
        leaves = pytree.tree_leaves(operands)
        if any([not isinstance(leaf, T) for leaf in leaves]):
            raise AcquisitionError(
                "torch.cond and torch.while_loop with a choice that only the run tells take tensors, and containers "
                "of them; close over what is no tensor"
            )
        return [self._calls.value(leaf) for leaf in leaves], leaves

    def _recorded(
        self,
        function: Callable[..., Any],
        operands: Sequence[Any],
        leaves: Sequence[T],
        what: str,
        separate: bool = False,
    ) -> Part:
        """Call a function with stand-ins for tensors, and take what is recorded out of the program.

        Args:
            function: the function.
            operands: pytrees of tensors.
            leaves: the tensors in them.
            what: it is, for errors.
            separate: whether the operands become inputs of the part; what they hold now is read if not.
        """
        calls, mutations = self._calls, self._calls.external.mutations
        before, level = mutations.version, self._levels.enter(BranchLevel)
        try:
            with torch._C.DisableTorchFunction():
                stand_ins = [self._stand_in(calls.value(leaf)) for leaf in leaves]
            result = calls.interpreted(function)(*pytree.tree_unflatten(stand_ins, pytree.tree_structure(operands)))
            found, structure = pytree.tree_flatten(result)
            if mutations.version != before:
                raise AcquisitionError(f"{what} changes objects outside of it, which the run may not come to")
            if any([s._memory.version for s in stand_ins]):
                raise AcquisitionError(f"{what} writes to its arguments; write to a clone() of them")
            if any([not isinstance(f, T) for f in found]):
                raise AcquisitionError(f"{what} must return tensors, not {type(result).__name__}")
            with torch._C.DisableTorchFunction():
                outputs = tuple([calls.value(f) for f in found])
        finally:
            inside = self._levels.leave(level)
            self._levels.rewrite(len(self._levels.recorded) - len(inside), [])
            self._levels.gone.update([p.name for b in inside for p in b.outputs])
        inputs: tuple[Any, ...] = ()
        if separate:
            inputs = tuple([s._proxy for s in stand_ins])
            names = {p.name for p in inputs}
            inside = [b for b in inside if b.symbol is not SAME or b.output.name not in names]
        self._refuse_custom(inside)
        return Part(Trace("part", inputs, tuple(inside), outputs), structure)

    def _stand_in(self, value: TensorProxy) -> Any:
        builder = self._calls.builder
        made = value.like()
        made.strides, made.name = value.strides, builder.names.fresh("t")
        builder.bound_symbols.append(BoundSymbol(SAME, (value,), {}, made))
        return self._calls.wrap(made)

    def _refuse_custom(self, inside: Sequence[BoundSymbol]) -> None:
        rules = self._calls.rules
        for bound in inside:
            if isinstance(rules.get(bound.symbol), CustomRule):
                raise AcquisitionError(
                    f"{bound.symbol.name}, a torch.autograd.Function, within a function given to torch.cond or "
                    "torch.while_loop is not supported inside of a compiled program"
                )

    def _settle(self, made: Sequence[TensorProxy], read: Sequence[Any], parts: Sequence[Part]) -> None:
        flows = torch.is_grad_enabled() and any([getattr(p, "requires_grad", False) for p in read])
        told = zip(made, *[p.trace.outputs for p in parts], strict=True)
        for proxy, *outputs in told:
            proxy.requires_grad = flows and any([o.requires_grad for o in outputs]) and proxy.dtype.is_inexact

    # --- the derivative of a choice ---------------------------------------------------------------------------------

    def _choice(self, first: Part, second: Part) -> Symbol:
        """Return the symbol of a choice, whose derivative is the choice of the derivatives."""
        runs = drawing_call if _draws([first, second]) else opaque_call
        choice = Choice(first, second)

        def rule(predicate: object, *values: Any) -> Any:
            made = symbol(predicate, *values)

            def pullback(*cotangents: Any) -> tuple[Any, ...]:
                given = [zeros_like(o) if c is None else c for c, o in zip(cotangents, made, strict=True)]
                wanted = [i for i, v in enumerate(values) if isinstance(v, TensorProxy) and v.dtype.is_inexact]
                parts = [self._gradients(p, wanted, made) for p in (first, second)]
                found = iter(self._choice(*parts)(predicate, *values, *given))
                return (None, *[next(found) if i in wanted else None for i in range(len(values))])

            return made, pullback

        symbol = Symbol(
            "cond",
            "control_flow",
            decomposition=lambda *args: runs(choice, *args),
            tags=_failing([first, second]),
            language=self._calls.builder.language,
        )
        self._calls.rules[symbol] = rule
        return symbol

    def _gradients(self, part: Part, wanted: Sequence[int], made: Sequence[TensorProxy]) -> Part:
        """Return the program of the gradients of a part, from its inputs and cotangents for all of its outputs."""
        trace, rules = part.trace, self._calls.rules
        names = {trace.inputs[i].name for i in wanted}
        joint = grad_transform_on_trace(
            trace, rule_of=lambda bound: rule_for_higher_derivatives(rules, bound), wanted=names
        )
        pulled = gradient_trace(joint)
        takes = iter(joint.inputs[len(trace.inputs) :])
        cotangents: list[Any] = []
        for flows, output in zip(differentiable_outputs(joint), made, strict=True):
            unread = output.like(requires_grad=False)
            unread.name = f"unread_{len(cotangents)}"
            cotangents.append(next(takes) if flows else unread)
        builder = Builder(names_in(joint, cotangents), self._calls.builder.language)
        found = [joint.output[1][i] for i in wanted]
        with recording(builder):
            inputs: Any = trace.inputs
            pairs = zip(wanted, found, strict=True)
            results = tuple([zeros_like(inputs[i]) if g is None else g for i, g in pairs])
        return Part(
            pulled.replace(
                inputs=(*trace.inputs, *cotangents),
                bound_symbols=(*pulled.bound_symbols, *builder.bound_symbols),
                output=results,
            )
        )


def names_in(trace: Trace, others: Sequence[Proxy]) -> Names:
    """Return an allocator that knows the names in a trace, and others."""
    names = trace.names()
    names.reserve([p.name for p in others])
    return names


def _kind(proxy: Any) -> Any:
    return (tuple(proxy.shape), proxy.dtype, proxy.device)


def _free(parts: Sequence[Part]) -> list[Proxy]:
    """Return the values that parts read and neither define nor take."""
    found: dict[str, Proxy] = {}
    for part in parts:
        found |= read_from_outside(part.trace.bound_symbols, part.trace.outputs)
    given = {p.name for part in parts for p in part.trace.inputs}
    return [p for name, p in found.items() if name not in given]


def _draws(parts: Sequence[Part]) -> bool:
    return any([Traits().draws(b) for part in parts for b in part.trace.bound_symbols])


def _failing(parts: Sequence[Part]) -> frozenset[OpTags]:
    """Return the tag of what raises for some values, if a call in the parts does."""
    traits = Traits()
    fails = [traits.may_fail(b) or depends_on_the_run(b) for part in parts for b in part.trace.bound_symbols]
    return frozenset({OpTags.MAY_FAIL} if any(fails) else ())


def _has_constants(trace: Trace) -> bool:
    """Whether a derivative stops somewhere in a program."""
    return any(
        b.has_tag(OpTags.CONSTANT_FOR_DERIVATIVE) and any([getattr(p, "requires_grad", False) for p in b.inputs])
        for b in trace.bound_symbols
    )
