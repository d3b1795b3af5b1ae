"""Re-exports :mod:`thunder_ir.dtypes`, with the conversions from and to PyTorch's, and questions as functions."""

from typing import Any

from thunder_ir.dtypes import *  # noqa: F403
from thunder_ir.dtypes import DType, dtype
from thunder_torch import from_torch_dtype
from thunder_torch import to_torch_dtype as to_torch_dtype


def to_dtype(what: Any) -> DType:
    """Return Thunder's data type for a name, for PyTorch's, or for itself."""
    return dtype(what) if isinstance(what, str | DType) else from_torch_dtype(what)


def is_boolean_dtype(of: DType) -> bool:
    return of.is_bool


def is_integer_dtype(of: DType) -> bool:
    """Whether values are integers or booleans."""
    return of.is_exact


def is_nonboolean_integer_dtype(of: DType) -> bool:
    return of.is_integer and not of.is_bool


def is_exact_dtype(of: DType) -> bool:
    return of.is_exact


def is_inexact_dtype(of: DType) -> bool:
    return of.is_inexact


def is_float_dtype(of: DType) -> bool:
    return of.is_floating


def is_complex_dtype(of: DType) -> bool:
    return of.is_complex


def is_weak_dtype(of: DType) -> bool:
    return of.weak
