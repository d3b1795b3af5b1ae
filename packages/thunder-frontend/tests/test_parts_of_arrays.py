"""Tensors that share memory with parts of arrays: who writes to one, writes to the array."""

import numpy as np
import pytest
import torch

from thunder_frontend import jit


def slice_written(x, a):
    t = torch.from_numpy(a[1:])
    t += 1
    return x + t[0]


def slice_written_and_returned(x, a):
    b = a[1:]
    t = torch.from_numpy(b)
    t += 1
    return x + t[0], b


def steps_written(x, a):
    t = torch.from_numpy(a[::2])
    t.mul_(2)
    return x + t[0], a


def rows_written(x, a):
    t = torch.from_numpy(a.reshape(2, 2))
    t[0] += 1
    return x + t[0, 0]


def columns_written(x, a):
    t = torch.from_numpy(a.reshape(2, 2).T)
    t[0] += 1
    return x + t[0, 0]


def whole_written(x, a):
    t, u = torch.from_numpy(a[1:]), torch.from_numpy(a)
    u += 1
    return x + t[0]


def part_of_a_part_written(x, a):
    t = torch.as_tensor(a[1:][1:])
    t += 1
    return x + t[0]


def read_as_number_afterwards(x, a):
    t = torch.from_numpy(a[1:])
    t += 1
    return x + int(a[1])


def read_as_another_dtype(x, a):
    t = torch.from_numpy(a.view(np.int32))
    t += 1
    return x + t[0]


def part_of_its_own(x, a):
    b = a + 1
    t = torch.from_numpy(b[1:])
    t += 1
    return x + t[0], b


def returned(x, a):
    return x, torch.from_numpy(a[1:])


PROGRAMS = [
    slice_written,
    slice_written_and_returned,
    steps_written,
    rows_written,
    columns_written,
    whole_written,
    part_of_a_part_written,
    read_as_number_afterwards,
    read_as_another_dtype,
    part_of_its_own,
    returned,
]
IN_PYTHON = (columns_written, read_as_number_afterwards, read_as_another_dtype)


@pytest.mark.parametrize("part", [False, True], ids=["whole", "part"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_writes_reach_the_array(program, part):
    compiled = jit(program, fallback="split" if program in IN_PYTHON else "error")
    x = torch.ones(3)
    for first in range(4):
        whole = np.array([7, first, 1, 2 + first, 0, 9])
        a, b = whole.copy(), whole.copy()
        given, mine = (a[1:5], b[1:5]) if part else (a[1:5].copy(), b[1:5].copy())
        expected, found = program(x, given), compiled(x, mine)
        assert np.array_equal(given, mine) and np.array_equal(a, b)
        results = [r if isinstance(r, tuple) else (r,) for r in (expected, found)]
        for e, f in zip(*results, strict=True):
            assert type(e) is type(f) and np.array_equal(np.asarray(e), np.asarray(f))
            assert np.shares_memory(np.asarray(e), given) == np.shares_memory(np.asarray(f), mine)


def kept_of_an_argument(x, a, kept):
    part = a[1:]
    part += 2
    kept["part"] = part
    return x


def kept_of_its_own(x, a, kept):
    made = a + 1
    kept["made"], kept["part"] = made, made[1:]
    kept["part"][0] += 1
    return x


def of_several_kinds(x, a, kept):
    return x, a[1:], a.reshape(2, 2), a[None], a.T, a.ravel(), np.broadcast_to(a[:1], (3,))


def parts_of_parts(x, a, kept):
    first = a[1:]
    second = first[1:]
    second += 1
    return x, first, second


def of_what_tensors_write(x, a, kept):
    made = np.zeros(4)
    part = made[1:]
    tensor = torch.from_numpy(made)
    tensor += x[0]
    return x, part, made


def joined_after_a_write(x, a, kept):
    tensor = torch.from_numpy(a)
    tensor += 1
    return x, np.concatenate([a, a])


LEAVING = [kept_of_an_argument, kept_of_its_own, of_several_kinds, parts_of_parts, of_what_tensors_write]


@pytest.mark.filterwarnings("ignore::thunder_frontend.FallbackWarning")
@pytest.mark.parametrize("program", [*LEAVING, joined_after_a_write])
def test_parts_that_leave_the_program_share_its_memory(program):
    compiled = jit(program, fallback="error" if program in LEAVING else "split")
    for first in range(4):
        a, b, kept, ours = np.array([first, 1, 2 + first, 0]), np.array([first, 1, 2 + first, 0]), {}, {}
        expected, found = program(torch.ones(3), a, kept), compiled(torch.ones(3), b, ours)
        arrays = [*(expected[1:] if isinstance(expected, tuple) else ()), *kept.values(), a]
        mine = [*(found[1:] if isinstance(found, tuple) else ()), *ours.values(), b]
        assert all(np.array_equal(x, y) and x.dtype == y.dtype for x, y in zip(arrays, mine, strict=True))
        shared = [[np.shares_memory(v, w) for v in made for w in made] for made in (arrays, mine)]
        assert shared[0] == shared[1]


def whole_read_anew(x, a):
    b = a + 1
    part = b[1:]
    tensor = torch.from_numpy(part)
    tensor += 1
    return x + torch.tensor(b)[1], part, b


def part_read_anew(x, a):
    b = a + 1
    part = b[1:]
    tensor = torch.from_numpy(b)
    tensor += 1
    return x + torch.tensor(part)[0], torch.tensor(b)


@pytest.mark.parametrize("program", [whole_read_anew, part_read_anew])
def test_copies_are_made_of_what_is_there_by_then(program):
    compiled = jit(program, fallback="error")
    for first in range(3):
        expected, found = [f(torch.ones(3), np.array([first, 1])) for f in (program, compiled)]
        assert all(type(e) is type(f) and np.array_equal(e, f) for e, f in zip(expected, found, strict=True))
