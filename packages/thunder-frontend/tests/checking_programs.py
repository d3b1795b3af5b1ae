"""Programs that check values, in a module whose assertions are Python's own: pytest rewrites those of tests."""

import torch


def asserts(x):
    assert x.sum() > 0, f"the sum is {x.sum()}"
    return x * 2


def refuses(x):
    if torch.isnan(x).any() or not (x > -100).all():
        raise ValueError("bad values", x.shape)
    return x * 2


def refuses_in_a_loop(x):
    for row in x:
        if (row < 0).any():
            text = "negative"
            raise KeyError(text if row.ndim else "scalar")
    return x.sum(0)


def raises_again(x):
    try:
        assert not (x < 0).any()
    except AssertionError as error:
        raise RuntimeError("wrapped") from error
    return x + 1


def distribution(x):
    return torch.distributions.Normal(x, x).log_prob(x)


def truth_itself(x):
    assert x.sum()
    return x * 3


PROGRAMS = [asserts, refuses, refuses_in_a_loop, raises_again, distribution, truth_itself]


class Checked(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))
        self.seen = []

    def forward(self, x):
        self.calls += 1
        self.seen.append(len(self.seen))
        x.mul_(2)
        assert x.sum() < 10, "too large"
        return x + self.calls
