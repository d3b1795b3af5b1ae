"""Replacing values everywhere, where they are defined included."""

from __future__ import annotations

from typing import Any

from thunder_ir.trace import Trace
from thunder_ir.trees import substitute


def renamed(trace: Trace, names: dict[str, Any]) -> Trace:
    """Return the trace with the values in ``names`` replaced everywhere, where they are defined included."""
    if not names:
        return trace
    bound_symbols = tuple([bound.substituted(names, outputs=True) for bound in trace.bound_symbols])
    return trace.replace(
        inputs=tuple([names.get(p.name, p) for p in trace.inputs]),
        bound_symbols=bound_symbols,
        output=substitute(trace.output, names),
    )
