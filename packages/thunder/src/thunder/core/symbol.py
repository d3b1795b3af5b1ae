"""Re-exports :mod:`thunder_ir.symbols`."""

from thunder_ir.symbols import *  # noqa: F403
