"""Re-exports :mod:`thunder_prims`."""

from thunder_prims import *  # noqa: F403
