"""What ``super()`` finds is guarded as what an object itself finds."""

import random

import pytest
import torch
from torch import nn

from thunder_frontend import cache_misses, jit

LOG = []
SETTINGS, NAME = {"k": 1.0}, "setting"


class Doubled:
    def __get__(self, instance, owner):
        return instance.k * 2


class Base:
    count = 0
    factor = 1.0
    doubled = Doubled()

    def __init__(self):
        self.k = 3.0

    @property
    def counted(self):
        self.count += 1
        LOG.append(self.count)
        return self.k

    @property
    def setting(self):
        return SETTINGS["k"]

    @property
    def drawn(self):
        return random.random()


class Derived(Base):
    counted = property(lambda self: super().counted)
    setting = property(lambda self: getattr(super(), NAME))
    doubled = property(lambda self: super().doubled)

    @property
    def drawn(self):
        behind = super()
        return behind.drawn

    @property
    def scaled(self):
        return super().factor

    @property
    def called(self):
        return Base.drawn.__get__(self) + Base.counted.__get__(self, Base)


@pytest.mark.parametrize("cache", ["auto", "constant values"])
@pytest.mark.parametrize("name", ["counted", "setting", "doubled", "drawn", "scaled", "called"])
def test_what_it_finds_is_not_stale(name, cache):
    compiled = jit(lambda owner, x: x * getattr(owner, name), cache=cache)
    ours, eager = Derived(), Derived()
    for i in range(5):
        outcomes = []
        for owner, callee in ((ours, compiled), (eager, lambda owner, x: x * getattr(owner, name))):
            random.seed(i), LOG.clear()
            owner.k, SETTINGS["k"], Base.factor = 3.0 + i, 5.0 * i, i + 2.5
            outcomes.append((callee(owner, torch.ones(2)).tolist(), owner.count, list(LOG), random.random()))
        assert outcomes[0] == outcomes[1]
    assert cache_misses(compiled) <= (5 if cache == "constant values" else 3)


class Weighted(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept, self.reads = nn.Parameter(torch.ones(3)), 0

    @property
    def weight(self):
        self.reads += 1
        return self.kept * 2


class Scaled(Weighted):
    @property
    def weight(self):
        return super().weight * 3

    def forward(self, x):
        return x * self.weight


def test_a_parameter_is_found_by_it():
    ours, eager = Scaled(), Scaled()
    compiled = jit(ours, fallback="error")
    for _ in range(3):
        for module in (compiled, eager):
            module(torch.ones(3)).sum().backward()
        assert ours.reads == eager.reads
        assert torch.equal(ours.kept.grad, eager.kept.grad)


def test_sizes_stay_dynamic():
    class Held:
        def __init__(self, x):
            self.x = x

        @property
        def rows(self):
            return self.x.expand(self.x.shape[:1] + self.x.shape[1:])

    class Again(Held):
        @property
        def rows(self):
            return super().rows

    compiled = jit(lambda x: Again(x).rows * 2)
    for size in range(2, 8):
        assert torch.equal(compiled(torch.ones(size, 3)), torch.full((size, 3), 2.0))
    assert cache_misses(compiled) <= 2
