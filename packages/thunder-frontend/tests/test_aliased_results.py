"""Whether what functions return shares memory with their argument, and what a write to either then shows."""

import pytest
import torch
from against_eager import same_as_eager
from torch import randn

from thunder_frontend import AcquisitionError, jit

SAME = [
    lambda x: torch.nn.functional.dropout(x, 0.5, False),
    lambda x: torch.nn.functional.dropout(x, 0.0),
    torch.nn.Dropout1d(0.5).eval(),
    torch.nn.Dropout2d(0.5).eval(),
    torch.nn.Dropout2d(0.0),
    torch.nn.Dropout3d(0.5).eval(),
    torch.nn.AlphaDropout(0.5).eval(),
    torch.nn.FeatureAlphaDropout(0.5).eval(),
    lambda x: torch.feature_dropout(x, 0.5, False),
    lambda x: +x,
    torch.asarray,
    torch.conj_physical,
    lambda x: x.sum_to_size(x.shape),
    lambda x: x.to_dense(),
    lambda x: torch.cartesian_prod(x[0, 0]),
    lambda x: torch.atleast_1d([x, x])[1],
]
UNSAFE = [lambda x: torch.unsafe_chunk(x, 2)[0], lambda x: x.unsafe_split(1)[1]]
"""Parts of which PyTorch's autograd knows nothing."""


@pytest.mark.filterwarnings("ignore:dropout3d:UserWarning")
@pytest.mark.parametrize(
    ("function", "gradients"),
    [
        *[(f, g) for f in SAME for g in (False, True)],
        *[(f, False) for f in UNSAFE],
    ],
)
def test_what_functions_return_of_their_argument_is_written_with_it(function, gradients):
    def program(x):
        y = x * 2
        part = function(y)
        part.mul_(3)
        before = part + 0
        y.add_(1)
        return y, before, function(x)

    same_as_eager(program, randn(2, 4, 4, requires_grad=gradients))


def test_as_strided_beyond_a_view_drops_gradients_and_is_refused():
    def beyond(x):
        return torch.as_strided(x[:, -1], (2,), (1,)) * 2

    same_as_eager(beyond, randn(3, 3))
    with pytest.raises(AcquisitionError, match="beside those of the view"):
        jit(beyond)(randn(3, 3, requires_grad=True))
    same_as_eager(lambda x: torch.as_strided(x[:, ::2], (2, 2), (3, 2)) * 2, randn(3, 3, requires_grad=True))
    same_as_eager(lambda x: torch.as_strided(x[1:], (2, 2), (1, 3)) * 2, randn(3, 3, requires_grad=True))


@pytest.mark.parametrize(
    "program",
    [
        lambda x: (x.chunk(2)[0], x.mul_(2))[0],
        lambda x: (lambda y: (y.chunk(2)[0], y.mul_(2))[0])(x * 1),
        lambda x: (x.split(1)[0], x.unsqueeze_(0))[0],
    ],
    ids=["of an argument", "of a result", "of what got another shape"],
)
def test_a_view_whose_history_is_lost_is_returned_with_its_values_alone(program):
    base = torch.arange(4.0, requires_grad=True)
    expected, result = program(base * 1), jit(program)(base * 1)
    assert torch.equal(result.detach(), expected.detach())
    for view in (expected, result):
        with pytest.raises(RuntimeError, match="is a view and its base or another view of its base has been modified"):
            (view * 2).sum().backward()


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.repeat(1, 1), lambda x: x.tile(1), lambda x: x[0].roll(0),
        lambda x: torch.nn.functional.pad(x, (0, 0)), lambda x: x[0, 0].flip(0), lambda x: x[0, 0].max(0).values, lambda x: torch.cat([x]),
    ],
    ids=["repeat", "tile", "roll", "pad", "flip", "max", "cat"],
)  # fmt: skip
def test_what_has_nothing_to_compute_returns_a_copy(function, requires_grad):
    same_as_eager(lambda x: (function(x * 2), x * 2), torch.ones(2, 3, requires_grad=requires_grad))
    x = torch.ones(2, 3, requires_grad=requires_grad)
    result = jit(lambda x: (function(x), x.view(-1)))(x)
    assert result[0].untyped_storage()._cdata != result[1].untyped_storage()._cdata


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize(
    "view",
    [torch.view_as_real, torch.conj, lambda x: x.H, lambda x: torch.hsplit(x, 1)[0], lambda x: x.unsafe_chunk(2)[0]],
    ids=["view_as_real", "conj", "H", "hsplit", "unsafe_chunk"],
)
def test_views_of_equal_values_that_were_computed_twice_share_no_memory(view, requires_grad):
    def program(x):
        return view(x * 2), (x * 2).view(-1)

    same_as_eager(program, torch.ones(2, 3, dtype=torch.complex64, requires_grad=requires_grad))


@pytest.mark.parametrize(
    "move", [lambda x: x.roll(0), lambda x: x.repeat_interleave(1)], ids=["roll", "repeat_interleave"]
)
@pytest.mark.parametrize("cache", ["constant values", "symbolic values"])
def test_what_moves_nothing_is_a_copy(move, cache):
    compiled = jit(move, cache=cache)
    for length in (2, 3, 4):
        x = torch.randn(length, 2, requires_grad=True)
        result = compiled(x)
        assert torch.equal(result, move(x)) and result.data_ptr() != x.data_ptr()
