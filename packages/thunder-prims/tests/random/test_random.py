import numpy as np
import pytest
from prims_machine import check_batching, run

import thunder_prims as prims
from thunder_ir import DTypeError, OpTags, ShapeError, Tensor, devices, dtypes, trace_of
from thunder_testing import assert_text
from thunder_vmap import batching_rule

CPU = devices.cpu
DRAWING = {
    prims.uniform: ((2, 3), 1.0, 2.0, dtypes.float32, CPU),
    prims.randn: ((2, 3), dtypes.float64, CPU),
    prims.randint: ((2, 3), 5, 7, dtypes.int64, CPU),
}


def test_drawing_prints_as_called():
    assert_text(
        trace_of(lambda: prims.uniform((2,), 0, 1.0, dtypes.float32, CPU)),
        """
        def program():
            t0 = prims.uniform((2,), 0, 1.0, dtypes.float32, devices.device('cpu'))  # float32[2]
            return t0
        """,
    )


@pytest.mark.parametrize("symbol", [*DRAWING, prims.randperm, prims.multinomial, prims.poisson], ids=lambda s: s.name)
def test_what_draws_says_so(symbol):
    assert OpTags.RANDOM in symbol.tags


def test_what_draws_from_an_explicit_seed_is_an_ordinary_function():
    assert OpTags.RANDOM not in prims.uniform_philox.tags


@pytest.mark.parametrize("symbol", DRAWING, ids=lambda s: s.name)
def test_each_of_a_batch_draws_its_own_numbers(symbol):
    def program():
        output, dim = batching_rule[symbol](4, DRAWING[symbol], (None,) * len(DRAWING[symbol]))
        assert dim == 0
        return output

    assert run(program).shape == (4, 2, 3)


def test_each_of_a_batch_draws_its_own_order():
    drawn = run(lambda: batching_rule[prims.randperm](4, (5, dtypes.int64, CPU), (None,) * 3)[0])
    np.testing.assert_array_equal(np.sort(drawn), [range(5)] * 4)


def test_the_same_seed_draws_the_same_numbers():
    def program(seed, offset):
        return prims.uniform_philox((2, 3), -1, 1, dtypes.float64, CPU, seed, offset)

    seeds = np.array(5), np.array(7)
    np.testing.assert_array_equal(run(program, *seeds), run(program, *seeds))


def test_a_batch_of_seeds_draws_what_each_would():
    arguments = (2, 3), -1, 1, dtypes.float64, CPU
    check_batching(prims.uniform_philox, *arguments, np.array([5]), np.array([7]))


@pytest.mark.parametrize("shape", [(5,), (2, 5)], ids=str)
def test_a_batch_of_weights_draws_its_own_indices(shape):
    def program(weights):
        return batching_rule[prims.multinomial](3, (weights, 4, True), (1, None, None))[0]

    drawn = run(program, np.moveaxis(np.full((3, *shape), 0.2), 0, 1))
    assert drawn.shape == (3, *shape[:-1], 4) and drawn.min() >= 0 and drawn.max() < 5


def test_too_few_weights_are_refused():
    with pytest.raises(ShapeError, match=r"multinomial of float32\[3\] cannot draw 4 samples without replacement"):
        trace_of(lambda w: prims.multinomial(w, 4, False), Tensor((3,)))


def test_an_empty_range_is_refused():
    with pytest.raises(ShapeError, match="randint needs low < high, got 3 and 3"):
        trace_of(lambda: prims.randint((2,), 3, 3, dtypes.int64, CPU))


def test_integers_are_not_uniform():
    with pytest.raises(DTypeError, match="uniform of int64 needs a floating-point dtype"):
        trace_of(lambda: prims.uniform((2,), 0, 1, dtypes.int64, CPU))


def test_a_seed_is_one_integer():
    with pytest.raises(
        DTypeError, match=r"uniform_philox needs an int64 tensor of one element as seed, got float32\[2\]"
    ):
        trace_of(lambda s: prims.uniform_philox((2,), 0, 1, dtypes.float32, CPU, s, 0), Tensor((2,)))


def test_the_state_of_the_generator_is_read_and_moved_on():
    def program():
        seed, offset = prims.get_and_update_rng_state(None, None, CPU)
        prims.get_and_update_rng_state(seed, offset, CPU)
        return prims.uniform_philox((2,), 0, 1, dtypes.float32, CPU, seed, offset)

    assert_text(
        trace_of(program),
        """
        def program():
            (i0, i1) = prims.get_and_update_rng_state(None, None, devices.device('cpu'))  # int, int
            (i2, i3) = prims.get_and_update_rng_state(i0, i1, devices.device('cpu'))  # int, int
            t0 = prims.uniform_philox((2,), 0, 1, dtypes.float32, devices.device('cpu'), i0, i1)  # float32[2]
            return t0
        """,
    )


def test_half_a_state_is_refused():
    with pytest.raises(TypeError, match="get_and_update_rng_state needs both seed and offset, or neither"):
        trace_of(lambda: prims.get_and_update_rng_state(1, None, CPU))
