"""Re-exports :mod:`thunder_ir.trace`."""

from thunder_ir.trace import *  # noqa: F403
