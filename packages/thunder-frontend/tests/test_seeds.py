"""Seeds that programs set and ask for are those of eager, on each call."""

import pytest
import torch

from thunder_frontend import AcquisitionError, jit

GENERATOR = torch.Generator()


def asked(x):
    return torch.initial_seed(), torch.default_generator.initial_seed()


def set_and_asked(x):
    before = torch.initial_seed()
    torch.manual_seed(7)
    return before, torch.initial_seed(), x.sum() + torch.rand(2)


def negative(x):
    torch.manual_seed(-1)
    return torch.initial_seed()


def of_a_generator(x):
    before = GENERATOR.initial_seed()
    GENERATOR.manual_seed(5)
    return before, GENERATOR.initial_seed(), torch.rand(2, generator=GENERATOR)


def of_one_made_inside(x):
    return torch.Generator().manual_seed(4).initial_seed()


def of_the_size(x):
    torch.manual_seed(x.shape[0])
    return torch.initial_seed(), torch.rand(2)


@pytest.mark.parametrize(
    "program",
    [asked, set_and_asked, negative, of_a_generator, of_one_made_inside, of_the_size],
    ids=lambda p: p.__name__,
)
def test_the_seed_is_that_of_eager(program):
    results = []
    for function in (program, jit(program, fallback="split")):
        GENERATOR.manual_seed(0)
        results.append([])
        for seed in (1, 1, 2, 3, 3, 4, 1):
            torch.manual_seed(seed)
            results[-1] += [function(torch.ones(seed)), function(torch.ones(seed)), torch.initial_seed()]
            GENERATOR.manual_seed(seed)
    torch.testing.assert_close(results[1], results[0], rtol=0, atol=0)


def test_the_seed_of_a_state_that_the_program_sets_is_asked_for_in_python():
    def program(x):
        state = torch.get_rng_state()
        torch.manual_seed(4)
        drawn = torch.rand(2)
        torch.set_rng_state(state)
        return drawn, torch.initial_seed()

    with pytest.raises(AcquisitionError, match="the seed of a state"):
        jit(program)(torch.ones(2))
    compiled = jit(program, fallback="split")
    for seed in (1, 2, 2):
        torch.manual_seed(seed)
        assert compiled(torch.ones(2))[1] == seed


def test_equal_draws_of_distributions_are_draws_of_their_own():
    def program(p):
        gamma = torch.distributions.Gamma(p, p)
        dirichlet = torch.distributions.Dirichlet(p)
        return gamma.rsample(), gamma.rsample(), dirichlet.rsample(), dirichlet.rsample()

    compiled, drawn = jit(program, fallback="error"), []
    for run in (program, compiled, compiled):
        torch.manual_seed(3)
        drawn.append(torch.stack(run(torch.tensor([2.0, 3.0]))))
    assert torch.equal(drawn[0], drawn[1]) and torch.equal(drawn[0], drawn[2])
    assert not torch.equal(drawn[0][0], drawn[0][1])
