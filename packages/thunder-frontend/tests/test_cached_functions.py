"""Functions with a cache, called with objects that the program makes: what is in the cache is the answer, as in eager."""

import functools
import os
from typing import NamedTuple

import pytest
import torch

from thunder_frontend import cache_misses, jit


class Key:
    def __init__(self, shape):
        self.shape = shape

    def __hash__(self):
        return hash(self.shape)

    def __eq__(self, other):
        return self.shape == other.shape


class Named(NamedTuple):
    shape: tuple
    kind: str = "sum"


@pytest.mark.parametrize("key", [Key, Named, lambda shape: (Key(shape), "b")], ids=["object", "named tuple", "within"])
def test_a_function_is_made_once_for_each_key(key):
    made = []

    @functools.lru_cache
    def function_for(key):
        made.append(os.urandom(4))  # each call of the function itself makes another one
        scale = len(made)
        return (lambda x: x * scale), "its text"

    def program(x):
        function, _ = function_for(key(tuple(x.shape)))
        return function(x)

    compiled = jit(program)
    for shape, expected in (((2,), 1), ((3,), 2), ((2,), 1), ((3,), 2)):
        assert compiled(torch.ones(shape)).tolist() == [expected] * shape[0]
    assert len(made) == 2
    assert cache_misses(compiled) == 2
    function_for.cache_clear()
    assert compiled(torch.ones(2)).tolist() == [3.0, 3.0]


def test_what_a_cache_makes_of_tensors_of_the_program_is_made_by_each_call():
    @functools.lru_cache
    def doubled(key):
        return key.shape[0] * 2

    def program(x):
        return doubled(Key((x,))) + 1

    compiled = jit(program)
    for value in (1.0, 2.0):
        assert compiled(torch.tensor(value)) == 2 * value + 1


def test_objects_that_are_equal_to_themselves_alone_are_keys_of_no_later_call():
    class Own:
        pass

    factor = [2.0]

    @functools.lru_cache
    def of(own):
        return factor[0]

    def program(x):
        return x * of(Own())

    compiled = jit(program)
    assert compiled(torch.ones(1)) == 2
    factor[0] = 3.0
    assert compiled(torch.ones(1)) == 3
