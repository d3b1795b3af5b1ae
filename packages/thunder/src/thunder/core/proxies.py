"""Re-exports :mod:`thunder_ir.proxies`."""

from thunder_ir.proxies import *  # noqa: F403
