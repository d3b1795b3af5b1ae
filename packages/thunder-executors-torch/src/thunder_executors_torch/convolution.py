"""Convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

import thunder_prims as prims
from thunder_executors import arguments
from thunder_executors_torch.executor import executor
from thunder_ir import TensorProxy

executor.implements(prims.convolution)(torch.convolution)


@executor.calls(torch.ops.aten.convolution_backward.default, prims.convolution_backward)
def convolution_backward(
    dy: TensorProxy,
    a: TensorProxy,
    weight: TensorProxy,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    mask: Sequence[bool],
) -> Any:
    parameters = (stride, padding, dilation, transposed, output_padding, groups)
    return arguments(dy, a, weight, (dy.shape[1],), *parameters, mask)
