"""Gradients by what a program computed itself, on the way to gradients by what that was computed of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from thunder_ir import BoundSymbol, Names, Symbol, TensorProxy, substitute
from thunder_torch import torch_language
from thunder_tracing.derivatives._freed_graphs import computed_of_others
from thunder_tracing.tensors.calls import Calls
from thunder_tracing.tensors.overwrites import WRITTEN_UNSEEN


def _same(value: TensorProxy, probe: TensorProxy) -> TensorProxy:
    return value


MARKED = Symbol("marked", "thunder_tracing", decomposition=_same, language=torch_language)
"""``marked(value, probe)``: the value, whose gradient is that of the probe too; gone once it is differentiated."""


def _marked_rule(value: TensorProxy, probe: TensorProxy) -> tuple[TensorProxy, Callable[..., Any]]:
    return value, lambda cotangent: (cotangent, cotangent)


def with_rule(rule_of: Callable[[BoundSymbol], Any]) -> Callable[[BoundSymbol], Any]:
    """Return ``rule_of`` with the rule of :data:`MARKED`."""
    return lambda bound: _marked_rule if bound.symbol is MARKED else rule_of(bound)


def marked(
    bound_symbols: Sequence[BoundSymbol], results: Sequence[Any], wanted: Iterable[TensorProxy], names: Names
) -> tuple[list[BoundSymbol], list[Any], dict[str, TensorProxy]]:
    """Return calls and results in which each value that is wanted is marked where it was computed.

    Args:
        bound_symbols: the calls.
        results: what is differentiated.
        wanted: values that these calls compute.
        names: for what is made.

    Returns:
        The calls, the results, and the probe of each value by its name.
    """
    sought = {p.name: p for p in wanted}
    probes: dict[str, TensorProxy] = {}
    known: dict[str, TensorProxy] = {}
    calls: list[BoundSymbol] = []
    for bound in bound_symbols:
        calls.append(bound.substituted(known) if known else bound)
        for name in [p.name for p in bound.outputs if p.name in sought]:
            value = sought[name]
            probes[name], known[name] = [value.renamed(names.fresh(prefix)) for prefix in ("probe", "marked")]
            calls.append(BoundSymbol(MARKED, (value, probes[name]), {}, known[name], bound.location, bound.tags))
    return calls, list(substitute(tuple(results), known)), probes


def edges(calls: Calls, tensors: Iterable[torch.Tensor]) -> list[TensorProxy]:
    """Return what autograd takes for the values of tensors: those before what was written behind its back."""
    written = {b.output.name: b.args[0] for b in calls.builder.bound_symbols if b.symbol is WRITTEN_UNSEEN}
    found = []
    for tensor in tensors:
        value = calls.value(tensor)
        while value.name in written:
            value = written[value.name]
        found.append(value)
    return found


def beneath_hooks(
    bound_symbols: Sequence[BoundSymbol], wanted: Sequence[TensorProxy], all_see: bool = False
) -> list[TensorProxy]:
    """Return the values whose gradients are those by ``wanted`` once hooks saw them.

    Hooks on a tensor change what is passed on, and what is wanted only where nothing is passed on, or ``all_see`` it.
    """
    hooked = {p.name: b.args[0] for b in bound_symbols if b.symbol.name == "tensor_hook" for p in b.outputs}
    if not hooked:
        return list(wanted)
    passed_on = set() if all_see else computed_of_others(bound_symbols, {p.name for p in wanted})
    found = []
    for value in wanted:
        while value.name in hooked and value.name not in passed_on:
            value = hooked[value.name]
        found.append(value)
    return found
