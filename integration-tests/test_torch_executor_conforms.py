"""The PyTorch executor against the NumPy reference, on every sample of every prim that has some."""

import numpy as np
import pytest
import torch

from thunder_executors import to_callable
from thunder_executors_torch import executor
from thunder_testing import check_conformance, sampled_symbols


@pytest.mark.parametrize("symbol", sampled_symbols(), ids=lambda s: s.name)
def test_agrees_with_the_reference(symbol):
    check_conformance(
        symbol,
        compile=lambda trace: to_callable(trace, [executor]),
        to_device=lambda array: torch.from_numpy(np.array(array)),
        to_numpy=lambda tensor: tensor.numpy(),
    )
