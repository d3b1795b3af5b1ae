"""The errors that the traced world raises, each under the Python type that a caller would expect."""

from __future__ import annotations


class ThunderError(Exception):
    """Base of every error that Thunder raises about a program."""


class ShapeError(ThunderError, RuntimeError):
    """A shape, dimension or number of elements does not fit the operation."""


class DTypeError(ThunderError, RuntimeError):
    """A dtype does not fit the operation."""


class DeviceError(ThunderError, RuntimeError):
    """Tensors of one operation live on different devices, or a device is not known."""


class DimensionError(ThunderError, IndexError):
    """A dimension lies outside the range of the tensor's dimensions."""


class OutsideTraceError(ThunderError, RuntimeError):
    """A symbol or an operator of a proxy was used where no trace is being recorded."""


class MissingRuleError(ThunderError, NotImplementedError):
    """A rule table has no entry for a symbol."""


class DuplicateRuleError(ThunderError, ValueError):
    """A rule table has an entry for the symbol already."""


class VerificationError(ThunderError, ValueError):
    """A trace breaks a law of traces; the message names the line."""


class TraceFormatError(ThunderError, ValueError):
    """A text is not a saved trace, or not one that can be trusted."""
