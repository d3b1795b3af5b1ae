"""Derivatives against central differences, batches against single calls."""

import numpy as np
import pytest
from prims_machine import check_rules

import thunder_prims as prims

GENERATOR = np.random.default_rng(11)
A = GENERATOR.uniform(-2, 2, (3, 4, 5))
REPEATED = np.array([2, 0, 2])
DIFFERENT = np.array([2, 0])


def values(*shape):
    return GENERATOR.uniform(-2, 2, shape)


@pytest.mark.parametrize("indices", [REPEATED, np.array(1), np.array([[0, 2], [1, 2]]), REPEATED[:0]], ids=str)
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_rules_of_take_hold(indices, dim):
    check_rules(prims.take, A, indices, dim)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_rules_of_adding_slices_hold(dim):
    shape = [3, 4, 5]
    shape[dim] = 3
    check_rules(prims.index_add, A, REPEATED, values(*shape), dim)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_rules_of_copying_slices_hold(dim):
    shape = [3, 4, 5]
    shape[dim] = 2
    check_rules(prims.index_copy, A, DIFFERENT, values(*shape), dim)


def test_one_index_counts_as_a_sequence_of_one():
    check_rules(prims.index_add, A, np.array(1), values(3, 1, 5), 1)
    check_rules(prims.index_copy, A, np.array(1), values(3, 1, 5), 1)


PAIRS = np.array([[0, 2], [1, 2]])
KEYS = {
    "first": (REPEATED,),
    "second": (None, REPEATED),
    "neighbours": (None, REPEATED, REPEATED),
    "apart": (REPEATED, None, REPEATED),
    "all": (REPEATED, REPEATED, REPEATED),
    "pairs": (None, PAIRS),
    "pairs apart": (PAIRS, None, PAIRS),
    "scalars": (np.array(1), None, np.array(2)),
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS.keys())
def test_rules_of_index_hold(key):
    check_rules(prims.index, A, key)


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS.keys())
def test_rules_of_accumulating_hold(key):
    shape = A[tuple(slice(None) if k is None else k for k in key)].shape
    check_rules(prims.index_put, A, key, values(*shape), True)


@pytest.mark.parametrize("key", [(DIFFERENT,), (None, DIFFERENT, DIFFERENT), (DIFFERENT, None, DIFFERENT)], ids=str)
def test_rules_of_putting_hold(key):
    shape = A[tuple(slice(None) if k is None else k for k in key)].shape
    check_rules(prims.index_put, A, key, values(*shape), False)


def test_rules_of_putting_a_slice_hold():
    check_rules(prims.slice_scatter, A, values(3, 2, 2), (0, 1, 0), (3, 3, 4), (1, 1, 2))


PLACES = np.array([[[0, 3, 1, 1, 2], [2, 2, 0, 1, 3]], [[1, 1, 1, 1, 1], [3, 2, 1, 0, 0]]])
ALL_PLACES = GENERATOR.integers(0, 4, (3, 6, 5))
DIFFERENT_PLACES = np.argsort(values(3, 4, 5), axis=1)[:2, :3]


def test_rules_of_gathering_hold():
    check_rules(prims.gather, A, PLACES, 1)
    check_rules(prims.gather, A, ALL_PLACES, 1)
    check_rules(prims.take_along_axis, A, ALL_PLACES, 1)


@pytest.mark.parametrize("source_shape", [(2, 2, 5), (3, 4, 5)], ids=str)
def test_rules_of_adding_at_places_hold(source_shape):
    check_rules(prims.scatter_add, A, PLACES, values(*source_shape), 1)


@pytest.mark.parametrize("source_shape", [(2, 3, 5), (2, 4, 6)], ids=str)
def test_rules_of_putting_at_places_hold(source_shape):
    check_rules(prims.scatter, A, DIFFERENT_PLACES, values(*source_shape), 1)
    check_rules(prims.scatter, A, DIFFERENT_PLACES, 0.5, 1)
