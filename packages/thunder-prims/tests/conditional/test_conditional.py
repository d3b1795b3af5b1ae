import numpy as np
import pytest
from prims_machine import check_rules, close, pulled_back, run

import thunder_prims as prims
from thunder_ir import DTypeError, ShapeError, Tensor, trace_of
from thunder_prims.conditional import clamp_maps, jointly_clamped_maps
from thunder_testing import assert_text

GENERATOR = np.random.default_rng(11)
A, B, C = GENERATOR.uniform(-2, 2, (3, 2, 3))
PRED = A > B


def test_where_prints_as_called():
    def program(p, x):
        return prims.where(p, x, 0.0)

    assert_text(
        trace_of(program, Tensor((2,), "bool8"), Tensor((2,))),
        """
        def program(p: "bool8[2]", x: "float32[2]"):
            t0 = prims.where(p, x, 0.0)  # float32[2]
            return t0
        """,
    )


@pytest.mark.parametrize(
    "pair", [(A, B), (A, 1.5), (1.5, B), (A + 1j, B + 0j)], ids=["tensors", "left", "right", "complex"]
)
def test_rules_of_where_hold(pair):
    check_rules(prims.where, PRED, *pair)


@pytest.mark.parametrize(
    ("low", "high"),
    [(-0.5, 0.5), (None, 0.5), (-0.5, None), (B - 1, B), (None, B), (B, None), (B, 0.7), (0.0, C)],
    ids=str,
)
def test_rules_of_clamp_hold(low, high):
    check_rules(prims.clamp, A, low, high)


def test_gradients_are_shared_among_equals_where_the_host_says_so():
    a = np.array([-1.0, 0.0, 1.0, 2.0])
    assert maps_of(jointly_clamped_maps, a, -1.0, 1.0) == [[0, 1, 0, 0]]
    low, high = np.array([-1.0, 1.0, 1.0, 2.0]), np.array([1.0, 0.0, 1.0, 2.0])
    assert maps_of(jointly_clamped_maps, a, low, None) == [[0.5, 0, 0.5, 0.5], [0.5, 1, 0.5, 0.5]]
    assert maps_of(jointly_clamped_maps, a, None, high) == [[1, 0.5, 0.5, 0.5], [0, 0.5, 0.5, 0.5]]
    assert maps_of(jointly_clamped_maps, a, low, high) == [[0.5, 0, 1, 1], [0.5, 0, 0, 0], [0, 1, 0, 0]]


def maps_of(maps, a, low, high):
    """What the maps of tensors among the arguments make of ones."""

    def program(*arguments):
        return [f(arguments[-1]) for f in maps(*arguments[:-1], None) if f is not None]

    return [np.asarray(found).tolist() for found in run(program, a, low, high, np.ones(4))]


def test_a_clamped_value_on_its_bound_keeps_its_gradient():
    a = np.array([-1.0, 0.0, 1.0, 2.0])
    assert maps_of(lambda *words: clamp_maps(*words)[:1], a, -1.0, 1.0) == [[1, 1, 1, 0]]


def test_the_upper_bound_wins_over_a_greater_lower_one():
    y, gradients = run(pulled_back(prims.clamp, 3), np.zeros(1), np.full(1, 2.0), np.full(1, 1.0), np.ones(1))
    close(y, [1.0])
    close(gradients, ([0.0], [0.0], [1.0]))


@pytest.mark.parametrize("weight", [0.25, C], ids=["number", "tensor"])
def test_rules_of_lerp_hold(weight):
    check_rules(prims.lerp, A, B, weight)
    check_rules(prims.lerp, A, 2.0, weight)
    check_rules(prims.lerp, A + 1j * B, B + 1j, weight if isinstance(weight, float) else weight + 0j)


def test_where_needs_booleans():
    with pytest.raises(DTypeError, match=r"where needs a bool8 tensor as pred, got float32\[2\]"):
        trace_of(prims.where, Tensor((2,)), Tensor((2,)), Tensor((2,)))


def test_where_needs_one_shape():
    with pytest.raises(ShapeError, match=r"where of bool8\[3\] and float32\[2\] needs equal shapes"):
        trace_of(prims.where, Tensor((3,), "bool8"), Tensor((2,)), Tensor((2,)))


def test_where_needs_a_tensor_to_choose():
    with pytest.raises(TypeError, match="where needs a tensor among its operands, got the float 1.0, the float 0.0"):
        trace_of(lambda p: prims.where(p, 1.0, 0.0), Tensor((3,), "bool8"))
