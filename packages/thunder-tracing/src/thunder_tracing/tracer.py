"""The tracer: all that is known while a program is recorded from torch functions that are called on traced tensors."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch.overrides import resolve_name

from thunder_guards import SameObjectGuard, ToldGuard, metadata_of
from thunder_guards.errors import AcquisitionError
from thunder_guards.kinds import is_array, is_numpy_number
from thunder_guards.program import OWN_NAMES, Effect, Input
from thunder_guards.sources import Source, held
from thunder_guards.symbolic import NumberInput, make_symbolic
from thunder_ir import BoundSymbol, Builder, NumberProxy, OpTags, Symbol, TensorProxy, Trace, is_unknown, number_proxy
from thunder_ir.passes import depends_on_the_run, keep_failures, may_fail
from thunder_torch import opaque_call, torch_language
from thunder_torch.convert import proxy_of
from thunder_torch.indexing import fits
from thunder_torch.kernels import lacks_kernel
from thunder_torch.unknown_sizes import has_unknown_sizes
from thunder_tracing.bailouts import TAGS, Check
from thunder_tracing.derivatives.batch_levels import Batches
from thunder_tracing.derivatives.custom_functions import CustomFunctions
from thunder_tracing.derivatives.external_hooks import refuse_observed
from thunder_tracing.derivatives.inner_backward import inner_backward
from thunder_tracing.derivatives.inner_gradients import autograd_grad, inner_gradients
from thunder_tracing.external_state import ExternalState
from thunder_tracing.outcome import Outcome
from thunder_tracing.tensors import (  # noqa: F401  (which file answers)
    _autograd_calls,
    _embeddings,
    _rewritten_calls,
    _strided_views,
    recorded_arrays,
)
from thunder_tracing.tensors.array_calls import as_tensor
from thunder_tracing.tensors.constants import Arrays
from thunder_tracing.tensors.histories import base_of, is_stale
from thunder_tracing.tensors.known_values import KnownValues, ValueSpecialisation
from thunder_tracing.tensors.layouts import Layouts
from thunder_tracing.tensors.leaves import Leaves, unseen_leaf
from thunder_tracing.tensors.levels import Levels
from thunder_tracing.tensors.overwrites import RULES, record_overwritten
from thunder_tracing.tensors.run_arrays import RunArray
from thunder_tracing.tensors.shadows import Shadows
from thunder_tracing.tensors.shared_memory import SharedMemory
from thunder_tracing.tensors.storage import own_storage
from thunder_tracing.tensors.tensor_classes import asked_for_functions, check_tensor
from thunder_tracing.tensors.traced_tensor import AcquisitionMode, TracedTensor
from thunder_tracing.tensors.write_calls import WriteCalls

T = torch.Tensor
ARGS = Source(None, "root", "args")
KWARGS = Source(None, "root", "kwargs")


class Tracer(WriteCalls):
    """Records a program, whose external tensors become inputs when they are met.

    Args:
        external: knows external state.
        written: storages to which the program writes and which several inputs share.
        replacements: which functions executors replace, by which operators.
        symbolic: whether numbers among the inputs are dynamic.
        allows_unknown: whether user code may get hold of numbers that only the run of the program tells.
        specialised_on: which values computed of integers among the inputs it may be specialised on; it guards those.
        of_the_run: numbers of arrays of NumPy's that it computes when it runs.
    """

    arrays: Arrays

    def __init__(
        self,
        external: ExternalState,
        written: Collection[int] = (),
        replacements: Mapping[Any, Symbol] = MappingProxyType({}),
        symbolic: bool = False,
        allows_unknown: bool = False,
        specialised_on: ValueSpecialisation = ValueSpecialisation.NONE,
        of_the_run: frozenset[int] = frozenset(),
    ) -> None:
        super().__init__(Builder(language=torch_language), replacements)
        self.builder.names.reserve(OWN_NAMES)
        self.external = external
        self.symbolic = symbolic
        self.allows_unknown = allows_unknown or symbolic
        self.specialised_on = specialised_on
        self.known = None if specialised_on is ValueSpecialisation.NONE else KnownValues(lambda: self.inputs)
        self.layouts = Layouts(self.producers, self.inputs, symbolic, self.ask)
        self.rules = dict(RULES)
        self.custom_functions = CustomFunctions(self)
        self.levels = Levels(self.builder, self.inputs, self._levels_changed)
        self.batches = Batches(self)
        self.shared = SharedMemory(self, written)
        self._unseen: Input | None = None
        self.leaves = Leaves(self)
        self.shadows = Shadows(external.require)
        self.arrays = Arrays(self, of_the_run)
        self.spent: set[str] = set()
        self.later: list[Effect] = []
        """What is done when a call has computed everything: what it prints, and what it warns of."""

    def __call__(self, function: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Do what a torch function does."""
        asked = asked_for_functions(args, kwargs)
        return self._answered(asked, function, args, kwargs) if asked else super().__call__(function, args, kwargs)

    def _answered(self, asked: list[Any], function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Do what the first of the objects makes of a function that answers for it."""
        types: tuple[Any, ...] = tuple([*map(type, asked)])
        for cls in types:
            with AcquisitionMode(self):  # which is not in force while it handles a function
                result = self.interpreted(cls.__torch_function__)(function, types, args, kwargs)
            if result is not NotImplemented:
                return result
        classes = "\n".join([f"  - tensor subclass {cls}" for cls in types])
        raise TypeError(
            f"Multiple dispatch failed for '{resolve_name(function)}'; all __torch_function__ handlers returned "
            f"NotImplemented:\n\n{classes}\n\nFor more information, try re-running with TORCH_LOGS=not_implemented"
        )

    def _levels_changed(self) -> None:
        self.changes += 1
        self.producers.rewritten()

    # --- tensors ---------------------------------------------------------------------------------------------------

    def input(self, tensor: torch.Tensor, source: Source, slot: tuple[Any, Any] | None) -> TracedTensor:
        """Read an external tensor."""
        known = self.known_input(tensor)
        if known is not None:
            self._require_same(known, source)
            return known
        with torch._C.DisableTorchFunction():
            return self._new_input(tensor, source, slot)

    def _new_input(self, tensor: torch.Tensor, source: Source, slot: tuple[Any, Any] | None) -> TracedTensor:
        if isinstance(tensor, TracedTensor):
            return tensor
        check_tensor(tensor, source)
        traced = self.shared.new(tensor, source, slot)
        self.take_in(tensor, traced)
        return traced

    def root(self, tensor: torch.Tensor, source: Source, slot: tuple[Any, Any] | None) -> TracedTensor:
        """Make an external tensor an input, with memory of its own."""
        proxy = proxy_of(tensor, self.builder.names.take(_input_name(source)))
        # what programs do may depend on strides, which are known of symbolic sizes where all is laid out in order
        dims = self.symbolic_dimensions(tensor, source) if tensor.is_contiguous() else frozenset()
        if dims:
            self.numbers += make_symbolic(proxy, dims, self.builder.names.fresh, source)
            self.external.require(ToldGuard(source, torch.Tensor.is_contiguous, True), id(source), "contiguous")
        self.shadows.meet(proxy, tensor, source)
        traced = self.new_traced(proxy, type(tensor))
        own_storage(traced, tensor)
        traced._input = Input(proxy, source, slot, metadata_of(tensor, dims), tensor)
        self.inputs.append(traced._input)
        return traced

    def symbolic_dimensions(self, tensor: torch.Tensor, source: Source) -> frozenset[int]:
        """Return the dimensions of an input that are dynamic."""
        return frozenset()

    def number(self, value: Any, source: Source) -> NumberProxy | RunArray:
        """Read an external number, or a scalar or an array of NumPy's, and make it one that each call brings."""
        if is_array(value):
            return self.arrays.of_the_call(value)
        if is_numpy_number(value):
            return self._scalar(value, source)
        proxy = number_proxy(value, self.builder.names.take(_input_name(source)))
        self.numbers.append(NumberInput(proxy, source))
        return proxy

    def _scalar(self, value: Any, source: Source) -> RunArray:
        number = self.number(value.item(), Source(Source(source, "attribute", "item"), "call", ()))
        another = type(value)(2 if value != 2 else 3)

        def tensor() -> TracedTensor:
            with torch._C.DisableTorchFunction():
                return self._new_input(as_tensor(value), Source(held(as_tensor, "as_tensor"), "call", (source,)), None)

        return RunArray(self, tensor, (value, another), symbolic=number)

    def _require_same(self, known: TracedTensor, source: Source) -> None:
        first, way = known.source, source.question or id(source)
        if source is not first and way != first.question:
            self.external.require(SameObjectGuard(source, first), way, id(first), "same tensor")

    def is_forgotten(self, tensor: TracedTensor) -> bool:
        """Whether autograd, which writes the history of a view again, finds none of what it views.

        So it is where that was written to and detached in place, or is a leaf that requires grad and itself a view:
        autograd looks at what that views.
        """
        if not is_stale(tensor):
            return False
        base = base_of(tensor)
        if self.stages.was_detached(base):
            return True
        if base._leaf is not None:
            return bool(base._leaf.is_view)
        given = base.given
        return given is not None and given.requires_grad and given.is_leaf and self.is_view(base)

    def unconnected(self, value: TensorProxy) -> TensorProxy:
        """Return ``value`` such that it requires grad, and its gradient goes nowhere."""
        if self._unseen is None:
            self._unseen = unseen_leaf(self.builder)
            self.inputs.append(self._unseen)
        return record_overwritten(self.builder, self._unseen.proxy, value, True)

    # --- derivatives -----------------------------------------------------------------------------------------------

    def autograd_grad(self, outputs: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Do what ``torch.autograd.grad`` does where user code calls it."""
        refuse_observed(self)
        return autograd_grad(self, outputs, inputs, *args, **kwargs)

    def inner_gradients(self, *args: Any, is_grads_batched: bool = False, **kwargs: Any) -> tuple[Any, ...]:
        """Record gradients, asked for as of ``torch.autograd.grad``."""
        if is_grads_batched:
            return self.batches.gradients(*args, **kwargs)
        self.changes += 1  # it depends on all that was recorded before
        return inner_gradients(self, *args, **kwargs)

    def inner_backward(self, *args: Any, **kwargs: Any) -> None:
        """Do what ``torch.autograd.backward`` does."""
        if self.levels.stack:
            raise AcquisitionError("backward() inside of a function that torch.func transforms is not supported")
        self.changes += 1
        refuse_observed(self)
        inner_backward(self, *args, **kwargs)

    def from_outside(self) -> list[TracedTensor]:
        """Return what stands for external tensors."""
        return [*self._tensors.values(), *self.shared.wholes()]

    def expect(self, value: object, truth: bool) -> bool:
        """Let the program check the truth of a value; return whether it can, where the value is used."""
        if self.levels.stack:
            return False
        with torch._C.DisableTorchFunction(), self.builder.tagged(*TAGS):
            opaque_call(Check(truth), self.value(value) if isinstance(value, TracedTensor) else value)
        return True

    # --- what it came to -------------------------------------------------------------------------------------------

    def finish(self, result: object) -> tuple[Trace, Outcome]:
        """Return the computation, and what the program leaves behind, when user code has returned ``result``."""
        outcome = Outcome(self, result)
        self.levels.check(outcome.proxies)
        return self.computation(outcome.proxies), outcome

    def computation(self, outputs: Collection[Any]) -> Trace:
        """Return what was recorded, as a trace that computes ``outputs``, but for those that are inputs."""
        inputs = (*[i.proxy for i in self.inputs], *[n.proxy for n in self.numbers])
        names = {p.name for p in inputs}
        computation = Trace(
            "computation",
            inputs,
            tuple(self.builder.bound_symbols),
            tuple([p for p in outputs if p.name not in names]),
            tuple(self.builder.constraints),
        )
        return keep_failures(computation, _raises_for_some)

    def let_go(self) -> None:
        """Keep nothing of external state alive any more."""
        for traced in self._tensors.values():
            traced.__dict__.pop("_input", None)
        self._tensors.clear()
        self.inputs.clear()


def _raises_for_some(bound: BoundSymbol) -> bool:
    """Whether a call raises for some values, so that it is made even if nothing reads what it returns."""
    if isinstance(bound.output, NumberProxy):
        of_the_run = bound.has_tag(OpTags.DIVIDES) and is_unknown(bound.args[1])
    else:
        of_the_run = depends_on_the_run(bound) or has_unknown_sizes(bound.inputs)  # which may not fit
    return of_the_run or (may_fail(bound) and not fits(bound)) or lacks_kernel(bound)


def _input_name(source: Source) -> str:
    steps = []
    here: Source | None = source
    while here is not None and here.base is not None:
        if here.kind == "call" and len(here.key) == 1 and isinstance(here.key[0], Source):
            return _input_name(here.key[0])  # the tensor of an array
        if here.key not in ("_parameters", "_buffers", "_modules", "__dict__"):
            steps.append("of_tensor" if isinstance(here.key, torch.Tensor) else str(here.key))
        here = here.base
    if here is ARGS and len(steps) == 1:
        return f"a{steps[0]}"
    return "_".join(reversed(steps)) or str(source.key)
