"""What executes opaque calls and reads sizes, in a module whose dotted path generated code can follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from thunder_torch.errors import DataDependentShapeError


def run(call: Callable[..., Any], *values: Any) -> Any:
    """Run a call on its values."""
    return call(*values)


def read_sizes(tensor: torch.Tensor, claimed: tuple[int | None, ...]) -> tuple[Any, ...]:
    """Return a tensor and those of its sizes for which nothing is claimed.

    Args:
        tensor: what an operation returned.
        claimed: for each dimension what its size must be, or ``None``.

    Raises:
        DataDependentShapeError: the tensor has another shape than the program was compiled for.
    """
    shape = tensor.shape
    if len(shape) != len(claimed) or any([c is not None and c != n for c, n in zip(claimed, shape, strict=True)]):
        wanted = ", ".join(["any" if c is None else str(c) for c in claimed])
        raise DataDependentShapeError(
            f"an operation whose shape depends on values returned {tuple(shape)} where the program was compiled for "
            f"({wanted}): with these values it broadcasts or drops a dimension, which one program cannot hold"
        )
    return (tensor, *[n for c, n in zip(claimed, shape, strict=True) if c is None])
