"""The laws of traces, checked."""

from __future__ import annotations

from thunder_ir.errors import VerificationError
from thunder_ir.trace import Trace


def verify(trace: Trace) -> Trace:
    """Return the trace if every value is defined once, before it is read.

    Raises:
        VerificationError: it breaks a law; the message names the line.
    """
    defined: dict[str, str] = {}
    for proxy in trace.inputs:
        if proxy.name in defined:
            raise VerificationError(f"two inputs are called {proxy.name}")
        defined[proxy.name] = "the inputs"
    for position, bound in enumerate(trace.bound_symbols):
        line = f"line {position + 1}, {bound.symbol.id}"
        for p in bound.inputs:
            if p.name not in defined:
                raise VerificationError(f"{line}: {p.name} is read before it is defined")
        for p in bound.outputs:
            if p.name in defined:
                raise VerificationError(f"{line}: {p.name} is defined again, first by {defined[p.name]}")
            defined[p.name] = line
    for p in trace.outputs:
        if p.name not in defined:
            raise VerificationError(f"the output: {p.name} is not defined")
    return trace
