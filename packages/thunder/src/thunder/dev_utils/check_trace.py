"""Check that a trace is well formed."""

from thunder_ir import verify

check_trace = verify

__all__ = ["check_trace"]
