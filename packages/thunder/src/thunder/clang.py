"""The core language: operations with type promotion and broadcasting.

Re-exports :mod:`thunder_lang`, and has some of its operations under the names of Lightning Thunder.
"""

from typing import Any

from thunder_ir import TensorProxy
from thunder_lang import *  # noqa: F403
from thunder_lang import broadcast_shapes, convert, getitem, mul, remainder, sigmoid, take_along_dim, to

compute_broadcast_shape, maybe_convert_to_dtype = broadcast_shapes, convert
mod, take_along_axis = remainder, take_along_dim


def silu(a: TensorProxy) -> Any:
    """``a * sigmoid(a)``."""
    return mul(a, sigmoid(a))


def slice_in_dim(a: TensorProxy, start_index: int, limit_index: int, stride: int = 1, dim: int = 0) -> Any:
    """Each ``stride``-th part of ``a`` along ``dim``, from one index up to another."""
    before = (slice(None),) * (dim % a.ndim)
    return getitem(a, (*before, slice(start_index, limit_index, stride)))


def device_put(a: TensorProxy, device: Any) -> Any:
    """``a`` on a device."""
    return to(a, device=device)
