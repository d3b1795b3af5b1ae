"""Stacks of equal blocks that their users change one by one. ``tools/soundness_sweep.py`` tries many more."""

import pytest
import torch
from repeated_models import agrees_with_eager
from torch import nn
from torch.testing import assert_close

from thunder_frontend import jit


@pytest.mark.parametrize("seed", range(12))
def test_whatever_makes_blocks_differ_counts(seed):
    agrees_with_eager(seed)


class Bag:
    pass


class Scaled(nn.Module):
    __slots__ = ("bag", "slot")

    def __init__(self, scale):
        super().__init__()
        self.linear, self.scale, self.slot, self.bag = nn.Linear(3, 3), scale, 2.0, Bag()
        self.linear.weight.factor = 2.0

    def forward(self, x):
        return self.linear(x) * self.scale(self)


SCALES = {
    "an attribute of a parameter": (lambda b: b.linear.weight.factor, lambda b: setattr(b.linear.weight, "factor", 3)),
    "none of a parameter": (lambda b: getattr(b.linear.weight, "x", 1.0), lambda b: setattr(b.linear.weight, "x", 3)),
    "none of what a slot has": (lambda b: getattr(b.bag, "x", 1.0), lambda b: setattr(b.bag, "x", 3)),
    "a slot": (lambda b: b.slot, lambda b: setattr(b, "slot", 3.0)),
}


@pytest.mark.parametrize("name", SCALES)
def test_what_is_found_by_way_of_a_block_is_found_by_way_of_the_next_one(name):
    scale, change = SCALES[name]
    model = nn.Sequential(*[Scaled(scale) for _ in range(4)])
    compiled, x = jit(model), torch.ones(2, 3)
    assert_close(compiled(x), model(x))
    for block in (model[3], model[1]):
        change(block)
        assert_close(compiled(x), model(x))
