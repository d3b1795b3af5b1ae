"""Gradients inside of a program that pass hooks: what the hooks do is part of the program, in the order of eager."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import Any, TypeAlias

import torch

from thunder_ir import BoundSymbol, TensorProxy
from thunder_tracing.derivatives._freed_graphs import descendants
from thunder_tracing.derivatives.backward_hooks import HookRule, Hooks
from thunder_tracing.tensors.traced_tensor import AcquisitionMode, is_acquiring
from thunder_tracing.tensors.write_calls import WriteCalls

Values: TypeAlias = Sequence[Any]
Recorded: TypeAlias = Callable[[WriteCalls, Sequence[BoundSymbol], Values, Values, Values, bool], list[Any]]
"""Records gradients: of a part of a program, by what is wanted, of results, with cotangents; of all orders or not."""


class _Gathered:
    """What has come to values so far, from what is computed of them."""

    def __init__(self, calls: WriteCalls) -> None:
        self._calls = calls
        self.values: dict[str, TensorProxy] = {}
        self._cotangents: dict[str, TensorProxy] = {}

    def add(self, values: Iterable[Any], cotangents: Iterable[Any]) -> None:
        """Add cotangents, ``None`` among them, to those of values."""
        for value, cotangent in zip(values, cotangents, strict=True):
            if cotangent is not None:
                there = self._cotangents.get(value.name)
                both = cotangent if there is None else self._calls.on_values(torch.add, (there, cotangent), {})
                self.values[value.name], self._cotangents[value.name] = value, both

    def take(self, name: str) -> TensorProxy | None:
        """Return the cotangent of a value, and forget it."""
        self.values.pop(name, None)
        return self._cotangents.pop(name, None)


def through_hooks(
    calls: WriteCalls,
    passed: Sequence[tuple[BoundSymbol, HookRule]],
    wanted: Values,
    results: tuple[Values, Values],
    recorded: Recorded,
    create_graph: bool,
) -> list[Any]:
    """Return gradients that pass hooks, which are called one after the other, those of the last call first.

    Args:
        calls: the acquisition.
        passed: calls whose gradients pass hooks, in order.
        wanted: by what is differentiated.
        results: what is differentiated, and cotangents.
        recorded: records the gradients of what lies between two of these.
        create_graph: whether gradients have gradients.
    """
    gathered, found = _Gathered(calls), _Gathered(calls)
    names = {p.name for p in wanted}
    flowing = descendants(calls.builder.bound_symbols, names)

    def go_back(part: Sequence[BoundSymbol]) -> None:
        made = {p.name for b in part for p in b.outputs}
        read = {p.name: p for b in part for p in b.inputs if p.name in flowing and p.name not in made}
        sought = {**read, **{p.name: p for p in wanted if p.name in made}}
        values = [v for name, v in gathered.values.items() if name in made]
        if values:
            cotangents = [gathered.take(v.name) for v in values]
            gradients = recorded(calls, part, [*sought.values()], values, cotangents, create_graph)
            for value, gradient in zip(sought.values(), gradients, strict=True):
                (gathered if value.name in read else found).add([value], [gradient])

    def called(hooks: Hooks, *gradients: TensorProxy) -> Any:
        mode = nullcontext() if is_acquiring() else AcquisitionMode(calls)  # not in force while it handles a function
        with torch._C._EnableTorchFunction(), mode:
            made = hooks.by(calls.interpreted)(*[calls.wrap(g) for g in gradients])
        return tuple([calls.value(m) for m in made]) if isinstance(made, tuple) else calls.value(made)

    with torch.set_grad_enabled(create_graph):
        gathered.add(*results)
        end = len(calls.builder.bound_symbols)
        for bound, rule in reversed(passed):
            place = next(i for i, b in enumerate(calls.builder.bound_symbols) if b is bound)
            go_back(calls.builder.bound_symbols[place + 1 : end])
            end = place
            cotangents = [gathered.take(p.name) for p in bound.outputs]
            kept = [c if p.name in names else None for p, c in zip(bound.outputs, cotangents, strict=True)]
            found.add(bound.outputs, kept)
            if any([c is not None for c in cotangents]):
                gathered.add(bound.args, rule.pullback(called, *cotangents))
        go_back(calls.builder.bound_symbols[:end])
        found.add(wanted, [gathered.take(p.name) for p in wanted])
    by_name = {name: found.take(name) for name in names}
    return [by_name[p.name] for p in wanted]
