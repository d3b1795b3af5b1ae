"""Numbers drawn from Python's and NumPy's generators are values of each call, drawn where eager draws them."""

import random
import subprocess
import sys

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


def methods(x):
    drawn = [random.gauss(0, 1), random.normalvariate(1, 2), random.expovariate(2), random.triangular(0, 1, 0.5)]
    return x * sum(drawn) + random.choice([0.5, 1.5, 2.5]) + random.randrange(1000) + random.betavariate(1, 2)


def test_methods_of_generators_draw_as_a_whole():
    assert cache_misses(same_as_eager(methods, 8, fallback="error")) == 1


def test_what_is_drawn_from_is_guarded():
    class Options:
        values = [1.0, 2.0]

    def program(x):
        return x * random.choice(Options.values)

    compiled = jit(program, fallback="error")
    assert compiled(torch.ones(1)).item() in (1, 2)
    Options.values[:] = [5.0, 6.0]
    assert compiled(torch.ones(1)).item() in (5, 6)


def test_a_draw_of_another_type_runs_as_eager():
    compiled = same_as_eager(lambda x: x * random.choice([1, 1, 1, 2.0]), 20)
    assert cache_misses(compiled) < 4


class Loud(random.Random):
    drawn = 0

    def random(self):
        Loud.drawn += 1
        return super().random()


def test_generators_of_ones_own_classes_are_interpreted():
    loud = Loud(3)
    compiled = jit(lambda x: x * loud.uniform(1, 2))
    found = [compiled(torch.ones(1)).item() for _ in range(3)]
    expected = random.Random(3)
    assert found == pytest.approx([expected.uniform(1, 2) for _ in range(3)])
    assert Loud.drawn == 3


def test_generators_without_seeds_stay_refused():
    for program in (lambda x: x * random.Random().random(), lambda x: x * random.SystemRandom().random()):
        with pytest.raises(AcquisitionError):
            jit(program, fallback="error")(torch.ones(2))


def seeded(x):
    random.seed(3)
    np.random.seed(4)
    first = random.random() + np.random.rand()
    np.random.seed(5)
    return x * first + np.random.rand() + np.random.sample() + (1 if random.random() < 0.5 else 2)


def test_seeds_are_set_by_each_call():
    assert cache_misses(same_as_eager(seeded, 4, fallback="error")) == 1
    assert cache_misses(same_as_eager(lambda x: x * random.Random(3).random() + random.random(), 4)) == 1


@pytest.mark.filterwarnings("ignore::thunder_frontend.FallbackWarning")
def test_states_are_taken_and_set_in_python():
    def program(x):
        own, numpys = random.getstate(), np.random.get_state()
        y = x * random.random() + np.random.rand()
        random.setstate(own)
        np.random.set_state(numpys)
        return y + random.random() + np.random.rand()

    same_as_eager(program, 4, fallback="split")


@pytest.mark.parametrize("draw", ["exponential_", "geometric_", "cauchy_", "log_normal_", "normal_"])
def test_finding_metadata_does_not_draw_from_a_generator_of_pytorch(draw):
    def program(x, generator):
        given = {"p": 0.5} if draw == "geometric_" else {}
        return getattr(x.clone(), draw)(**given, generator=generator)

    compiled = jit(program, fallback="error")
    ours, eagers = torch.Generator().manual_seed(1), torch.Generator().manual_seed(1)
    for _ in range(3):
        assert torch.equal(compiled(torch.ones(3, 4), ours), program(torch.ones(3, 4), eagers))
    assert torch.equal(ours.get_state(), eagers.get_state())


BEFORE_NUMPYS_GENERATOR_IS_LOADED = """
import sys

import numpy as np
import torch

from thunder_frontend import cache_misses, jit

assert jit(lambda x: x * 2)(torch.ones(1)) == 2 and "numpy.random" not in sys.modules
compiled = jit(lambda x: x * np.random.rand(), fallback="error")
first, second = compiled(torch.ones(1)), compiled(torch.ones(1))
print(cache_misses(compiled), bool(first == second))
"""


def test_numpys_generator_is_loaded_by_who_asks_for_it():
    command = [sys.executable, "-c", BEFORE_NUMPYS_GENERATOR_IS_LOADED]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, "1 False\n"), run.stderr
