"""Layouts of decompositions: kernels of PyTorch that copy to contiguous memory first have contiguous results."""

from __future__ import annotations

from thunder_ir import TensorProxy, value_of
from thunder_prims import stride_order
from thunder_torch.convert import contiguous_strides


def in_rows(a: TensorProxy) -> TensorProxy:
    """Return a tensor laid out row by row, for what is computed of it to be so, too.

    Args:
        a: any tensor; one that is known to lie so comes back as it is.
    """
    return a if is_in_rows(a) else stride_order(a, tuple(reversed(range(a.ndim))))


def is_in_rows(a: TensorProxy) -> bool:
    """Whether a tensor is known to lie row by row."""
    if a.strides is None:
        return False
    shape = tuple(map(value_of, a.shape))
    found = zip(shape, map(value_of, a.strides), contiguous_strides(shape), strict=True)
    return all([size == 1 or have == want for size, have, want in found])
