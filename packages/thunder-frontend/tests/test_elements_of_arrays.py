"""Elements of NumPy's arrays at places that change, as in a schedule: one program serves them all."""

import math

import pytest
import torch

from thunder_frontend import cache_misses, jit

np = pytest.importorskip("numpy")
X = torch.randn(4, 8)
BETAS = np.linspace(0.1, 0.9, 50)
SINGLE = BETAS.astype(np.float32)
COUNTS = np.arange(50)
PAIRS = np.linspace(0.1, 0.9, 100).reshape(50, 2)
READ = {
    "double": lambda x, i: x * BETAS[i],
    "single": lambda x, i: x * SINGLE[i],
    "integers": lambda x, i: x * COUNTS[i],
    "a pair": lambda x, i: x * PAIRS[i, 1] + PAIRS[i - 1, 0],
    "from behind": lambda x, i: x * BETAS[-i],
    "computed by NumPy": lambda x, i: x * np.sqrt(1 - BETAS[i]) / BETAS[i - 1],
    "computed by Python": lambda x, i: x * math.sqrt(1 - BETAS[i]) * float(BETAS[i]),
    "a tensor": lambda x, i: x * torch.tensor(BETAS[i]) + torch.full((8,), BETAS[i]),
    "looked at": lambda x, i: x * 2 if BETAS[i] > 0.05 else x * 3,
    "of an argument": lambda x, i, given=BETAS: x * given[i],
}


@pytest.mark.parametrize("name", READ)
def test_two_programs_serve_all_places(name):
    function = READ[name]
    compiled = jit(function)
    for i in range(2, 9):
        torch.testing.assert_close(compiled(X, i), function(X, i))
    assert cache_misses(compiled) == 2


def test_what_is_returned_and_refused_is_as_in_eager():
    compiled = jit(lambda x, i: BETAS[i])
    for i in range(2, 6):
        found = compiled(X, i)
        assert type(found) is np.float64 and found == BETAS[i]
    with pytest.raises(IndexError, match="out of bounds for axis 0"):
        compiled(X, 60)
    assert compiled(X, 7) == BETAS[7]


def test_what_others_write_to_the_array_is_read():
    betas = BETAS.copy()
    compiled = jit(lambda x, i: x * betas[i])
    for i in range(2, 6):
        betas[i] = i / 7
        torch.testing.assert_close(compiled(X, i), X * (i / 7))
    assert cache_misses(compiled) == 2


def test_an_element_is_what_it_was_before_the_program_wrote_to_the_array():
    betas = BETAS.copy()

    def f(x, i):
        before = betas[i]
        torch.from_numpy(betas)[i] = i / 7
        return x * before, before

    compiled = jit(f)
    for i in range(2, 6):
        _, before = compiled(X, i)
        assert before == BETAS[i] and betas[i] == i / 7


@pytest.mark.parametrize("betas", [BETAS[::-1], np.broadcast_to(BETAS[:1], (50,)), BETAS.astype(">f8"), BETAS > 0.3])
def test_arrays_of_which_no_tensor_is_made_are_read_as_they_are(betas):
    compiled = jit(lambda x, i: x * betas[i])
    for i in range(2, 5):
        torch.testing.assert_close(compiled(X, i), X * betas[i])


def test_arrays_are_read_at_lists_of_places():
    compiled = jit(lambda x, i: x * BETAS[[i, 0]].sum())
    for i in range(2, 5):
        torch.testing.assert_close(compiled(X, i), X * BETAS[[i, 0]].sum())


def test_an_array_of_the_programs_own_holds_what_was_written_to_its_tensor():
    def f(x):
        sums = np.cumsum(COUNTS[:4])
        shared = torch.from_numpy(sums)
        shared[1] = 7
        return x, sums, shared

    compiled = jit(f)
    for _ in range(2):
        _, sums, shared = compiled(X)
        assert type(sums) is np.ndarray and sums.tolist() == [0, 7, 3, 6]
        shared[0] = 5
        assert sums[0] == 5
