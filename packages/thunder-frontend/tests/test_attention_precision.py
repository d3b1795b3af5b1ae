"""Second derivatives of attention in half precision are as near to float64 as eager's."""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from thunder_frontend import jit

attention = torch.nn.functional.scaled_dot_product_attention


def by_its_formula(*inputs):
    """Attention by what has second derivatives in every version of PyTorch."""
    with sdpa_kernel(SDPBackend.MATH):
        return attention(*inputs)


def second_derivatives(function, inputs):
    leaves = [t.clone().requires_grad_() for t in inputs[:3]]
    (first,) = torch.autograd.grad((function(*leaves) * inputs[3]).sum(), leaves[0], create_graph=True)
    return torch.autograd.grad((first * inputs[4]).sum(), leaves)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_second_derivatives_of_attention_are_as_precise_as_eagers(dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    inputs = [torch.randn(4, 8, 16, generator=generator).to(dtype) for _ in range(5)]
    exact = second_derivatives(by_its_formula, [t.double() for t in inputs])

    def error(function):
        found = second_derivatives(function, inputs)
        return max([(a.double() - b).abs().max().item() for a, b in zip(found, exact, strict=True)])

    assert error(jit(attention, fallback="error")) <= 1.5 * error(by_its_formula)
