"""What changed from one trace to another, as text."""

from __future__ import annotations

import difflib

from thunder_ir.trace import Trace


def difference(before: Trace, after: Trace, *, context: int = 3) -> str:
    """Return the printed difference of two traces, line by line; empty where they print alike.

    Args:
        before, after: the programs.
        context: how many lines around each change.

    Example:
        >>> from thunder_ir import Symbol, Tensor, trace_of
        >>> from thunder_ir.passes import dead_code_elimination, difference
        >>> exp = Symbol("exp", "prims", meta=lambda a: a.like())
        >>> trace = trace_of(lambda x: (exp(x), x)[1], Tensor((2,)))
        >>> print(difference(trace, dead_code_elimination(trace)))
        --- program
        +++ program, made by dead_code_elimination
        @@ -1,3 +1,2 @@
         def program(x: "float32[2]"):
        -    t0 = _prims_exp(x)  # float32[2]
             return x
    """
    lines = difflib.unified_diff(
        str(before).splitlines(), str(after).splitlines(), _title(before), _title(after), n=context, lineterm=""
    )
    return "\n".join(lines)


def _title(trace: Trace) -> str:
    return trace.name if trace.provenance is None else f"{trace.name}, made by {trace.provenance.made_by}"
