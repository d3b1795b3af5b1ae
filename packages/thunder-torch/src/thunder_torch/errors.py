"""What the torch language refuses, each under the Python type that PyTorch's users would expect."""

from __future__ import annotations

from thunder_ir import ThunderError


class DataDependentShapeError(ThunderError, RuntimeError):
    """The shape, or a Python number, that an operation returns depends on the values in its tensors."""


class UnknownMetadataError(ThunderError, NotImplementedError):
    """Nothing tells the shape and dtype of an operation's result without running it."""


class WithoutValuesError(ThunderError, RuntimeError):
    """An operation computes with tensors of the meta device, which hold no values, and with others."""


class UnsupportedMutationError(ThunderError, RuntimeError):
    """An operation writes to its arguments in a way that has no counterpart as values."""


class FixedError(Exception):
    """PyTorch asked for the value of a symbolic size, or takes none: it is asked in another way."""
