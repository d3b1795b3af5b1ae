"""What eager has written when an operation raises for the values it is given, a compiled call has written, too."""

import copy

import pytest
import torch

from thunder_frontend import cache_misses, jit


class Model(torch.nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(3)
        self.embedding = torch.nn.Embedding(5, 3)
        self.dropout = torch.nn.Dropout(dropout)
        self.calls, self.seen = 0, []

    def forward(self, x, which):
        self.calls += 1
        self.seen.append(which.sum().detach())
        x = self.dropout(self.norm(x))
        x = x + self.embedding(which)
        self.calls += 10
        return x


def called(model, x, which):
    """What a model returns, or what it says, and the random number that comes next."""
    torch.manual_seed(0)
    try:
        result = model(x, torch.tensor(which))
    except IndexError as error:
        result = str(error)
    return result, torch.rand(())


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("fails_first", [False, True])
def test_a_model_is_left_as_eager_leaves_it(dropout, fails_first):
    eager = Model(dropout)
    ours = copy.deepcopy(eager)
    compiled = jit(ours)
    for which in [[0, 9]] * fails_first + [[0, 1], [2, 3], [0, 9], [1, 1], [-1, 0], [2, 2]]:
        x = torch.randn(2, 3)
        (expected, after), (result, drawn) = called(eager, x, which), called(compiled, x, which)
        assert type(result) is type(expected) and drawn == after
        if isinstance(result, str):
            assert result == expected
        else:
            torch.testing.assert_close(result, expected)
        assert (ours.calls, ours.seen) == (eager.calls, eager.seen)
        torch.testing.assert_close(ours.state_dict(), eager.state_dict())
    assert cache_misses(compiled) <= 3


def test_an_argument_is_written_as_far_as_eager_comes():
    def f(x, rows):
        x.add_(1)
        y = x.index_select(0, rows)
        x.mul_(3)
        return y

    compiled = jit(f)
    ours, eagers = torch.ones(3), torch.ones(3)
    for row in (0, 7, 1, 9, 2):
        outcomes = []
        for function, x in ((compiled, ours), (f, eagers)):
            try:
                outcomes.append(function(x, torch.tensor([row])).item())
            except IndexError as error:
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1]
        assert torch.equal(ours, eagers)


def test_the_error_names_the_users_line():
    def f(x, seen, rows):
        seen.append(len(seen))
        return x.index_select(0, rows)  # here

    compiled, seen = jit(f), []
    compiled(torch.ones(3), seen, torch.tensor([0]))
    with pytest.raises(IndexError) as caught:
        compiled(torch.ones(3), seen, torch.tensor([7]))
    assert seen == [0, 1]
    assert "return x.index_select(0, rows)  # here" in [str(entry.statement).strip() for entry in caught.traceback]
