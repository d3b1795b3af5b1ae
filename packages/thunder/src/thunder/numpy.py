"""NumPy's names over the core language: the array-API core."""

from thunder_lang.numpy import *  # noqa: F403
