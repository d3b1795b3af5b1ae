"""Re-exports :mod:`thunder_ir.trace`."""

from thunder_ir.trace import *  # noqa: F403
from thunder_ir.trace import Provenance, Trace

TraceCtx, TraceProvenance = Trace, Provenance
