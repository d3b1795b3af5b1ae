"""Re-exports :mod:`thunder_autograd`."""

from thunder_autograd import *  # noqa: F403
