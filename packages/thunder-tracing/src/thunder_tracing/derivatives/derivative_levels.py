"""``torch.func``'s derivatives inside of a program: levels of ``grad`` and ``vjp``, of ``jvp``, and dual tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.autograd import forward_ad

from thunder_autograd import Pusher
from thunder_guards.errors import AcquisitionError
from thunder_ir import BoundSymbol, Builder, OpTags, Proxy, Symbol, TensorProxy, bind, recording
from thunder_torch import call
from thunder_tracing.derivatives.custom_functions import CustomRule, record_again
from thunder_tracing.tensors.calls import Calls
from thunder_tracing.tensors.levels import MARK, Level, settle_gradients
from thunder_tracing.tensors.overwrites import RULES
from thunder_tracing.tensors.storage import View, own_storage, share_storage
from thunder_tracing.tensors.traced_tensor import TracedTensor

T = torch.Tensor

SAME = Symbol("variable", "functorch", decomposition=lambda value: value)
"""``variable(value)``: the value under another name, with respect to which derivatives are taken."""

CONSTANT = frozenset({OpTags.CONSTANT_FOR_DERIVATIVE})


@dataclass(slots=True, eq=False)
class GradLevel(Level):
    """A call of a function whose gradients are taken.

    Args:
        wrapped: by identity, what was wrapped for it, and what it wraps.
    """

    wrapped: dict[int, tuple[TracedTensor, TracedTensor]] = field(default_factory=dict)

    def check_write(self, target: TracedTensor, held: TensorProxy, value: TensorProxy, by_operator: bool) -> None:
        """Refuse, as PyTorch does, writes to what the function was not given."""
        if by_operator or self.levels.stack[-1] is not self or self.made(target):
            return
        here = target
        while id(here) not in self.wrapped:
            if here._viewed_as is None:
                raise RuntimeError(
                    "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place "
                    "operation that would mutate a captured Tensor. This is not supported; please rewrite the function "
                    "being transformed to explicitly accept the mutated Tensor(s) as inputs."
                )
            here = here._viewed_as.parent


@dataclass(slots=True, eq=False)
class DualLevel(Level):
    """A level of forward derivatives.

    Args:
        pusher: knows the tangents.
        given: names of the values whose tangents were given.
    """

    pusher: Pusher | None = None
    given: set[str] = field(default_factory=set)


class LinearLevel(Level):
    """What is linearized."""


class Derivatives:
    """What PyTorch's functions for levels of derivatives do while a program is acquired.

    Args:
        calls: the acquisition.
    """

    def __init__(self, calls: Calls) -> None:
        self._calls, self._levels = calls, calls.levels

    def _variable(self, value: TensorProxy, requires_grad: bool) -> TensorProxy:
        made = value.like(requires_grad=requires_grad)
        made.strides = value.strides
        bind(self._calls.builder, SAME, (value,), {}, made)
        return made

    # --- reverse mode -----------------------------------------------------------------------------------------------

    def enter_grad(self) -> int:
        """Begin a level; return its number."""
        return self._levels.enter(GradLevel).number

    def leave_grad(self) -> None:
        """End the innermost level: what was recorded in it requires grad as what is around it says."""
        inside = self._levels.leave(self._levels.innermost(GradLevel))
        before = len(self._levels.recorded) - len(inside)
        settle_gradients(inside, self._levels.requiring_grad(before), keep=True)

    def wrap(self, tensor: T, number: int) -> TracedTensor:
        """Return another tensor of the same memory."""
        calls = self._calls
        with torch._C.DisableTorchFunction():
            outer = calls.traced(tensor)
            value = calls.value(outer)
            made: TracedTensor = calls.new_traced(value)
            share_storage(made, View(outer, T.view, (tuple(value.shape),), {}, None))
            level = self._levels.numbered(number)
            if isinstance(level, GradLevel):
                level.wrapped[id(made)] = (made, outer)
            return made

    def differentiable(self, tensor: T) -> T:
        """Make a tensor that was wrapped one with respect to which the level differentiates."""
        calls = self._calls
        level = self._levels.innermost(GradLevel)
        if level is None or id(tensor) not in level.wrapped:
            return tensor.requires_grad_()
        with torch._C.DisableTorchFunction():
            traced: TracedTensor = level.wrapped[id(tensor)][0]
            value = calls.value(traced)
            if not value.dtype.is_inexact:
                raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")
            traced._memory.views = [v for v in traced._memory.views if v is not traced]
            traced._proxy = traced._first = self._variable(value, True)
            own_storage(traced)
            traced._variable = True
        return tensor

    def unwrap(self, tensor: T, number: int) -> Any:
        """Return a result of a level as what is around it sees it."""
        calls, level = self._calls, self._levels.numbered(number)
        with torch._C.DisableTorchFunction():
            traced = calls.traced(tensor)
            if isinstance(level, GradLevel) and id(traced) in level.wrapped:
                traced = level.wrapped[id(traced)][1]
            if level.tracked or not calls.value(traced).requires_grad:
                return traced
            return calls.wrap(calls.on_values(T.detach, (calls.value(traced),), {}))

    def gradients(
        self,
        outputs: Sequence[T],
        inputs: Sequence[T],
        grad_outputs: Sequence[T] | None = None,
        retain_graph: bool = False,
        create_graph: bool = True,
    ) -> tuple[Any, ...]:
        """Return the gradients of outputs of a level with respect to its variables: zeros where there are none."""
        return self._calls.inner_gradients(
            outputs, inputs, grad_outputs, create_graph=create_graph, allow_unused=True, materialize_grads=True
        )

    # --- forward mode -----------------------------------------------------------------------------------------------

    def enter_dual(self) -> int:
        """Begin a level; return its number."""
        level = self._levels.enter(DualLevel)
        level.pusher = Pusher(Builder(self._calls.builder.names), self._rule_of)
        return level.number

    def leave_dual(self) -> None:
        """End the innermost level."""
        self._levels.leave(self._levels.innermost(DualLevel))

    def make_dual(self, tensor: T, tangent: T, *, level: int | None = None) -> TracedTensor:
        """Do what ``torch.autograd.forward_ad.make_dual`` does."""
        calls, here = self._calls, self._levels.innermost(DualLevel)
        if here is None:
            raise RuntimeError(
                "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() "
                "first."
            )
        with torch._C.DisableTorchFunction():
            value, along = calls.value(tensor), calls.value(tangent)
            for name, proxy in (("primal", value), ("tangent", along)):
                if not proxy.dtype.is_inexact:
                    raise ValueError(
                        f"Expected {name} to be floating point or complex, but got: {calls.traced(tensor).dtype}"
                    )
            if tuple(value.shape) != tuple(along.shape):
                raise RuntimeError(
                    "Trying to set a forward gradient that has a different size than that of the original Tensor, "
                    f"this is not supported. Tensor is of size {list(value.shape)} while the given forward gradient "
                    f"is of size {list(along.shape)}."
                )
            made = self._variable(value, value.requires_grad)
            here.given.add(made.name)
            here.pusher.tangent[made.name] = along
            dual: TracedTensor = calls.wrap(made)
            dual._variable = True
            return dual

    def unpack_dual(self, tensor: T, *, level: int | None = None) -> forward_ad.UnpackedDualTensor:
        """Do what ``torch.autograd.forward_ad.unpack_dual`` does."""
        calls, here = self._calls, self._levels.innermost(DualLevel)
        if here is None:
            return forward_ad.UnpackedDualTensor(tensor, None)
        with torch._C.DisableTorchFunction():
            value = calls.value(tensor)
            self._push(here)
            tangent = here.pusher.tangent.get(value.name)
            return forward_ad.UnpackedDualTensor(tensor, None if tangent is None else calls.wrap(tangent))

    def begin_linear(self) -> None:
        """Begin what is linearized, and within it a level of forward derivatives."""
        self._levels.enter(LinearLevel)
        self.enter_dual()

    def unknown_tangent(self, primal: T) -> TracedTensor:
        """Return what stands for the tangent of ``primal`` while a function is linearized."""
        calls = self._calls
        with torch._C.DisableTorchFunction():
            value = calls.value(primal)
            tangent = value.like(requires_grad=True)
            tangent.strides, tangent.name = value.strides, calls.builder.names.fresh("u")
            made: TracedTensor = calls.wrap(tangent)
            return made

    def end_linear(self, tangents: Sequence[T], results: Sequence[T]) -> Callable[[Sequence[T]], list[Any]]:
        """End what is linearized; return what pushes tangents through it.

        Args:
            tangents: what :func:`unknown_tangent` returned.
            results: what they became.
        """
        calls = self._calls
        with torch._C.DisableTorchFunction():
            known = {calls.value(t).name for t in tangents}
            found = [calls.value(r) for r in results]
            inside = self._levels.leave(self._levels.innermost(LinearLevel))
            now, later = [], []
            for bound in inside:
                if any([p.name in known for p in bound.inputs]):
                    known.update([p.name for p in bound.outputs])
                    later.append(bound)
                else:
                    now.append(bound)
            self._levels.rewrite(len(self._levels.recorded) - len(inside), now)
            self._levels.gone.update(known)
            read = {p.name: p for b in later for p in b.inputs if isinstance(p, TensorProxy) and p.name not in known}

        def push(given: Sequence[T]) -> list[Any]:
            with torch._C.DisableTorchFunction():
                values = {calls.traced(t)._proxy.name: calls.value(g) for t, g in zip(tangents, given, strict=True)}
                count = len(self._levels.recorded)
                if not self._levels.stack:  # PyTorch takes what does not depend on tangents for constants
                    values |= {p.name: call(torch.detach, (p,), {}) for p in read.values() if p.requires_grad}
                record_again(later, values)
                settle_gradients(self._levels.recorded[count:], self._levels.requiring_grad(count))
                return [calls.wrap(values.get(f.name, f)) for f in found]

        return push

    def _push(self, level: DualLevel) -> None:
        """Push the tangents through what was recorded since the last time: these calls compute both from now on."""
        pusher, start = level.pusher, self._levels.start(level)
        assert pusher is not None
        inside = self._levels.recorded[start:]
        made: list[BoundSymbol] = []
        requiring = self._levels.requiring_grad(start)
        with recording(pusher.builder):
            for bound in inside:
                made += [bound] if bound.symbol is MARK else self._pushed(level, pusher, bound, requiring)
        self._levels.rewrite(start - 1, [*made, level.mark])

    def _pushed(
        self, level: DualLevel, pusher: Pusher, bound: BoundSymbol, requiring: dict[str, bool]
    ) -> list[BoundSymbol]:
        requiring.update([(p.name, p.requires_grad) for p in bound.outputs if isinstance(p, TensorProxy)])
        if any([p.name in level.given for p in bound.outputs]):
            return [bound]
        unseen = bound.tags & CONSTANT  # reverse mode stops at what is computed under torch.no_grad(), this one not
        pusher.builder.bound_symbols = []
        pusher.run([bound.replace(tags=bound.tags - CONSTANT) if unseen else bound])
        made = pusher.builder.bound_symbols
        if unseen:
            made = [b.replace(tags=b.tags | unseen) for b in made]
        fresh = {p.name for b in made for p in b.outputs}
        old = bound.outputs
        if fresh.issuperset([p.name for p in old]):
            return made
        new = [pusher.value.pop(p.name, None) for p in old]
        names = {p.name for p in new if isinstance(p, Proxy) and p.name in fresh}
        grads = [p.requires_grad for p in old if isinstance(p, TensorProxy)]
        if len(names) == len(old):  # what computes both takes the names of the call
            back = {p.name: o for p, o in zip(new, old, strict=True)}
            made = [b.substituted(back, outputs=True) for b in made]
        else:
            made = [bound, *made]
        settle_gradients(made, requiring)
        for proxy, requires_grad in zip([p for p in old if isinstance(p, TensorProxy)], grads, strict=True):
            proxy.requires_grad = requiring[proxy.name] = requires_grad
        return made

    def _rule_of(self, bound: BoundSymbol) -> Any:
        if bound.symbol in RULES:  # written(old, new)
            return lambda old, new, along_old, along_new: (new, along_new)
        if isinstance(self._calls.rules.get(bound.symbol), CustomRule):
            raise AcquisitionError(
                f"{bound.symbol.name}, a torch.autograd.Function, has no forward derivative inside of a compiled "
                "program; use torch.func.vjp or torch.func.jacrev, or compile without it"
            )
        return None
