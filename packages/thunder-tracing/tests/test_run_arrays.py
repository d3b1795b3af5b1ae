"""Arrays of NumPy's that only the run of a program brings, among what a call is given."""

import collections

import torch

from thunder_tracing.tensors.run_arrays import run_arrays_in

Named = collections.namedtuple("Named", "a b")


def test_tuples_of_all_classes_are_looked_into():
    class Own(tuple):
        __slots__ = ()

        def __new__(cls, one, two):
            return super().__new__(cls, (one, two))

    assert run_arrays_in([torch.Size([2, 3]), Named(1, 2), {"a": Own(3, 4)}]) == []
