"""``torch.vmap`` inside of a program: what is recorded for one example becomes the calls for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from thunder_autograd import Traits
from thunder_guards.errors import AcquisitionError
from thunder_ir import BoundSymbol, OpTags, Symbol, TensorProxy, Trace
from thunder_torch.metadata import draws_numbers
from thunder_torch.opaque import drawing_call, drawing_call_batch_alike
from thunder_torch.traits import Trait, state
from thunder_tracing.derivatives._batched_rules import BatchedRule
from thunder_tracing.tensors._view_writes import Chain
from thunder_tracing.tensors.levels import Level, settle_gradients
from thunder_tracing.tensors.overwrites import RULES
from thunder_tracing.tensors.storage import View, ViewStep, place_is_known, share_storage
from thunder_tracing.tensors.traced_tensor import TracedTensor
from thunder_tracing.tensors.write_calls import WriteCalls
from thunder_vmap import batch_transform_on_trace, insert_dimension
from thunder_vmap.batching import Randomness

T = torch.Tensor


def one_of(batch: T, dim: int) -> T:
    """Return what an example of a batch is like."""
    return batch.select(dim, 0)


EXAMPLE = Symbol("example", "functorch", origin=one_of)
"""``example(batch, dim)``: any one example of a batch. It stands in the trace until the level that it is for ends."""

RANDOM = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
    "randomness flags on vmap or perform the randomness operation out of vmap"
)


def _draws(bound: BoundSymbol) -> bool:
    """Whether a call draws random numbers: not whether it might do so with other arguments."""
    if bound.symbol is drawing_call:
        return draws_numbers(*bound.args)
    if bound.symbol.is_prim:
        return bound.has_tag(OpTags.RANDOM)
    return any([_draws(part) for part in bound.subsymbols])


class ViewOfExamples:
    """Views a batch as views show each example of it.

    Args:
        views: of an example.
        dim, out_dim: where the batch is, and where it is put.
    """

    __name__ = "vmap"

    def __init__(self, views: Chain, dim: int, out_dim: int) -> None:
        self._views, self._dims = views, (dim, out_dim)

    def __call__(self, batch: T) -> T:
        return torch.vmap(self._views, *self._dims)(batch)


state(ViewOfExamples, traits=(Trait.TOTAL,))


def _randomness(level: BatchLevel) -> Randomness:
    """Return what random operations do; where they are refused, those that remain draw nothing."""
    return "same" if level.randomness == "error" else level.randomness


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """A batched argument.

    Args:
        batch: the tensor outside of the level.
        value: what it held when the level began.
        dim: where its batch is.
        tensor: stands for one example inside of the level.
    """

    batch: TracedTensor
    value: TensorProxy
    dim: int
    tensor: TracedTensor


@dataclass(slots=True, eq=False)
class BatchLevel(Level):
    """One call of a function under ``torch.vmap``.

    Args:
        size: of the batch.
        randomness: ``"error"``, ``"different"`` or ``"same"``.
        examples: the batched arguments, by the names of the values for one example.
        results: once the level ended, the value for the whole batch and where it has the batch, by name.
    """

    size: Any = 0
    randomness: Randomness = "error"
    examples: dict[str, Example] = field(default_factory=dict)
    results: dict[str, tuple[Any, int | None]] | None = None
    _batched: set[str] = field(default_factory=set)
    _seen: int = 0
    _rewrites: int = -1
    _traits: Traits = field(default_factory=Traits)

    def batched(self) -> set[str]:
        """Return the names of the values that differ between the examples."""
        recorded = self.levels.recorded
        if self._rewrites != self.levels.rewrites:
            self._seen, self._rewrites = self.levels.start(self), self.levels.rewrites
        for bound in recorded[self._seen :]:
            own = bound.symbol is EXAMPLE and bound.output.name in self.examples
            if own or any([p.name in self._batched for p in bound.inputs]):
                self._batched.update([p.name for p in bound.outputs])
        self._seen = len(recorded)
        return self._batched

    def check_write(self, target: TracedTensor, held: TensorProxy, value: TensorProxy, by_operator: bool) -> None:
        """Refuse, as PyTorch does, to write what differs between examples to what is one for all."""
        batched = self.batched()
        if value.name in batched and held.name not in batched:
            raise RuntimeError(
                "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` in "
                "extra_args that has more elements than `self`. This happened due to `other` being vmapped over but "
                "`self` not being vmapped over in a vmap. Please try to use out-of-place operators instead of inplace "
                "arithmetic. If said operator is being called inside the PyTorch framework, please file a bug report "
                "instead."
            )

    def check_recorded(self, bound_symbols: Sequence[BoundSymbol]) -> None:
        """Refuse, as PyTorch does, random numbers where nothing is said of them."""
        if self.randomness == "error" and any([self._traits.draws(b) and _draws(b) for b in bound_symbols]):
            raise RuntimeError(RANDOM)


class Batches:
    """What PyTorch's functions for the levels of ``torch.vmap`` do while a program is acquired.

    Args:
        calls: the acquisition.
    """

    def __init__(self, calls: WriteCalls) -> None:
        self._calls, self._levels = calls, calls.levels
        self._ended: BatchLevel | None = None

    def enter(self, size: object, randomness: Randomness) -> int:
        """Begin a level; return its number."""
        return self._levels.enter(BatchLevel, size=size, randomness=randomness).number

    def leave(self) -> None:
        """End the innermost level, if it has not ended with its results."""
        if self._ended is not None:
            self._ended = None
            return
        level = self._levels.innermost(BatchLevel)
        inside = self._levels.leave(level)  # an exception is under way
        self._levels.gone.update([p.name for b in inside for p in b.outputs])
        self._levels.rewrite(len(self._levels.recorded) - len(inside), [])

    def add(self, tensor: T, dim: int, number: int) -> TracedTensor:
        """Return what stands for one example of a batch."""
        calls, level = self._calls, self._levels.numbered(number)
        with torch._C.DisableTorchFunction():
            batch = calls.traced(tensor)
            value = calls.value(batch)
            dim %= max(value.ndim, 1)
            example = value.like(shape=value.shape[:dim] + value.shape[dim + 1 :])
            if value.strides is not None:
                example.strides = value.strides[:dim] + value.strides[dim + 1 :]
            example.name = calls.builder.names.fresh("t")
            calls.builder.bound_symbols.append(BoundSymbol(EXAMPLE, (value, dim), {}, example))
            made: TracedTensor = calls.wrap(example)
            level.examples[example.name] = Example(batch, value, dim, made)
            return made

    def end(self, number: int, results: Any) -> None:
        """End a level: the calls recorded within become the calls for the whole batch.

        Args:
            number: of the level.
            results: what there will be; the values of the tensors among it are asked for.
        """
        calls, level = self._calls, self._levels.numbered(number)
        with torch._C.DisableTorchFunction():
            for result in results:
                if isinstance(result, T):
                    calls.value(result)
            written = [e for e in level.examples.values() if e.tensor._memory.version]
            for example in written:
                calls.value(example.tensor)
            inside = self._levels.leave(level)
            self._ended = level
            start = len(self._levels.recorded) - len(inside)
            self._levels.rewrite(start, [])
            self._levels.rewrite(start, self._batched(level, inside))
            for example in written:
                value, dim = level.results[example.tensor._proxy.name]
                calls.assign(example.batch, self._placed(value, dim, example.dim))

    def _batched(self, level: BatchLevel, inside: list[BoundSymbol]) -> list[BoundSymbol]:
        calls = self._calls
        examples = level.examples
        rest = [b for b in inside if b.symbol is not EXAMPLE or b.output.name not in examples]
        inputs = tuple([e.tensor._first for e in examples.values()])
        every = (*inputs, *[p for b in rest for p in b.outputs])
        batched = batch_transform_on_trace(
            Trace("batched", inputs, tuple(rest), every),
            level.size,
            [e.dim for e in examples.values()],
            rule_of=lambda bound: self._rule_of(level, bound),
            randomness=_randomness(level),
            names=calls.builder.names,
        )
        values, dims = batched.output
        level.results = {p.name: (v, d) for p, v, d in zip(every, values, dims, strict=True)}
        for name, example in examples.items():
            level.results[name] = (example.value, example.dim)
        self._levels.gone.update([name for name, (v, _) in level.results.items() if getattr(v, "name", "") != name])
        calls.builder.constraints += batched.constraints
        outside = {name: e.value for name, e in examples.items()}
        made = [b.substituted(outside) for b in batched.bound_symbols]
        level.results = {n: (outside.get(v.name, v), d) for n, (v, d) in level.results.items()}
        settle_gradients(made, self._levels.requiring_grad())
        return made

    def _rule_of(self, level: BatchLevel, bound: BoundSymbol) -> Any:
        """Return the rule by which a call is batched if that is not its symbol's own."""
        if bound.symbol is drawing_call and level.randomness == "same":
            return drawing_call_batch_alike
        calls = self._calls
        rule = None if bound.symbol in RULES else calls.rules.get(bound.symbol)
        if getattr(rule, "batches", False):
            raise AcquisitionError(
                f"{bound.symbol.name}, a torch.autograd.Function, has a vmap() of its own, which no compiled program "
                "calls; set generate_vmap_rule = True in its place, or compile without it"
            )
        needed = calls.levels.stack or any([getattr(p, "requires_grad", False) for p in bound.outputs])
        if rule is not None and needed:
            return BatchedRule(bound, calls.rules, calls.builder.names, _randomness(level))
        return None

    def _placed(self, value: TensorProxy, dim: int | None, wanted: int) -> TensorProxy:
        """Return a value with its batch at the dimension where it is wanted."""
        calls = self._calls
        if dim is None:  # the same for all examples
            return calls.on_values(T.unsqueeze, (value, wanted), {})  # type: ignore[no-any-return]
        if wanted % max(value.ndim, 1) == dim and -value.ndim <= wanted < value.ndim:
            return value
        return calls.on_values(T.movedim, (value, dim, wanted), {})  # type: ignore[no-any-return]

    def remove(self, tensor: T, number: int, size: Any, dim: int) -> Any:
        """Return the whole batch of a result."""
        calls = self._calls
        if self._ended is None or self._ended.number != number:
            self.end(number, [tensor])
        level = self._ended
        assert level is not None and level.results is not None
        with torch._C.DisableTorchFunction():
            traced = calls.traced(tensor)
            name = traced._proxy.name
            if name in level.examples and level.examples[name].dim == dim:
                return level.examples[name].batch
            if name in level.results:
                value, place = level.results[name]
            else:
                value, place = calls.value(traced), None
            if name in level.examples:
                return calls.record(T.movedim, (level.examples[name].batch, place, dim), {})
            if place is None:
                made = calls.wrap(value) if name in level.results else traced
                made = calls.record(T.unsqueeze, (made, dim), {})
                shape = insert_dimension(tuple(value.shape), dim % (value.ndim + 1), size)
                return calls.record(T.expand, (made, shape), {})
            placed = self._placed(value, place, dim)
            viewed = self._view(level, traced, placed, dim)
            return calls.wrap(placed) if viewed is None else viewed

    def _view(self, level: BatchLevel, traced: TracedTensor, value: TensorProxy, dim: int) -> TracedTensor | None:
        """Return a result as the view of a batched argument that it is; ``None`` if it is none."""
        example = level.examples.get(traced._memory.root._first.name)
        if example is None or not place_is_known(traced):
            return None
        steps: list[ViewStep] = []
        here = traced
        while here._viewed_as is not None:
            steps.insert(0, here._viewed_as.step)
            here = here._viewed_as.parent
        function = ViewOfExamples(Chain(tuple(steps)), example.dim, dim)
        made: TracedTensor = self._calls.new_traced(value)
        share_storage(made, View(example.batch, function, (), {}, None, torch.is_grad_enabled()))
        return made

    def gradients(self, outputs: object, inputs: object, grad_outputs: Any, **options: Any) -> tuple[Any, ...]:
        """Do what ``torch.autograd.grad`` does for a batch of cotangents."""
        cotangents = [grad_outputs] if isinstance(grad_outputs, T) else list(grad_outputs)
        size = next(self._calls.value(c).shape[0] for c in cotangents if c is not None)
        number = self.enter(size, "error")
        try:
            examples = [None if c is None else self.add(c, 0, number) for c in cotangents]
            found = self._calls.inner_gradients(outputs, inputs, examples, **options)
            self.end(number, found)
            return tuple([None if f is None else self.remove(f, number, size, 0) for f in found])
        finally:
            self.leave()

    def is_batched(self, tensor: object) -> bool:
        """Whether a tensor holds another value for each example of some batch."""
        if not isinstance(tensor, TracedTensor):
            return False
        if self._ended is not None and self._ended.results is not None:
            found = self._ended.results.get(tensor._proxy.name)
            if found is not None and found[1] is not None:
                return True
        with torch._C.DisableTorchFunction():
            name = self._calls.value(tensor).name
        return any(name in level.batched() for level in self._levels.stack if isinstance(level, BatchLevel))
