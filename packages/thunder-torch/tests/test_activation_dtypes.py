"""Activations refuse the dtypes for which PyTorch has no kernel, whether or not anybody reads the result."""

import pytest
import torch

from thunder_ir import Tensor, trace_of
from thunder_torch import call

F = torch.nn.functional


@pytest.mark.parametrize("dtype", ["int64", "bool8", "uint8", "float32"])
@pytest.mark.parametrize(
    "function",
    [F.gelu, F.silu, F.mish, F.softplus, F.celu, F.hardsigmoid, F.hardswish, F.hardshrink, F.logsigmoid],
    ids=lambda f: f.__name__,
)
def test_what_pytorch_has_no_kernel_for_is_refused(function, dtype):
    def program(x):
        return call(function, (x,), {})

    if dtype == "float32":
        assert trace_of(program, Tensor((2,), dtype)).bound_symbols[0].subsymbols
        return
    with pytest.raises(NotImplementedError, match=r"needs a floating-point dtype|not implemented for 'Bool'"):
        _ = trace_of(program, Tensor((2,), dtype)).bound_symbols[0].subsymbols
    with pytest.raises(RuntimeError):
        function(torch.ones(2, dtype=getattr(torch, dtype.removesuffix("8") if dtype == "bool8" else dtype)))
