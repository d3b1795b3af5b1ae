"""Numbers drawn from Python's and NumPy's generators are values of each call, drawn where eager draws them."""

import random

import numpy as np
import pytest
import torch

from thunder_frontend import AcquisitionError, cache_misses, jit


def state():
    return random.getstate(), np.random.get_state()[1].tolist()


def same_as_eager(program, seeds, **options):
    compiled = jit(program, **options)
    for seed in range(seeds):
        found = []
        for run in (compiled, program):
            random.seed(seed)
            np.random.seed(seed)
            x = torch.ones(2, requires_grad=True)
            result = run(x)
            found.append((result, torch.autograd.grad(result.sum(), x)[0]))
            found.append(state())
        torch.testing.assert_close(found[0], found[2])
        assert found[1] == found[3]
    return compiled


def scaled(x):
    return x * random.random() + random.uniform(1, 2) * x.sin() + np.random.rand() + np.random.randint(5)


def test_one_program_serves_all_numbers():
    assert cache_misses(same_as_eager(scaled, 8)) == 1


def drops(x):
    x = x * random.random()
    for _ in range(3):
        if random.random() < 0.4 or np.random.uniform(0, 1) > 0.9:
            continue
        x = x * 2 + random.choice([1.0, 2.0])
    return x


def test_branches_on_them_have_a_program_for_each_outcome():
    same_as_eager(drops, 25, outcomes=100)


@pytest.mark.filterwarnings("ignore::thunder_frontend.FallbackWarning")
def test_too_many_outcomes_are_split_off():
    compiled = same_as_eager(drops, 25, outcomes=3, fallback="split")
    assert cache_misses(compiled) == 3


def test_other_generators_and_arrays_stay_refused():
    for program in (lambda x: x * random.Random(1).random(), lambda x: x + torch.from_numpy(np.random.rand(2))):
        with pytest.raises(AcquisitionError):
            jit(program)(torch.ones(2, dtype=torch.float64))
