"""Keeping metadata true where the numbers that they mention are replaced."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from thunder_ir.names import Names
from thunder_ir.number_proxies import NumberProxy
from thunder_ir.passes.renaming import renamed
from thunder_ir.proxies import Proxy
from thunder_ir.symbols import BoundSymbol
from thunder_ir.tensor_proxies import TensorProxy
from thunder_ir.trace import Trace


def follow_numbers(trace: Trace, replaced: dict[str, Any]) -> Trace:
    """Return the trace with the numbers in ``replaced`` replaced in symbolic dimensions and in constraints, too."""
    numbers = {name: value for name, value in replaced.items() if isinstance(value, (int, NumberProxy))}
    if not numbers:
        return trace
    changed: dict[str, Proxy] = {}
    for proxy in [*trace.inputs, *[p for bound in trace.bound_symbols for p in bound.outputs]]:
        if isinstance(proxy, TensorProxy) and any([d.__class__ is not int for d in proxy.shape]):
            shape = tuple([_replaced(d, numbers) for d in proxy.shape])
            if any([new is not old for new, old in zip(shape, proxy.shape, strict=True)]):
                changed[proxy.name] = _reshaped(proxy, shape)
    constraints = tuple(
        [replace(c, left=_replaced(c.left, numbers), right=_replaced(c.right, numbers)) for c in trace.constraints]
    )
    return renamed(trace.replace(constraints=constraints), changed)


def under_fresh_names(bound: BoundSymbol, names: Names, known: dict[str, Any]) -> dict[str, Proxy]:
    """Return by name what stands for the outputs of a call that is recorded once more.

    Args:
        bound: the call.
        names: allocator of the trace that it is recorded in.
        known: what stands there for values by their names, for the symbolic dimensions of the outputs among them.
    """
    fresh = {p.name: p.renamed(names.fresh(p.prefix)) for p in bound.outputs}
    for proxy in fresh.values():
        if isinstance(proxy, TensorProxy) and any([d.__class__ is not int for d in proxy.shape]):
            proxy.shape = tuple([_replaced(d, ChainMap(fresh, known)) for d in proxy.shape])
    return fresh


def _reshaped(proxy: TensorProxy, shape: tuple[Any, ...]) -> Proxy:
    other: Any = proxy.renamed(proxy.name)
    other.shape = shape
    return other  # type: ignore[no-any-return]


def _replaced(value: Any, numbers: Mapping[str, Any]) -> Any:
    return numbers.get(value.name, value) if isinstance(value, Proxy) else value
