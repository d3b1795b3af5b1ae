"""Arrays that a program draws from NumPy's generators are values of each call, and so is what NumPy computes of them."""

import copy
import random

import numpy as np
import pytest
import torch
import torch._subclasses.fake_tensor  # whose first import sets filters of warnings, which programs may read

from thunder_frontend import AcquisitionError, cache_misses, jit

OWN = random.Random(3)
STATE = np.random.RandomState(3)
GENERATOR = np.random.default_rng(3)


def seed(number):
    random.seed(number)
    np.random.seed(number)
    OWN.seed(number)
    STATE.seed(number)
    GENERATOR.bit_generator.state = np.random.PCG64(number).state


def states():
    found = np.random.get_state()[1].tolist(), STATE.get_state()[1].tolist()
    return random.getstate(), OWN.getstate(), GENERATOR.bit_generator.state, found


def plain(value):
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    if isinstance(value, torch.Tensor):
        return "tensor", value.dtype, value.tolist()
    if isinstance(value, (np.ndarray, np.generic)):
        return type(value), value.dtype, value.strides, value.tolist()
    return value


def same_as_eager(program, seeds=6, programs=1):
    compiled = jit(program, fallback="error")
    for number in range(seeds):
        found = []
        for run in (compiled, program):
            seed(number)
            found.append((plain(run(torch.arange(1.0, 7).view(2, 3).double())), states()))
        assert found[0] == found[1]
    assert cache_misses(compiled) <= programs


def masked(x):
    mask = np.random.rand(3) < 0.5
    mask[1] = True
    return x * torch.as_tensor(mask), mask


def by_views(x):
    a = np.random.rand(2, 3)
    row, column = a[0], a.T[1]
    row += 1
    column[1] = 0.5
    return x + torch.from_numpy(a), row, a


def written_by_torch(x):
    a = np.random.rand(2, 3)
    row = a[1]
    torch.from_numpy(a).mul_(2)
    return x + torch.tensor(row), row, a.sum()


def computed(x):
    a = np.random.standard_normal((2, 3)).astype(np.float32)
    b = np.concatenate([a, np.ones((1, 3), np.float32)]).clip(-1, 1)
    c = np.where(b > 0, b, np.zeros(3)).mean(axis=0)
    return x * torch.from_numpy(c) + float(np.sqrt(abs(a[0, 0]))), a.shape, len(b), a.dtype == np.float32


def sorted_in_place(x):
    a = np.random.rand(5)
    a.sort()
    return x * a[2], a


def listed(x):
    a, b, c = np.random.rand(3)
    return x * a + b - c, np.random.rand(2).tolist(), np.array([a, b])


@pytest.mark.parametrize("program", [masked, by_views, written_by_torch, computed, sorted_in_place, listed])
def test_numpy_computes_when_the_program_runs(program):
    same_as_eager(program)


def masks_spans(x):
    mask = np.zeros((2, 6), dtype=bool)
    np.put_along_axis(mask, np.random.randint(0, 6, (2, 3)), 1, -1)
    return x * torch.tensor(mask[:, :3]), mask


def one_element(x):
    a = np.zeros(3)
    a[0] = np.random.rand(2)[1]
    return x * torch.from_numpy(a), a


def rows_and_diagonals(x):
    a = np.ones((3, 3))
    row = a[1]
    row[:] = np.random.rand(3)
    np.fill_diagonal(a, np.random.rand(3))
    return x + torch.from_numpy(a[:2]), a, row


def by_functions_that_write(x):
    a, b = np.random.rand(4), np.random.rand(4)
    np.put(a, [0, 2], b[:2])
    np.putmask(a, a > 0.5, b)
    np.place(a, a < 0.1, [1.0])
    np.copyto(b[1:], b[:-1])
    return x * a[0], a, b


def where_the_result_goes(x):
    a = np.arange(6.0).reshape(2, 3)
    returned = np.add(np.random.rand(2, 3), 1, out=a)
    same = returned is a
    a += np.random.rand(3)
    a.sort()
    return x + torch.from_numpy(a), returned, same, a.sum()


def at_indices(x):
    a = np.full(4, 2.0)
    np.add.at(a, np.random.randint(0, 4, 3), 1)
    b = a.copy()
    b[1] = 5
    b[np.random.permutation(4)[:2]] = 3
    return x * a[0], a, b


