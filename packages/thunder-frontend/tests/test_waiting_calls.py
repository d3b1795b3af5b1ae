"""Frames that no program can hold, called by what does more with their results than hand them on."""

import random
import warnings

import numpy as np
import pytest
import torch

from thunder_frontend import jit


def odd(x):
    """Leaves PyTorch, and comes back."""
    return x * float(np.tanh(sum(memoryview(x.detach().numpy()))))


class Made:
    def __init__(self, x):
        self.fill(x)

    def fill(self, x):
        self.value = odd(x)


class MadeAtOnce:
    def __init__(self, x):
        self.value = x * float(np.tanh(sum(memoryview(x.detach().numpy()))))


class MadeList(list):
    def __init__(self, x):
        super().__init__([x])
        self.value = odd(x)


class MadeTwice(Made):
    def __init__(self, x):
        super().__init__(x)
        self.value = self.value + 1


class Box:
    def __init__(self, x):
        self.x = x

    def count(self):
        return int(sum(memoryview(self.x.detach().numpy())))

    def __len__(self):
        return self.count()

    def __bool__(self):
        return self.count() > 1

    def __contains__(self, item):
        return self.count() * item

    def __index__(self):
        return self.count()

    def __iter__(self):
        return iter([self.x] * self.count())

    def __add__(self, other):
        return NotImplemented if self.count() > 100 else odd(self.x) + other

    def __eq__(self, other):
        return self.count() == other

    __hash__ = None

    @property
    def value(self):
        return odd(self.x)

    def __getattr__(self, name):
        return odd(self.x), name

    def __enter__(self):
        return odd(self.x)

    def __exit__(self, *error):
        return bool(self.count())


def suppressed(x):
    with Box(x) as y:
        raise ValueError(y)
    return x + 1


class Seeded(random.Random):
    def seed(self, *given):
        super().seed(3)


PROGRAMS = {
    "init": lambda x: Made(x).value,
    "init itself": lambda x: MadeAtOnce(x).value,
    "init of a list": lambda x: (MadeList(x).value, len(MadeList(x))),
    "init of a base": lambda x: MadeTwice(x).value,
    "kind": lambda x: x * (type(Made(x)) is Made),
    "len": lambda x: x * len(Box(x)),
    "bool": lambda x: x * bool(Box(x)),
    "not": lambda x: x * (not Box(x)),
    "contains": lambda x: x * (3 in Box(x)),
    "not in": lambda x: x * (3 not in Box(x)),
    "index": lambda x: x * [1, 2, 3, 4][Box(x)],
    "unpacked": lambda x: sum([*Box(x)]),
    "add": lambda x: Box(x) + 1,
    "not equal": lambda x: x * (Box(x) != 2),
    "property": lambda x: Box(x).value,
    "getattr": lambda x: Box(x).other[0],
    "suppressed": suppressed,
    "random": lambda x: x * random.Random(3).random(),
    "random of a class": lambda x: x * Seeded().random(),
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_split_leaves_what_is_done_with_the_result(program):
    compiled = jit(program, fallback="split")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for value in (1.0, 0.5, 1.0):
            x = torch.full((2,), value)
            torch.testing.assert_close(compiled(x), program(x), rtol=0, atol=1e-6)
