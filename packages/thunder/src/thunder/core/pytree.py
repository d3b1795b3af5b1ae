"""Re-exports :mod:`thunder_ir.trees`."""

from thunder_ir.trees import *  # noqa: F403
