"""What nvFuser calls dtypes, and which of them it computes with in float32."""

from __future__ import annotations

from thunder_ir import DType, dtypes

TYPES = {
    dtypes.float64: "Double",
    dtypes.float32: "Float",
    dtypes.float16: "Half",
    dtypes.bfloat16: "BFloat16",
    dtypes.int64: "Int",
    dtypes.int32: "Int32",
    dtypes.bool8: "Bool",
}
"""Others have no name there, or are not taken yet: complex numbers and those of 8 bits."""

HALVES = frozenset({dtypes.float16, dtypes.bfloat16})


def type_text(dtype: DType) -> str:
    """Return how a definition names a dtype.

    Example:
        >>> from thunder_executors_nvfuser.types import type_text
        >>> from thunder_ir import dtypes
        >>> type_text(dtypes.bfloat16)
        'DataType.BFloat16'
    """
    return f"DataType.{TYPES[dtype]}"


__all__ = ["HALVES", "TYPES", "type_text"]
