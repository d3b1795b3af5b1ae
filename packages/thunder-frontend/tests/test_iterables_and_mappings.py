"""Iterables and mappings of user-defined classes that builtins go through. Truth is what eager does."""

from collections import OrderedDict, deque
from itertools import chain, pairwise

import pytest
import torch

from thunder_frontend import cache_misses, jit


class Table:
    """Remembers, as libraries do, what it has learned of classes."""

    learned: dict = {}

    def __init__(self, **held):
        self.held = held

    def keys(self):
        return self.held.keys()

    def __iter__(self):
        return iter(self.look(value) for value in self.held.values())

    def __getitem__(self, key):
        return self.look(self.held[key])

    def look(self, value):
        self.learned[type(value)] = True
        return value


def updated(table):
    made = {"b": 3}
    made.update(table, c=4)
    return made


def united(table):
    made = {"b": 3}
    made |= table
    return made


def grown(table):
    made = []
    made += table
    return made


@pytest.mark.parametrize(
    "program", [dict, OrderedDict, updated, united, grown, deque, lambda t: [*pairwise(t)], lambda t: [*chain(t, t)]]
)
def test_their_methods_see_the_classes_that_they_see_in_eager(program):
    def made(x):
        return program(Table(a=x * 2, b=x + 1))

    compiled, x = jit(made), torch.randn(3)
    for _ in range(3):
        Table.learned.clear()
        torch.testing.assert_close(compiled(x), made(x))
        assert Table.learned == {torch.Tensor: True}
    assert cache_misses(compiled) == 1
