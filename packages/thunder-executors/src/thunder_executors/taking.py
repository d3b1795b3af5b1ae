"""What checkers of executors ask of the tensors of a call, each with its reason where the answer is no."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from thunder_executors.implementation import Declined
from thunder_ir import DType, TensorProxy


def takes_tensors(*values: Any, on: Collection[str]) -> bool | Declined:
    """Whether these are tensors on certain devices, of sizes that are known before the program runs.

    Args:
        values: arguments of a call; ``None`` stands for one that is not given.
        on: types of devices, such as ``"cuda"``.

    Example:
        >>> from thunder_executors import takes_tensors
        >>> from thunder_ir import Tensor
        >>> takes_tensors(Tensor((2,)), on=("cuda",)).reason
        'it runs on cuda devices, and a tensor is on cpu'
    """
    for value in values:
        if value is None:
            continue
        if not isinstance(value, TensorProxy):
            return Declined(f"it takes tensors, not {type(value).__name__}")
        if value.device.type not in on:
            return Declined(f"it runs on {' and '.join(on)} devices, and a tensor is on {value.device}")
        if not all([type(size) is int for size in value.shape]):
            return Declined("a size is known only when the program runs")
    return True


def takes_dtypes(*tensors: TensorProxy | None, of: Collection[DType]) -> bool | Declined:
    """Whether these are of certain dtypes.

    Args:
        tensors: arguments of a call; ``None`` stands for one that is not given.
        of: the dtypes.

    Example:
        >>> from thunder_executors import takes_dtypes
        >>> from thunder_ir import Tensor, dtypes
        >>> takes_dtypes(Tensor((2,), "float64"), of=(dtypes.float16, dtypes.float32)).reason
        'it takes float16, float32, not float64'
    """
    for tensor in tensors:
        if tensor is not None and tensor.dtype not in of:
            return Declined(f"it takes {', '.join([d.name for d in of])}, not {tensor.dtype.name}")
    return True


__all__ = ["takes_dtypes", "takes_tensors"]
