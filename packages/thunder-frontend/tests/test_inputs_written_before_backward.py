"""Inputs that are written to between a call and its backward pass: what was copied of them is as it was."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from thunder_frontend import jit


def large(first):
    """Return a program large enough to compute something cheap again in its backward program."""
    return lambda x, w: (first(x, w) @ w @ w @ w @ w,)


COPIED = {
    "expanded and reshaped": lambda x, w: x.expand(2, 64, 64).reshape(-1, 64) * w.repeat(2, 1),
    "flattened": lambda x, w: x.t().flatten() * w.view(-1),
    "ravelled": lambda x, w: x.t().ravel() * w.view(-1),
    "contiguous": lambda x, w: x.t().contiguous() * w,
    "shuffled": lambda x, w: F.pixel_shuffle(x.view(64, 8, 8), 8)[0] * w,
    "repeated": lambda x, w: x.repeat(2, 1) * w.repeat(2, 1),
    "moved": lambda x, w: x.view(8, 8, 64).movedim(0, 2).reshape(64, 64) * w,
    "tiled": lambda x, w: torch.tile(x, (1, 2)) * torch.tile(w, (1, 2)),
    "indexed": lambda x, w: x[torch.arange(63, -1, -1)] * w,
    "stacked": lambda x, w: torch.stack([x])[0] * w,
    "greatest": lambda x, w: x.max(1).values * w[0],
    "sum": large(lambda x, w: (x + 1) * w),
    "cast": large(lambda x, w: (x.double() * w.double()).float()),
    "of a copy": large(lambda x, w: (x.t().reshape(-1) + 1).view(64, 64) * w),
    "of a view": large(lambda x, w: (x.t() * 2) * w),
}
VIEWED = {
    "itself": lambda x, w: x * w,
    "reshaped": lambda x, w: x.reshape(-1) * w.view(-1),
    "transposed": lambda x, w: x.t() * w,
    "contiguous already": lambda x, w: x.contiguous() * w,
    "of two views": lambda x, w: x.view(8, 8, 64).flatten(0, 1).unflatten(1, (8, 8)).reshape(64, 64) * w,
}
WRITES = {
    "untracked": lambda x: x.data.mul_(2),
    "part": lambda x: x.data[0].zero_(),
    "nothing": lambda x: None,
}


def gradients(function, write, leaf=False):
    torch.manual_seed(0)
    x, w = torch.rand(64, 64, requires_grad=True), torch.rand(64, 64, requires_grad=True)
    given = x if leaf else x * 1
    results = function(given, w)
    with torch.no_grad():
        write(given)
    results[0].sum().backward()
    return x.grad, w.grad


@pytest.mark.parametrize("partition", ["min-cut", "save-all"])
@pytest.mark.parametrize("leaf", [True, False], ids=["leaf", "computed"])
@pytest.mark.parametrize("write", [WRITES["untracked"], lambda x: x.mul_(2)], ids=["untracked", "tracked"])
@pytest.mark.parametrize("program", COPIED.values(), ids=COPIED)
def test_what_was_copied_of_an_input_is_as_it_was(program, write, leaf, partition):
    compiled = jit(program, fallback="error", partition=partition)
    for _ in range(2):
        torch.testing.assert_close(gradients(compiled, write, leaf), gradients(program, write, leaf))


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("program", VIEWED.values(), ids=VIEWED)
def test_views_of_an_input_are_as_it_is(program, write):
    compiled = jit(program, fallback="error")
    for _ in range(2):
        torch.testing.assert_close(gradients(compiled, write), gradients(program, write))


@pytest.mark.parametrize("leaf", [True, False], ids=["leaf", "computed"])
@pytest.mark.parametrize("program", VIEWED.values(), ids=VIEWED)
def test_what_was_saved_and_written_to_is_refused(program, leaf):
    for function in (program, jit(program, fallback="error")):
        with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
            gradients(function, lambda x: x.mul_(2), leaf)


@pytest.mark.parametrize(
    ("written", "write"),
    [(1, lambda w: w.mul_(-2)), (2, lambda b: b.mul_(-2)), (2, lambda b: b.data.mul_(-2))],
    ids=["weight", "bias", "bias, untracked"],
)
@pytest.mark.parametrize(
    "program",
    [
        lambda x, w, b: (torch.relu(F.batch_norm(x, None, None, w, b, training=True)),),
        lambda x, w, b: ((torch.relu(x * w.view(-1, 1, 1) + b.view(-1, 1, 1)) * x).mean(),),
        lambda x, w, b: (torch.relu(x * torch.sin(w).view(-1, 1, 1) + torch.sin(b).view(-1, 1, 1)),),
    ],
    ids=["batch norm", "affine", "sine"],
)
def test_small_inputs_written_before_the_backward_pass_are_as_eager_keeps_them(program, written, write):
    def gradients(function):
        torch.manual_seed(0)
        given = [torch.randn(shape, requires_grad=True) for shape in ((8, 16, 32, 32), (16,), (16,))]
        (y,) = function(*given)
        with torch.no_grad():
            write(given[written])
        try:
            y.square().mean().backward()
        except RuntimeError as error:
            return str(error)[:60]
        return [t.grad for t in given]

    compiled = jit(program, fallback="error")
    for _ in range(2):
        found, expected = gradients(compiled), gradients(program)
        if isinstance(expected, str):
            assert found == expected
        else:
            torch.testing.assert_close(found, expected)
