"""Equations of ``torch.einsum`` on one tensor that only rearrange it, against PyTorch."""

import pytest
import torch

from thunder_tracing.tensors._einsum_views import rearranged


def plainly(function, args, kwargs):
    return function(*args, **kwargs)


@pytest.mark.parametrize("equation, shape", [("ij -> ji", (2, 3)), ("ii -> i", (3, 3)), ("...ij->...ji", (2, 3, 4))])
def test_what_keeps_all_dimensions_is_a_view(equation, shape):
    x = torch.randn(shape)
    view = rearranged(x, shape, equation, plainly)
    assert torch.equal(view, torch.einsum(equation, x))
    assert view.data_ptr() == x.data_ptr()


@pytest.mark.parametrize("equation, shape", [("ij -> i", (2, 3)), ("ii ->", (3, 3)), ("ij->ijj", (2, 3))])
def test_what_sums_or_repeats_is_none(equation, shape):
    assert rearranged(torch.randn(shape), shape, equation, plainly) is None
