"""Re-exports :mod:`thunder_ir.devices`."""

from thunder_ir.devices import *  # noqa: F403
