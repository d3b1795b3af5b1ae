"""Prims for those who read or debug programs: they have an effect or none at all, and never a result."""

from __future__ import annotations

from typing import Any

from thunder_ir import BoundSymbol, Context, Device, DType, OpTags, TensorProxy
from thunder_ir.number_proxies import Dimension
from thunder_prims.checks import check_device, check_dtype, check_shape, check_tensor
from thunder_prims.prim import prim
from thunder_vmap import batching_rule

__all__ = ["assert_tensor_metadata", "comment", "print"]


def _as_comment(bound: BoundSymbol, context: Context) -> list[str]:
    """The text on one line, escaped where it could end the comment."""
    (text,) = bound.args
    return [f"# {text if text.isprintable() and text.isascii() else ascii(text)[1:-1]}"]


@prim(OpTags.DONT_DCE, OpTags.CONSTANT_FOR_DERIVATIVE, printer=_as_comment)
def comment(text: str) -> None:
    """Put a comment into the program."""
    if not isinstance(text, str):
        raise TypeError(f"comment needs a string, got {type(text).__name__}")


@prim(OpTags.DONT_DCE, OpTags.DONT_FUSE, OpTags.CONSTANT_FOR_DERIVATIVE)
def print(*values: Any) -> None:
    """Print tensors, numbers and strings with a blank between them when the program runs."""


@batching_rule(print)
def print_batching(size: Dimension, args: Any, dims: Any) -> tuple[None, None]:
    """Print whole batches, once."""
    print(*args)
    return None, None


@prim(OpTags.DONT_DCE, OpTags.DONT_FUSE, OpTags.CONSTANT_FOR_DERIVATIVE)
def assert_tensor_metadata(a: TensorProxy, shape: tuple[Dimension, ...], dtype: DType, device: Device) -> None:
    """Raise when the program runs if ``a`` has another shape, dtype or device."""
    check_tensor("assert_tensor_metadata", a)
    check_shape("assert_tensor_metadata", shape)
    check_dtype("assert_tensor_metadata", dtype)
    check_device("assert_tensor_metadata", device)


@batching_rule(assert_tensor_metadata)
def assert_tensor_metadata_batching(size: Dimension, args: Any, dims: Any) -> tuple[None, None]:
    """The batch dimension is one more."""
    (a, shape, dtype, device), (batch, *_) = args, dims
    assert_tensor_metadata(a, (*shape[:batch], size, *shape[batch:]), dtype, device)
    return None, None
