"""Operations whose results have sizes that follow from dynamic ones: two programs serve all sizes, as eager's results."""

import math

import pytest
import torch
from torch.nn import functional as F

from thunder_frontend import cache_misses, jit

OPERATIONS = {
    "linspace": lambda x: torch.linspace(0, 1, x.shape[-1]) * x,
    "logspace": lambda x: torch.logspace(0, 1, x.shape[-1]),
    "hann_window": lambda x: torch.hann_window(x.shape[-1]) * x,
    "vander": lambda x: torch.vander(x[0, 0, 0]),
    "gradient": lambda x: torch.gradient(x, dim=-1)[0],
    "rfft": torch.fft.rfft,
    "irfft": torch.fft.irfft,
    "fft2": torch.fft.fft2,
    "stft": lambda x: torch.stft(x.flatten(), 8, window=torch.ones(8), return_complex=True),
    "einsum of one": lambda x: torch.einsum("...ij->...ji", x) * 2,
    "einsum of three": lambda x: torch.einsum("bcij,bcjk,bckl->bil", x, x, x),
    "bilinear": lambda x: F.bilinear(x[..., :2], x[..., :2], torch.ones(3, 2, 2)),
    "unfold": lambda x: F.unfold(x, 3, padding=1),
    "fold": lambda x: F.fold(F.unfold(x, 3, padding=1), x.shape[-2:], 3, padding=1),
    "interpolate by 1.5": lambda x: F.interpolate(x, scale_factor=1.5, mode="bilinear"),
    "interpolate to a size": lambda x: F.interpolate(x, size=(x.shape[2] * 2, 7), mode="bicubic"),
    "interpolate volumes": lambda x: F.interpolate(x[:, None], scale_factor=2, mode="trilinear"),
    "grid_sample": lambda x: F.grid_sample(
        x, F.affine_grid(torch.eye(2, 3).expand(2, 2, 3), x.shape, align_corners=False), align_corners=False
    ),
    "lp_pool": lambda x: F.lp_pool2d(x, 2, 2),
    "int": lambda x: x[..., : int(x.shape[-1] * 0.5)] * 2,
    "floor": lambda x: torch.ones(math.floor(x.shape[-1] * 1.5)),
    "ceil": lambda x: torch.ones(math.ceil(x.shape[-1] / 4)),
    "trunc": lambda x: torch.ones(math.trunc(-x.shape[-1] / 4) + 9),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_two_programs_serve_all_sizes(name):
    operation = OPERATIONS[name]
    compiled = jit(operation)
    for size in (4, 6, 8, 10):
        x = torch.randn(2, 4, size, size)
        found, expected = compiled(x), operation(x)
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
        assert found.stride() == expected.stride()
    assert cache_misses(compiled) == 2


@pytest.mark.parametrize("name", ["rfft", "interpolate by 1.5", "unfold", "einsum of three", "int"])
def test_their_gradients_are_those_of_eager(name):
    operation = OPERATIONS[name]
    compiled = jit(operation)
    for size in (4, 6, 9):
        x = torch.randn(2, 4, size, size, dtype=torch.float64, requires_grad=True)
        found, expected = [torch.view_as_real(y) if y.is_complex() else y for y in (compiled(x), operation(x))]
        dy = torch.randn_like(expected)
        torch.testing.assert_close(torch.autograd.grad(found, x, dy), torch.autograd.grad(expected, x, dy))
    assert cache_misses(compiled) == 2


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_what_is_no_integer_raises_as_in_eager(value):
    def program(x, scale):
        return torch.ones(int(x.shape[0] * scale))

    compiled = jit(program)
    for scale in (0.5, 1.5, 2.5):
        assert compiled(torch.ones(4), scale).shape == program(torch.ones(4), scale).shape
    with pytest.raises((OverflowError, ValueError)) as expected:
        program(torch.ones(4), value)
    with pytest.raises(type(expected.value), match=str(expected.value)):
        compiled(torch.ones(4), value)
