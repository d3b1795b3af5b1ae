"""Objects that each call puts in the place of others, such as states of models: the second program serves them all."""

import copy
import dataclasses
from typing import NamedTuple

import pytest
import torch

from thunder_frontend import cache_misses, jit


class Pair(NamedTuple):
    hidden: torch.Tensor
    step: str = "a"


@dataclasses.dataclass(frozen=True)
class Frozen:
    hidden: torch.Tensor
    step: str = "a"


class Plain:
    def __init__(self, hidden):
        self.hidden = hidden


def of_tuple(self, x):
    hidden, other = self.state
    hidden = torch.tanh(self.linear(x) + hidden).detach()
    self.state = (hidden, other + 1)
    return hidden + other


def of_list(self, x):
    self.state = [torch.tanh(self.linear(x) + self.state[0]).detach()]
    return self.state[0] * 2


def of_dict(self, x):
    self.state = {**self.state, "hidden": torch.tanh(self.linear(x) + self.state["hidden"]).detach()}
    return self.state["hidden"] * 2


def of_named_tuple(self, x):
    self.state = self.state._replace(hidden=torch.tanh(self.linear(x) + self.state.hidden).detach())
    return self.state.hidden * 2


def of_dataclass(self, x):
    self.state = dataclasses.replace(self.state, hidden=torch.tanh(self.linear(x) + self.state.hidden).detach())
    return self.state.hidden * 2


def of_object(self, x):
    self.state = Plain(torch.tanh(self.linear(x) + self.state.hidden).detach())
    return self.state.hidden * 2


def of_key(self, x):
    (hidden,) = self.state["layer"]
    self.state["layer"] = (torch.tanh(self.linear(x) + hidden).detach(),)
    return hidden * 2


STATES = {
    of_tuple: lambda h: (h, h + 1), of_list: lambda h: [h], of_dict: lambda h: {"kept": 1, "hidden": h},
    of_named_tuple: Pair, of_dataclass: Frozen, of_object: Plain, of_key: lambda h: {"layer": (h,)},
}  # fmt: skip


class Recurrent(torch.nn.Module):
    def __init__(self, step):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.step = step
        self.state = STATES[step](torch.zeros(2, 3))

    def forward(self, x):
        return self.step(self, x)


def alike(eager, compiled, calls=4):
    for _ in range(calls):
        x = torch.randn(2, 3)
        torch.testing.assert_close(compiled(x), eager(x))


@pytest.mark.parametrize("step", STATES, ids=lambda step: step.__name__)
def test_two_programs_serve_all_states(step):
    eager = Recurrent(step)
    compiled = jit(copy.deepcopy(eager))
    alike(eager, compiled)
    assert type(compiled.state) is type(eager.state)
    assert cache_misses(compiled) == 2


@pytest.mark.parametrize("step", STATES, ids=lambda step: step.__name__)
def test_equal_blocks_each_have_a_state_of_their_own(step):
    eager = torch.nn.Sequential(*[Recurrent(step) for _ in range(4)])
    compiled = jit(copy.deepcopy(eager))
    alike(eager, compiled)
    assert cache_misses(compiled) == 2


def test_states_may_be_set_from_outside():
    eager = Recurrent(of_named_tuple)
    compiled = jit(copy.deepcopy(eager))
    alike(eager, compiled)
    for module in (eager, compiled):
        module.state = Pair(torch.ones(2, 3))
    alike(eager, compiled)
    assert cache_misses(compiled) == 2
    for module in (eager, compiled):
        module.state = Pair(torch.ones(2, 3), "b")
    alike(eager, compiled)
    for module in (eager, compiled):
        module.state = Pair(torch.ones(1, 3), "b")
    alike(eager, compiled)
    for module in (eager, compiled):
        module.state = Frozen(torch.ones(1, 3), "b")
    with pytest.raises(AttributeError):
        compiled(torch.randn(2, 3))


def test_what_a_recurrent_network_returns_is_its_next_state():
    class Remembers(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = torch.nn.LSTM(3, 4, batch_first=True)
            self.hidden = None

        def forward(self, x):
            y, hidden = self.lstm(x, self.hidden)
            self.hidden = tuple(h.detach() for h in hidden)
            return y

    eager = Remembers()
    compiled = jit(copy.deepcopy(eager))
    for _ in range(5):
        x = torch.randn(2, 5, 3)
        torch.testing.assert_close(compiled(x), eager(x))
    assert cache_misses(compiled) == 3


def test_two_names_of_one_state_stay_told_apart():
    class Two(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.now = self.last = [torch.zeros(3)]

        def forward(self, x):
            same = self.now is self.last
            self.last, self.now = self.now, [self.now[0] + x]
            return (self.now[0] - self.last[0]) * (2 if same else 3)

    eager = Two()
    compiled = jit(copy.deepcopy(eager))
    for module in (eager, compiled):
        module.calls = [module(torch.ones(3)) for _ in range(4)]
        module.last = module.now
        module.calls += [module(torch.ones(3)) for _ in range(2)]
    torch.testing.assert_close(compiled.calls, eager.calls)
