"""Running a trace again: into another one, or on values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from thunder_ir.errors import VerificationError
from thunder_ir.passes.pairing import pair_outputs
from thunder_ir.symbols import Symbol
from thunder_ir.trace import Trace
from thunder_ir.trees import substitute


def evaluate(
    trace: Trace,
    args: Sequence[Any],
    symbols: Mapping[Symbol, Callable[..., Any]] | Callable[[Symbol], Callable[..., Any]] | None = None,
) -> Any:
    """Make the calls of a trace on other arguments and return its output.

    With proxies for ``args``, under a builder, this records the program inside another one. With values for ``args``
    and functions on values for ``symbols``, it computes.

    Args:
        trace: the program.
        args: what its inputs stand for, in order.
        symbols: what is called instead of a symbol: a mapping, in which symbols may be missing, or a function from
            symbols to what is called.

    Raises:
        VerificationError: another number of arguments than the trace has inputs.

    Example:
        >>> from thunder_ir import Symbol, Tensor, trace_of
        >>> from thunder_ir.passes import evaluate
        >>> mul = Symbol("mul", "prims", meta=lambda a, b: a.like())
        >>> evaluate(trace_of(lambda x: mul(x, 3), Tensor(())), [14], {mul: lambda a, b: a * b})
        42
    """
    if len(args) != len(trace.inputs):
        raise VerificationError(f"{trace.name} takes {len(trace.inputs)} arguments, got {len(args)}")
    values: dict[str, Any] = {p.name: a for p, a in zip(trace.inputs, args, strict=True)}
    chosen = _chooser(symbols)
    for bound in trace.bound_symbols:
        call = chosen(bound.symbol)
        made = call(*substitute(bound.args, values), **substitute(bound.kwargs, values))
        pair_outputs(bound.output, made, values)
    return substitute(trace.output, values)


def _chooser(symbols: Any) -> Callable[[Symbol], Callable[..., Any]]:
    if symbols is None:
        return lambda symbol: symbol
    if isinstance(symbols, Mapping):
        return lambda symbol: symbols.get(symbol, symbol)
    return symbols  # type: ignore[no-any-return]
