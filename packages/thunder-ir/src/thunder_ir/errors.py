"""The errors that the traced world raises, each under the Python type that a caller would expect."""

from __future__ import annotations


class ThunderError(Exception):
    """Base of every error that Thunder raises about a program."""


class ShapeError(ThunderError, RuntimeError):
    """A shape, dimension or number of elements does not fit the operation."""


class DTypeError(ThunderError, NotImplementedError):
    """A dtype does not fit the operation: a ``RuntimeError``, and of the kind that PyTorch's kernels raise."""


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


class UnknownNumberError(ThunderError, RuntimeError):
    """The program cannot be recorded without the value of a number that is known only when it runs.

    Args:
        problem: what would have to be known.
        way_out: what to do instead; the usual advice if ``None``.
    """

    def __init__(self, problem: str, way_out: str | None = None) -> None:
        super().__init__(f"{problem}; {way_out or _USUAL}")


_USUAL = (
    "keep the choice in tensors (torch.where, masks), pass the number in as an argument, "
    "or compile the parts before and after it on their own"
)
