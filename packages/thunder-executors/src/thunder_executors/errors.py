"""What can go wrong between a program and those who run it."""

from __future__ import annotations

from thunder_ir import ThunderError


class ExecutorError(ThunderError, RuntimeError):
    """A checker, meta function, transform or implementation of an executor did what it must not."""


class UnclaimedError(ThunderError, NotImplementedError):
    """No executor at hand runs an operation, nor anything that it decomposes into."""


class UnavailableError(ThunderError, ValueError):
    """An executor that was asked for by name is not known, or cannot run here."""
