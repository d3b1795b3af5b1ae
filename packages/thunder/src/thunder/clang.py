"""The core language: operations with type promotion and broadcasting. Re-exports :mod:`thunder_lang`."""

from thunder_lang import *  # noqa: F403
