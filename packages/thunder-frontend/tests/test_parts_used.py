"""Tuples, slices and partial functions with changing numbers, in the hands of code in C as of interpreted code."""

import copy
import json
import operator
from functools import partial

import pytest
import torch
from torch import nn

from thunder_frontend import jit

X = torch.arange(40.0)


def scaled(x, k, b=0.0):
    return x * k + b


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.put(0)
        self.kept = []

    def put(self, i):
        self.shape, self.window, self.call = (i + 2, i + 3), slice(i + 1, i + 4), partial(scaled, k=i + 2.0)
        self.shapes, self.named = [(i + 2, 3)], {"a": (i + 1, 2)}

    def state(self):
        kept = [str(part) for part in self.kept[:2]], [part is self.call for part in self.kept[2:]]
        return self.shape, self.window, self.call.keywords, kept


def keeps(m, x):
    m.kept = [m.shape, m.window, m.call]
    return x * m.shape[0] * m.window.start


def puts_a_tuple(m, x):
    m.shape = (m.shape[0] + 1, x.shape[0])
    return x * m.shape[0]


def puts_a_slice(m, x):
    m.window = slice(m.window.start, m.window.stop + 1)
    return x[m.window]


def puts_a_partial(m, x):
    m.call = partial(scaled, k=m.call.keywords["k"] + 1)
    return m.call(x)


USES = {
    "text of a tuple": lambda m, x: (x * 2, str(m.shape), f"{m.shape}"),
    "a tuple that is equal": lambda m, x: x * (2 if m.shape == (4, 5) else 3),
    "a tuple in C": lambda m, x: (
        x * 2,
        sorted(m.shape),
        sum(m.shape),
        max(m.shape),
        list(m.shape),
        json.dumps(m.shape),
    ),
    "a tuple as a key": lambda m, x: (x * 2, hash(m.shape), {m.shape: 1}, m.shape in {(4, 5)}),
    "a tuple of sizes": lambda m, x: x.new_zeros(m.shape) + x[: m.shape[1]],
    "a tuple in parts": lambda m, x: (
        x,
        copy.deepcopy(m.shape),
        m.shape + (1,),
        m.shape * 2,
        m.shape[::-1],
        len(m.shape),
    ),  # noqa: RUF005
    "text of a slice": lambda m, x: (x[m.window], str(m.window)),
    "a slice that is equal": lambda m, x: x * (2 if m.window == slice(2, 5) else 3),
    "a slice in C": lambda m, x: (x, m.window.indices(40), list(range(40))[m.window], operator.getitem(x, m.window)),
    "text of a partial": lambda m, x: (m.call(x), str(m.call.keywords), repr(m.call.args)),
    "keywords of a partial": lambda m, x: (m.call(x), m.call.keywords["k"], dict(m.call.keywords)),
    "a partial in C": lambda m, x: list(map(m.call, [x, x + 1])),
    "a partial of a partial": lambda m, x: (copy.copy(m.call)(x), partial(m.call, b=1.0)(x)),
    "a list of tuples": lambda m, x: (x * 2, str(m.shapes), m.shapes[0][0], m.shapes == [(4, 5)]),
    "a dict of tuples": lambda m, x: (x * m.named["a"][0], str(m.named), list(m.named.items())),
    "first loaded": lambda m, x: (m.call(x) * m.shape[0], str(m.shape), str(m.call.keywords), str(m.window)),
    "first in C": lambda m, x: (str(m.shape), str(m.call.keywords), str(m.window), m.call(x) * m.shape[0], x[m.window]),
    "kept": keeps,
    "a tuple that is put": puts_a_tuple,
    "a slice that is put": puts_a_slice,
    "a partial that is put": puts_a_partial,
}


@pytest.mark.parametrize("cache", ["auto", "symbolic values", "constant values"])
@pytest.mark.parametrize("name", USES)
def test_each_use_sees_what_is_there(name, cache):
    compiled = jit(lambda m, x: USES[name](m, x), cache=cache)
    ours, eager = Model(), Model()
    for i in range(7):
        if not name.endswith("put"):
            ours.put(i), eager.put(i)
        assert repr(compiled(ours, X)) == repr(USES[name](eager, X))
        assert ours.state() == eager.state()
