"""Computing what is known already."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from thunder_ir.passes.decorator import trace_pass
from thunder_ir.passes.rewriting import KEEP, rewrite
from thunder_ir.passes.traits import has_effect, is_random
from thunder_ir.proxies import NumberProxy, Proxy
from thunder_ir.symbols import BoundSymbol, Symbol
from thunder_ir.trace import Trace
from thunder_ir.trees import flat_proxies


def _by_example(symbol: Symbol) -> Callable[..., Any] | None:
    """The meta function of an operation on numbers computes with the values at hand: it is what runs it, too."""
    if symbol.meta is None:
        return None
    meta = symbol.meta

    def run(*args: Any, **kwargs: Any) -> Any:
        made = meta(*args, **kwargs)
        return made.value if isinstance(made, NumberProxy) else KEEP

    return run


@trace_pass
def constant_folding(trace: Trace, run: Callable[[Symbol], Callable[..., Any] | None] | None = None) -> Trace:
    """Replace calls that read no value of the program, and return numbers, by the numbers.

    Args:
        trace: the program.
        run: from a symbol to what computes it for constants, or ``None`` where nothing does. If not given, operations
            on numbers whose meta function computes them are folded.

    Example:
        >>> from thunder_ir import Symbol, Tensor, number_proxy, trace_of
        >>> from thunder_ir.passes import constant_folding
        >>> twice = Symbol("twice", "numbers", meta=lambda n: number_proxy(2 * getattr(n, "value", n)))
        >>> scale = Symbol("scale", "prims", meta=lambda a, n: a.like())
        >>> print(constant_folding(trace_of(lambda x: scale(x, twice(twice(3))), Tensor((2,)))))
        def program(x: "float32[2]"):
            t0 = _prims_scale(x, 12)  # float32[2]
            return t0
    """
    choose = run if run is not None else _by_example

    def visit(bound: BoundSymbol) -> Any:
        if not _foldable(bound):
            return KEEP
        function = choose(bound.symbol)
        return KEEP if function is None else function(*bound.args, **bound.kwargs)

    return rewrite(trace, visit)


def _foldable(bound: BoundSymbol) -> bool:
    """Whether a call with constants for arguments returns numbers, and the same ones each time."""
    if has_effect(bound) or is_random(bound) or flat_proxies(bound.args) or flat_proxies(bound.kwargs):
        return False
    output = bound.output
    return isinstance(output, Proxy) and isinstance(output, NumberProxy)
