"""Re-exports :mod:`thunder_ir.dtypes`."""

from thunder_ir.dtypes import *  # noqa: F403
