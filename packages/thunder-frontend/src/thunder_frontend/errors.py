"""Errors of acquisition: what cannot be traced, with the way out."""

from __future__ import annotations

from thunder_ir import ThunderError


class AcquisitionError(ThunderError, RuntimeError):
    """The program does something that a trace cannot hold."""


class DataDependentError(AcquisitionError):
    """Python needs the value of a tensor that is known only when the program runs."""


class UnknownTensorError(AcquisitionError):
    """A tensor reached an operation by a way that cannot be guarded."""


class SharpEdgeError(AcquisitionError):
    """The program has an effect, or reads something, that the compiled program cannot repeat."""


class SharpEdgeWarning(UserWarning):
    """As :class:`SharpEdgeError`, where the caller asked for warnings."""


class DifferenceError(ThunderError, AssertionError):
    """A compiled call did something else than eager; only looked for with ``check="first-call"``."""
