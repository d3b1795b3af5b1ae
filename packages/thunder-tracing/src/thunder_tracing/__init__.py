"""Tracing: from calls of PyTorch on traced tensors to a program, without an interpreter."""

import thunder_tracing._internals_needed  # noqa: F401  (first, so that what PyTorch lacks fails no other import)
from thunder_tracing._function_tracer import SymbolicNumbers, TracedInput, TracedOutput, TracedWrite
from thunder_tracing._functions import TracedFunction, trace_function, trace_function_symbolic
from thunder_tracing._programs import trace_program
from thunder_tracing._version import __version__
from thunder_tracing.external_state import ExternalState
from thunder_tracing.tensors.shadows import FOLLOWS, follow
from thunder_tracing.tensors.storage import ViewStep
from thunder_tracing.tracer import Tracer

__all__ = [
    "ExternalState", "FOLLOWS", "SymbolicNumbers", "TracedFunction", "TracedInput", "TracedOutput", "TracedWrite",
    "Tracer", "ViewStep", "__version__", "follow", "trace_function", "trace_function_symbolic", "trace_program",
]  # fmt: skip