def of_what_is_computed(x):
    a = np.zeros(3, np.float32)
    kept = a
    a = a + 1
    a[1:] *= np.random.rand(2)
    kept[0] = 4
    return x + torch.as_tensor(a), a, kept


@pytest.mark.parametrize("program", [
    masks_spans, one_element, rows_and_diagonals, by_functions_that_write, where_the_result_goes, at_indices,
    of_what_is_computed,
])  # fmt: skip
def test_numpy_writes_to_arrays_when_the_program_runs(program):
    same_as_eager(program)


OUTSIDE = np.zeros(3)


def test_arrays_of_the_outside_world_are_not_written():
    def writes(x):
        OUTSIDE[0] = np.random.rand(2)[1]
        return x

    def writes_to_a_view(x):
        np.asarray(OUTSIDE)[1:][:] = np.random.rand(2)
        return x

    def writes_to_what_is_spread_out(x):
        a = np.broadcast_to(np.random.rand(3), (2, 3))
        a[0] = 1
        return x, a

    for program in (writes, writes_to_a_view, writes_to_what_is_spread_out):
        with pytest.raises(AcquisitionError):
            jit(program, fallback="error")(torch.ones(3))
        assert not OUTSIDE.any()


@pytest.mark.parametrize("program", [
    lambda x: x[:, np.random.permutation(3)],
    lambda x: x[:, torch.from_numpy(np.random.permutation(3))],
    lambda x: x[np.random.randint(0, 2, 4), 1],
    lambda x: x * np.random.rand(1).item() + np.random.choice([1.0, 2.0]),
    lambda x: x * np.random.beta(1.0, 2.0, size=3)[-1],
    lambda x: x.index_select(1, torch.tensor(np.random.choice(3, 2, replace=False))),
    lambda x: isinstance(np.random.rand(3)[0], float) and isinstance(np.random.rand(3), np.ndarray),
    lambda x: type(np.random.rand(3)) is np.ndarray and x * 1,
])  # fmt: skip
def test_they_index_and_scale_tensors(program):
    same_as_eager(program)


@pytest.mark.parametrize("program", [
    lambda x: x * OWN.random() + OWN.gauss(0, 1) + OWN.randint(0, 100),
    lambda x: x * STATE.rand() + torch.from_numpy(STATE.rand(3)),
    lambda x: x * GENERATOR.random() + torch.from_numpy(GENERATOR.normal(size=3)) + int(GENERATOR.integers(10)),
    lambda x: x * random.Random(5).random() + np.random.default_rng(5).random(),
    lambda x: x + torch.from_numpy(np.random.RandomState(5).rand(3)),
])  # fmt: skip
def test_generators_of_their_own(program):
    same_as_eager(program)


def test_branches_on_them_are_outcomes():
    def program(x):
        return x * 2 if np.random.rand(1)[0] < 0.5 else x.sin() + random.choice([1.0, 2.0])

    same_as_eager(program, 12, 3)
    same_as_eager(lambda x: x[np.random.randint(0, 2, 1)[0]], 6, 2)


def test_what_is_not_recorded_is_refused():
    def of_another_shape(x):
        a = np.random.rand(500)
        return x, a[a > 0.5]

    def as_text(x):
        return x, f"{np.random.rand(2)}"

    def without_seed(x):
        return x * np.random.default_rng().random()

    def in_place(x):
        a = np.arange(3)
        np.random.shuffle(a)
        return x, a

    for program in (of_another_shape, as_text, without_seed, in_place):
        with pytest.raises(AcquisitionError):
            jit(program, fallback="error")(torch.ones(3))


def test_another_generator_is_another_program():
    class Noise:
        generator = np.random.RandomState(1)

    def program(x):
        return x + Noise.generator.rand()

    compiled = jit(program)
    compiled(torch.zeros(2))
    Noise.generator = np.random.RandomState(7)
    expected = np.random.RandomState(7).rand()
    torch.testing.assert_close(compiled(torch.zeros(2)), torch.full((2,), expected))


def test_a_generator_that_is_returned_is_one_of_each_call():
    compiled = jit(lambda x: (x + 1, np.random.default_rng(5)))
    first, second = (compiled(torch.ones(2))[1] for _ in range(2))
    assert first is not second
    assert first.random() == copy.deepcopy(second).random() == np.random.default_rng(5).random()
    assert first.random() != second.random()
