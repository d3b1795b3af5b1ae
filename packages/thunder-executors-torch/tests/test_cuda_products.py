"""Products of groups on CUDA, on a machine without: PyTorch's own metadata of its kernel."""

import pytest
import torch
from torch._subclasses import FakeTensorMode

from thunder_executors_torch.nn import grouped_mm

SHAPES = [((24, 16), (3, 16, 8), (24, 8)), ((16, 24), (24, 8), (3, 16, 8)), ((3, 16, 24), (24, 8), (16, 8))]


@pytest.mark.parametrize("integers", [torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize(("left", "right", "shape"), SHAPES, ids=str)
def test_the_kernel_of_pytorch_takes_the_products(left, right, shape, integers):
    with FakeTensorMode():
        a, b = (torch.empty(s, dtype=torch.bfloat16, device="cuda") for s in (left, right))
        y = grouped_mm(a, b, torch.empty(3, dtype=integers, device="cuda"))
    assert y.shape == shape and y.dtype is torch.bfloat16 and y.is_cuda
