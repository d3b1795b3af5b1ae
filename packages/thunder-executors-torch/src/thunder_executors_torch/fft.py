"""Discrete Fourier transforms."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import torch

import thunder_prims as prims
from thunder_executors import arguments
from thunder_executors_torch.executor import executor
from thunder_ir import BoundSymbol, TensorProxy

FORWARD_NORM = MappingProxyType({"none": "backward", "root": "ortho", "full": "forward"})
BACKWARD_NORM = MappingProxyType({"none": "forward", "root": "ortho", "full": "backward"})


def is_backward(bound: BoundSymbol) -> bool:
    """Whether the sign of the exponent is plus."""
    return not bound.args[3]


@executor.calls(torch.fft.ifftn, prims.fft_c2c, when=is_backward)
def ifftn(a: TensorProxy, dims: Sequence[int], normalization: str, forward: bool) -> Any:
    return arguments(a, dim=tuple(dims), norm=BACKWARD_NORM[normalization])


@executor.calls(torch.fft.fftn, prims.fft_c2c)
def fftn(a: TensorProxy, dims: Sequence[int], normalization: str, forward: bool) -> Any:
    return arguments(a, dim=tuple(dims), norm=FORWARD_NORM[normalization])


@executor.calls(torch.fft.rfftn, prims.fft_r2c)
def rfftn(a: TensorProxy, dims: Sequence[int], normalization: str) -> Any:
    return arguments(a, dim=tuple(dims), norm=FORWARD_NORM[normalization])


@executor.calls(torch.fft.irfftn, prims.fft_c2r)
def irfftn(a: TensorProxy, dims: Sequence[int], normalization: str, last_length: Any) -> Any:
    sizes = [*[a.shape[dim] for dim in dims[:-1]], last_length]
    return arguments(a, s=tuple(sizes), dim=tuple(dims), norm=BACKWARD_NORM[normalization])
