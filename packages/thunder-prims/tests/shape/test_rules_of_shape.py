"""Derivatives against central differences, batches against single calls."""

import numpy as np
import pytest
from prims_machine import check_rules, close, run

import thunder_prims as prims
from thunder_autograd import jvp_rule

A, B = np.random.default_rng(14).uniform(-2, 2, (2, 2, 3))
LINE = np.random.default_rng(15).uniform(-2, 2, (2, 7))
CUBE = np.random.default_rng(16).uniform(-2, 2, (2, 3, 4))


@pytest.mark.parametrize("permutation", [(0, 1, 2), (2, 0, 1), (1, 2, 0), (2, 1, 0)], ids=str)
def test_rules_of_transpose_hold(permutation):
    check_rules(prims.transpose, CUBE, permutation)


@pytest.mark.parametrize(
    ("a", "shape", "dims"),
    [
        (A, (2, 3), (0, 1)),
        (A, (4, 2, 5, 3), (1, 3)),
        (A[:1], (5, 3), (0, 1)),
        (A[:1, :1], (4, 5, 1), (0, 2)),
        (np.array(2.0), (2, 3), ()),
        (A[:1], (0, 3), (0, 1)),
    ],
    ids=str,
)
def test_rules_of_broadcast_in_dim_hold(a, shape, dims):
    check_rules(prims.broadcast_in_dim, a, shape, dims)


@pytest.mark.parametrize("symbol", [prims.reshape, prims.view], ids=lambda s: s.name)
def test_rules_of_reshape_hold(symbol):
    check_rules(symbol, A, (3, 2, 1))


def test_rules_of_squeeze_hold():
    check_rules(prims.squeeze, A.reshape(1, 2, 3, 1), (3, 0))


@pytest.mark.parametrize(
    "bounds",
    [((0, 0), (2, 7)), ((0, 2), (1, 6)), ((0, 1), (2, 7), (1, 3)), ((0, 1), (2, 6), (1, 3)), ((1, 3), (1, 3), (1, 2))],
    ids=str,
)
def test_rules_of_slice_hold(bounds):
    check_rules(prims.slice, LINE, *bounds)


@pytest.mark.parametrize(
    "config",
    [
        ((1, 2, 0), (0, 0, 0)),
        ((0, 0, 2), (1, 0, 1)),
        ((-1, 0, 0), (1, -2, 0)),
        ((0, 0, 0), (-2, 3, 1)),
        ((-3, 1, 0), (0, 0, 0)),
        ((0, 0, 0), (-4, 0, 2)),
    ],
    ids=str,
)
def test_rules_of_pad_hold(config):
    check_rules(prims.pad, A, 1.5, config)


@pytest.mark.parametrize("dim", [0, 1])
def test_rules_of_cat_hold(dim):
    check_rules(prims.cat, (A, B, A[:, :2] if dim else A[:1]), dim)


def test_tangents_of_some_of_the_joined_are_enough():
    def program(a, b, da):
        return jvp_rule[prims.cat]((a, b), 0, (da, None), None)[1]

    close(run(program, A, B, A), np.concatenate([A, np.zeros_like(B)]))


@pytest.mark.parametrize("dims", [(), (0,), (1, 0)], ids=str)
def test_rules_of_flip_hold(dims):
    check_rules(prims.flip, A, dims)


@pytest.mark.parametrize(("size", "step"), [(2, 1), (3, 2), (2, 3), (7, 1), (1, 1)])
def test_rules_of_unfold_hold(size, step):
    check_rules(prims.unfold, LINE, 1, size, step)
    check_rules(prims.unfold, CUBE, 0, min(size, 2), step)
