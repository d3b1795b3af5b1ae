"""From a program for one example to the program for a batch of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from thunder_ir import (
    BoundSymbol,
    Builder,
    MissingRuleError,
    Names,
    OpTags,
    Proxy,
    ShapeError,
    TensorProxy,
    ThunderError,
    Trace,
    flat_proxies,
    recording,
    substitute,
)
from thunder_ir.number_proxies import Dimension
from thunder_ir.passes import trace_pass
from thunder_ir.passes.pairing import pair_outputs
from thunder_vmap.rules import BatchingRule, batching_rule

Randomness = Literal["error", "different", "same"]


@trace_pass
def batch_transform_on_trace(
    trace: Trace,
    size: Dimension,
    dims: Sequence[int | None],
    *,
    rule_of: Callable[[BoundSymbol], BatchingRule | None] | None = None,
    randomness: Randomness = "error",
    names: Names | None = None,
) -> Trace:
    """Return the program that does for a whole batch what ``trace`` does for one example.

    Args:
        trace: the program.
        size: how many examples a batch has.
        dims: for each input where its batch dimension is put; ``None`` for an input that all examples share.
        rule_of: a rule that goes before a symbol's own, or ``None``. A symbol without any is batched through its
            decomposition.
        randomness: what random operations do: draw for each example apart, once for all, or raise.
        names: gives new values their names; by default one that knows the names in ``trace``.

    Returns:
        A trace whose output is ``(outputs, dims)``: the outputs of ``trace`` and, in a flat tuple, where each value in
        them has its batch dimension, ``None`` where it is the same for all examples.

    Raises:
        MissingRuleError: a symbol that reads a batch has neither a rule nor a decomposition.
        ThunderError: a random operation, where ``randomness`` is ``"error"``.
    """
    if randomness not in ("error", "different", "same"):
        raise ValueError(f"randomness is 'error', 'different' or 'same', not {randomness!r}")
    batcher = _Batcher(names or trace.names(), size, rule_of, randomness)
    inputs = tuple([batcher.input(p, d) for p, d in zip(trace.inputs, dims, strict=True)])
    with recording(batcher.builder):
        batcher.run(trace.bound_symbols)
    outputs = substitute(trace.output, batcher.value)
    places = tuple([batcher.dim.get(p.name) for p in trace.outputs])
    return trace.replace(
        name=f"{trace.name}_batched",
        inputs=inputs,
        bound_symbols=tuple(batcher.builder.bound_symbols),
        output=(outputs, places),
        constraints=(*trace.constraints, *batcher.builder.constraints),
    )


def insert_dimension(shape: tuple[Dimension, ...], dim: int, size: Dimension) -> tuple[Dimension, ...]:
    """Return ``shape`` with a dimension of ``size`` put in at ``dim``."""
    return (*shape[:dim], size, *shape[dim:])


def _draws(bound: BoundSymbol) -> bool:
    """Whether a call draws random numbers: a composite if its parts do, whatever it might do with other arguments."""
    if bound.symbol.is_prim:
        return bound.has_tag(OpTags.RANDOM)
    return any([_draws(part) for part in bound.subsymbols])


class _Batcher:
    """Walks over the program once; keeps for each name the value and, if it is a batch, its batch dimension."""

    def __init__(self, names: Names, size: Dimension, rule_of: Any, randomness: Randomness) -> None:
        self.builder = Builder(names)
        self.size, self.rule_of, self.randomness = size, rule_of, randomness
        self.value: dict[str, Any] = {}
        self.dim: dict[str, int] = {}

    def input(self, proxy: Proxy, dim: int | None) -> Proxy:
        """Return the input of the new program for one of the old."""
        if dim is None:
            return proxy
        if not isinstance(proxy, TensorProxy) or not 0 <= dim <= proxy.ndim:
            raise ShapeError(f"input {proxy.name}, {proxy.type_string}, cannot have a batch dimension at {dim}")
        batch = proxy.like(shape=insert_dimension(proxy.shape, dim, self.size))
        batch.name = proxy.name
        self.value[proxy.name] = batch
        self.dim[proxy.name] = dim
        return batch

    def run(self, bound_symbols: Any) -> None:
        for bound in bound_symbols:
            if any([p.name in self.dim for p in bound.inputs]):
                self.batch(bound)
            elif _draws(bound):
                self.draw(bound)
            else:
                self.builder.bound_symbols.append(bound.substituted(self.value) if self.value else bound)

    def draw(self, bound: BoundSymbol) -> None:
        """Batch a random call that reads no batch."""
        if self.randomness == "error":
            raise ThunderError(
                f"{bound.symbol.id} draws random numbers under vmap; say randomness='different' for numbers of "
                "their own for each example, or 'same' for the same for all"
            )
        if self.randomness == "same":
            self.builder.bound_symbols.append(bound.substituted(self.value))
        else:
            self.batch(bound)

    def batch(self, bound: BoundSymbol) -> None:
        rule = self.rule_of(bound) if self.rule_of is not None else None
        rule = rule if rule is not None else batching_rule.get(bound.symbol)
        if rule is not None and not any([p.name in self.dim for p in flat_proxies(bound.kwargs)]):
            self.apply(bound, rule)
        elif bound.symbol.decomposition is not None:
            parts, output = bound.decomposed(self.builder.names)
            constant = frozenset({OpTags.CONSTANT_FOR_DERIVATIVE}) & bound.symbol.tags
            self.run([p.replace(tags=p.tags | constant) for p in parts] if constant else parts)
            self.pair(bound.output, output)
        else:
            raise MissingRuleError(
                f"{bound.symbol.id} has no batching rule, and it reads a batch; "
                f"add one with @batching_rule({bound.symbol.id})"
            )

    def apply(self, bound: BoundSymbol, rule: BatchingRule) -> None:
        """Run a rule in the place of the call."""
        builder = self.builder
        builder.tags, builder.language = bound.tags, bound.symbol.language
        builder.locate = lambda: bound.location
        args, kwargs = substitute(bound.args, self.value), substitute(bound.kwargs, self.value)
        output, dims = rule(self.size, args, tuple([self.dims(a) for a in bound.args]), **kwargs)
        self.pair(bound.output, output)
        places, slots = _flat_dims(dims), _slots(bound.output)
        for proxy, dim in zip(slots if len(places) == len(slots) else bound.outputs, places, strict=True):
            if dim is not None and proxy is not None:
                self.dim[proxy.name] = dim

    def dims(self, argument: Any) -> Any:
        """Return where an argument's batch dimension is, in a tuple where the argument is a sequence of tensors."""
        if isinstance(argument, Proxy):
            return self.dim.get(argument.name)
        if isinstance(argument, (tuple, list)) and flat_proxies(argument):
            return tuple([self.dims(item) for item in argument])
        return None

    def pair(self, old: Any, new: Any) -> None:
        """What a rule or decomposition returned stands for the outputs of the call."""
        found: dict[str, Any] = {}
        pair_outputs(old, new, found)
        for name, made in found.items():
            if isinstance(made, Proxy) and made.name == name:
                continue
            if isinstance(made, Proxy) and made.name in self.dim:
                self.dim[name] = self.dim[made.name]
            self.value[name] = self.value.get(made.name, made) if isinstance(made, Proxy) else made


def _slots(output: Any) -> list[Proxy | None]:
    """Return the proxies in an output, and ``None`` where it has nothing."""
    if isinstance(output, (tuple, list)):
        return [slot for item in output for slot in _slots(item)]
    return [output] if isinstance(output, Proxy) or output is None else []


def _flat_dims(dims: Any) -> list[int | None]:
    if isinstance(dims, (tuple, list)):
        return [d for item in dims for d in _flat_dims(item)]
    return [dims]
