"""Programs that check values, in a module whose assertions are Python's own: pytest rewrites those of tests."""

import operator

import torch


def asserts(x):
    assert x.sum() > 0, f"the sum is {x.sum()}"
    return x * 2


def asserts_by_torch(x):
    torch._assert(x.sum() > 0, "not positive")
    torch._assert(x.ndim == 2, "no matrix")
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


def is_positive(x):
    return bool((x > 0).all())


def asks_a_function(x):
    if not is_positive(x):
        raise ValueError(f"found invalid values: {x}")
    assert operator.truth(x.sum()) and bool(x.sum().item() < 10), "too large"
    return x * 2


def truth_itself(x):
    assert x.sum()
    return x * 3


def compares_numbers(x):
    count = (x > 0).sum().item()
    assert 0 <= count < 6.5 and count != 0, "none is positive"
    if x.sum().item() > 10:
        raise ValueError("too large")
    return x * count


def compares_sizes(x):
    count = x.nonzero().shape[0]
    full = count == x.numel()
    if not full:
        raise ValueError("zeros", count)
    return x.sum() / count


def checks(x):
    torch._check((x >= -0.5).all().item(), lambda: "too small")
    torch._check_value(x.sum().item() < 10, lambda: f"too large: {x.sum().item()}")
    torch._check_tensor_all_with(KeyError, x != 0, lambda: "zeros")
    torch._check_index(x.shape[0] == 2)
    return x * 2


def checks_tensors(x):
    torch._check_tensor_all(x == x)
    torch._check_tensor_all(x > 0, lambda: "not positive")
    return x + 1


PROGRAMS = [
    *(asserts, asserts_by_torch, refuses, refuses_in_a_loop, raises_again, distribution, asks_a_function),
    *(truth_itself, compares_numbers, compares_sizes, checks, checks_tensors),
]


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
