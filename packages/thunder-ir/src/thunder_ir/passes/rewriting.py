"""The one way to write a pass that replaces calls by others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from thunder_ir.builder import Builder, recording
from thunder_ir.passes.dimensions import follow_numbers
from thunder_ir.passes.pairing import pair_outputs, renaming
from thunder_ir.passes.renaming import renamed
from thunder_ir.symbols import BoundSymbol
from thunder_ir.trace import Trace
from thunder_ir.trees import substitute


class _Keep:
    """The type of :data:`KEEP`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "KEEP"


KEEP = _Keep()
"""What a visitor returns to leave a call as it is."""

Visitor = Callable[[BoundSymbol], Any]


def rewrite(trace: Trace, visit: Visitor) -> Trace:
    """Run ``visit`` on every bound symbol in order, under a builder, and return the trace of what it made.

    Args:
        trace: the program.
        visit: takes a bound symbol, its arguments already replaced by what earlier visits returned. It returns
            :data:`KEEP` to leave the call as it is; or else what takes the place of the call's output, of the same
            structure: an argument, a number, or the result of symbols that it calls, which are recorded in its place.
            Operators mean there what the symbol's language says; locations and tags are the call's.

    Returns:
        The new trace. A value that takes the place of one old value gets its name.

    Raises:
        VerificationError: a replacement has another structure than the output that it replaces.

    Example:
        >>> from thunder_ir import Symbol, Tensor, trace_of
        >>> from thunder_ir.passes import KEEP, rewrite
        >>> exp, exp2 = (Symbol(n, "prims", meta=lambda a: a.like()) for n in ("exp", "exp2"))
        >>> def visit(bound):
        ...     return exp2(*bound.args) if bound.symbol is exp else KEEP
        >>> print(rewrite(trace_of(lambda x: exp(exp(x)), Tensor((2,))), visit))
        def program(x: "float32[2]"):
            t0 = _prims_exp2(x)  # float32[2]
            t1 = _prims_exp2(t0)  # float32[2]
            return t1
    """
    builder = Builder(trace.names())
    replaced: dict[str, Any] = {}
    defined: set[str] = set()
    done = builder.bound_symbols
    with recording(builder):
        for old in trace.bound_symbols:
            bound = old.substituted(replaced) if replaced else old
            start = len(done)
            made = _visited(builder, bound, visit)
            if made is KEEP:
                del done[start:]
                done.append(bound)
            else:
                if replaced:  # what the visitor has kept of earlier values may have been replaced since
                    done[start:] = [new.substituted(replaced) for new in done[start:]]
                    made = substitute(made, replaced)
                pair_outputs(bound.output, made, replaced)
                defined.update([p.name for new in done[start:] for p in new.outputs])
    if not replaced:
        return trace
    constraints = (*trace.constraints, *builder.constraints)
    new = trace.replace(bound_symbols=tuple(done), output=substitute(trace.output, replaced), constraints=constraints)
    return with_old_names(new, replaced, defined)


def _visited(builder: Builder, bound: BoundSymbol, visit: Visitor) -> Any:
    location = bound.location
    builder.locate = None if location is None else lambda: location
    builder.language = bound.symbol.language
    builder.tags = bound.tags
    return visit(bound)


def with_old_names(trace: Trace, replaced: dict[str, Any], defined: set[str]) -> Trace:
    """Return the trace in which values that took the place of one old value have its name.

    Args:
        trace: with the new values.
        replaced: for the names of old values, what took their place.
        defined: the names of new values, which nothing else refers to.
    """
    names = renaming(replaced, defined)
    return follow_numbers(follow_numbers(renamed(trace, names), replaced), names)
