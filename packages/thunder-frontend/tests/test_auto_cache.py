"""``cache="auto"``: the first program is for the sizes at hand, and what later calls show to change is dynamic."""

import collections
import itertools
import statistics
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close
from torch.utils._pytree import tree_leaves

from thunder_frontend import cache_misses, compiled_function, jit, last_traces, mark_dynamic, mark_static


def convolution():
    return nn.Sequential(nn.Conv1d(3, 4, 3, padding=1), nn.ReLU(), nn.Conv1d(4, 2, 1))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(6, 18)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.project(x).view(batch, length, 3, 2, 3).permute(2, 0, 3, 1, 4).unbind(0)
        mask = torch.ones(length, length, dtype=torch.bool).tril()
        scores = (q @ k.transpose(-1, -2) / 3**0.5).masked_fill(~mask, float("-inf"))
        return (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width)


MODELS = {
    "conv1d": (convolution, lambda n: torch.randn(2, 3, n)),
    "attention": (Attention, lambda n: torch.randn(2, n, 6)),
}


@pytest.mark.parametrize("name", MODELS)
def test_three_programs_serve_all_lengths(name):
    make, inputs = MODELS[name]
    model = make()
    compiled = jit(model, cache="auto")
    for n in (7, 12, 1, *range(4, 65, 3)):
        x = inputs(n).requires_grad_()
        ours, eagers = compiled(x), model(x)
        torch.testing.assert_close(ours, eagers)
        pair = [torch.autograd.grad(t.square().sum(), [x, *model.parameters()]) for t in (ours, eagers)]
        torch.testing.assert_close(*pair)
    assert cache_misses(compiled) <= 3


class Encoder(nn.Module):
    """Asked about padding in evaluation, with gradients."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8, batch_first=True), 2)

    def forward(self, x):
        padding = torch.arange(x.shape[1]).expand(x.shape[:2]) > 3
        return self.encoder(x, src_key_padding_mask=padding)


def drawn(x):
    generator = torch.default_generator
    return x + torch.rand(x.shape, generator=generator) + torch.randn(x.shape[0], generator=generator)


@pytest.mark.parametrize(
    ("model", "inputs"),
    [
        (Encoder().eval(), lambda n: (torch.randn(2, n, 6),)),
        (nn.functional.scaled_dot_product_attention, lambda n: torch.randn(3, 2, 2, 5, n)),
        (drawn, lambda n: (torch.randn(n),)),
    ],
    ids=["encoder", "width of heads", "generator"],
)
def test_two_programs_serve_all_sizes(model, inputs):
    compiled = jit(model, cache="auto")
    for n in (4, 6, 7, 8, 9):
        given = inputs(n)
        results = []
        for run in (compiled, model):
            torch.manual_seed(0)
            results.append(run(*given))
        assert_close(*results)
    assert cache_misses(compiled) == 2


def test_the_first_program_is_for_the_sizes_at_hand():
    compiled = jit(lambda x: x * 2, cache="auto")
    compiled(torch.ones(5))
    assert "float32[5]" in str(last_traces(compiled)[0])
    compiled(torch.ones(6))
    assert "float32[5]" not in str(last_traces(compiled)[0])
    compiled(torch.ones(5))
    compiled(torch.ones(7))
    assert cache_misses(compiled) == 2


def test_only_what_changed_is_left_open():
    compiled = jit(lambda x, y, n: x.sum() * n + y, cache="auto")
    for size, n in ((3, 5), (4, 5), (6, 5), (6, 7), (6, 9), (8, 11)):
        x, y = torch.ones(size, 2), torch.ones(3)
        torch.testing.assert_close(compiled(x, y, n), x.sum() * n + y)
    assert cache_misses(compiled) == 3
    assert "float32[3]" in str(last_traces(compiled)[0]) and ", 2]" in str(last_traces(compiled)[0])


class KeepsKeys(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.keys = None

    def forward(self, x):
        self.keys = x if self.keys is None else torch.cat([self.keys, x])
        return (x @ self.keys.T).softmax(-1) @ self.keys


class GrowsMask(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.ones(1, 1))

    def forward(self, x):
        n = x.shape[0]
        if self.mask.shape[0] < n:
            self.register_buffer("mask", torch.ones(n, n).tril())
        return self.mask[:n, :n] @ x


class ReadsWhatOthersSet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.held = {"scale": torch.ones(2, 1)}

    def forward(self, x):
        return x.sum() * self.held["scale"].sum(0)


def read_from_a_closure():
    state = {}

    def program(x):
        before = state.get("x", x)
        state["x"] = x.detach()
        return x.sum(0) - before.mean(0)

    return program


@pytest.mark.parametrize("make", [KeepsKeys, GrowsMask, ReadsWhatOthersSet, read_from_a_closure])
def test_sizes_of_tensors_that_are_kept_between_calls_are_left_open_once_they_changed(make):
    eager, kept = make(), make()
    compiled = jit(kept, cache="auto")
    for call, rows in enumerate([3, 4, 5, 6, 7, 8, 9, 10, 4, 11]):
        x = torch.randn(rows, 3)
        if make is ReadsWhatOthersSet:
            kept.held["scale"] = eager.held["scale"] = torch.full((rows + 1, 1), float(call))
        assert_close(compiled(x), eager(x))
    assert cache_misses(compiled) <= 5
    for rows in range(12, 20):
        compiled(torch.randn(rows, 3))
    assert cache_misses(compiled) <= 5


def test_numbers_that_python_looks_at_stay_special():
    def program(x, n):
        return x + 1 if n == 3 else x * n

    compiled = jit(program, cache="auto")
    for n in (2, 3, 4, 5, 3, 2, 1, 0, 6, 2.5, True):
        torch.testing.assert_close(compiled(torch.ones(2), n), program(torch.ones(2), n))


def test_other_kinds_of_calls_open_nothing():
    compiled = jit(lambda x: x.sin(), cache="auto")
    for dtype in (torch.float32, torch.float64, torch.float32):
        compiled(torch.ones(3, dtype=dtype))
    assert cache_misses(compiled) == 2
    assert not any(c.program.numbers for c in compiled_function(compiled).compiled)


def test_what_cannot_be_open_has_a_program_for_each_size():
    def program(x):
        return x.reshape(int(str(x.shape[0])), -1) * 2

    compiled = jit(program, cache="auto")
    for n in (2, 3, 4, 3, 2):
        x = torch.randn(n, 2)
        assert torch.equal(compiled(x), program(x))
    assert cache_misses(compiled) == 3


@pytest.mark.parametrize("cache", ["auto", "symbolic values"])
def test_a_dimension_marked_static_has_a_program_for_each_size(cache):
    compiled = jit(lambda x: x.sum(0) / x.shape[0] + x.shape[1], cache=cache)
    for n in (3, 4, 5, 4):
        x = mark_static(torch.randn(n, n), -1)
        torch.testing.assert_close(compiled(x), x.sum(0) / n + n)
    assert cache_misses(compiled) == 3
    for n in (6, 7, 8):  # the other one is open
        compiled(mark_static(torch.randn(n, 5), 1))
    assert cache_misses(compiled) <= 4


def test_a_dimension_marked_dynamic_is_open_in_the_first_program():
    compiled = jit(lambda x: x.sum() * x.shape[0], cache="auto")
    for n in (3, 4, 5):
        x = mark_dynamic(torch.randn(n), 0)
        torch.testing.assert_close(compiled(x), x.sum() * n)
    assert cache_misses(compiled) == 1


def test_the_last_mark_holds():
    x = mark_dynamic(mark_static(torch.ones(3, 4), (0, 1)), 1)
    assert x._dynamo_dynamic_indices == {1} and x._dynamo_static_indices == {0}
    mark_static(x, 1)
    assert x._dynamo_dynamic_indices == set() and x._dynamo_static_indices == {0, 1}


def test_sizes_that_cannot_be_open_are_found_without_trying_the_others():
    def program(x, n):
        return x.reshape(int(str(x.shape[0])), -1) * len(f"{n}")

    compiled = jit(program, cache="auto")
    calls = [(torch.randn(n, 2), n + k) for n in range(2, 12) for k in range(2)]
    for x, n in calls:
        assert torch.equal(compiled(x, n), program(x, n))
    dispatcher = compiled_function(compiled)._dispatcher
    assert all(len(dispatcher.proposed(call, {})) <= 2 for call in calls)


AS_SIZES = {
    "isinstance": lambda x: (isinstance(x.shape, torch.Size), isinstance(x.size(), (list, torch.Size))),
    "type": lambda x: (type(x.shape) is torch.Size, x.shape.__class__ is torch.Size, type(x.shape).__name__),
    "parts": lambda x: (x.shape[:-1].numel(), type(x.shape[1:]), x.shape[-1], x.size()[:1]),
    "sums": lambda x: (type(x.shape + (2,)), type((2,) + x.shape), type(x.shape * 2), x.shape + x.shape[:1]),
}


@pytest.mark.parametrize("cache", ["auto", "symbolic values"])
@pytest.mark.parametrize("asks", AS_SIZES.values(), ids=AS_SIZES)
def test_shapes_with_open_sizes_are_sizes_to_the_program(asks, cache):
    compiled = jit(lambda x: (x * 2, asks(x)), cache=cache)
    for n in (3, 4, 5, 7):
        x = torch.randn(n, 4)
        assert compiled(x)[1] == asks(x)
    assert cache_misses(compiled) == 2


TAKEN_APART = {
    "array": lambda x, n: x * torch.from_numpy(np.arange(n)).sum() + np.array([n, 2]).max().item(),
    "kind of array": lambda x, n: x * len(np.array(n).dtype.name),
    "deque": lambda x, n: x * len(collections.deque(range(9), maxlen=n)),
}


KINDS = {
    "map": lambda x, n: [kind.__name__ for kind in map(type, (n, 2.5))],
    "groups": lambda x, n: [(k.__name__, len(list(v))) for k, v in itertools.groupby([n, 2, 2.5], type)],
    "mean": lambda x, n: statistics.mean([n, 2]),
    "variance": lambda x, n: statistics.pvariance([n, 2, 7]),
}


@pytest.mark.parametrize("cache", ["auto", "symbolic values"])
@pytest.mark.parametrize("program", KINDS.values(), ids=KINDS)
def test_code_in_c_sees_the_types_of_numbers(program, cache):
    compiled = jit(lambda x, n: (x * 2, program(x, n)), cache=cache)
    for n in (3, 4, 5, 2.5, 3.5):
        result, expected = compiled(torch.ones(2), n)[1], program(torch.ones(2), n)
        assert result == expected and type(result) is type(expected)


def test_no_handler_of_the_program_gets_to_know_that_acquisition_begins_again():
    def program(given):
        try:
            return given["x"].sum() * given["n"], given["x"].shape[0]
        except BaseException as error:
            return type(error)

    compiled = jit(program, cache="auto")
    for n in (3, 4, 5):
        assert compiled({"x": torch.ones(n), "n": 2}) == (2 * n, n)
    assert cache_misses(compiled) == 2


def test_a_second_program_in_which_nothing_is_open_is_that_of_constant_values():
    compiled, other = [jit(lambda x: x.view(2, -1) * x.shape[0], cache=c) for c in ("auto", "constant values")]
    for dtype in (torch.float32, torch.float64):
        for c in (compiled, other):
            c(torch.ones(4, dtype=dtype))
    assert str(last_traces(compiled)[0]) == str(last_traces(other)[0])
    assert not any(c.program.numbers for c in compiled_function(compiled).compiled)


STRIDED = {
    "written": lambda x: (x.add_(1), x.as_strided((6,), (1,)) * 2)[1],
    "written then": lambda x: (x.as_strided((6,), (1,)), x.add_(1))[0] * 2,
    "written by it": lambda x: (x.as_strided((6,), (1,), 0).add_(1), x + 1),
    "windows": lambda x: x.as_strided((x.shape[0] - 1, 2), (1, 1)) * 2,
}


@pytest.mark.parametrize("cache", ["auto", "symbolic values", "constant values"])
@pytest.mark.parametrize("program", STRIDED.values(), ids=STRIDED)
@pytest.mark.filterwarnings("ignore::thunder_frontend.FallbackWarning")
def test_as_strided_shows_what_lies_beside_open_sizes(program, cache):
    compiled = jit(program, cache=cache, fallback="split")
    for n in (3, 4, 5, 6, 8, 3):
        ours, eagers = torch.arange(12.0), torch.arange(12.0)
        assert torch.equal(
            torch.cat([*tree_leaves(compiled(ours[:n]))]), torch.cat([*tree_leaves(program(eagers[:n]))])
        )
        assert torch.equal(ours, eagers)


@pytest.mark.parametrize("program", TAKEN_APART.values(), ids=TAKEN_APART)
def test_numbers_that_code_in_c_takes_apart_have_a_program_each(program):
    compiled = jit(program, cache="auto")
    for n in (3, 4, 5, 3):
        x = torch.randn(3)
        torch.testing.assert_close(compiled(x, n), program(x, n))
    assert cache_misses(compiled) == 3


def test_what_python_needs_to_see_of_tensors_is_seen_in_later_programs_too():
    def by_length(x):
        return x * len("-" * int(x.sum()))

    compiled = jit(by_length, cache="auto")
    for numbers in ([3, 4], [5, 6], [5, 6]):
        x = torch.tensor(numbers)
        torch.testing.assert_close(compiled(x), by_length(x))
    assert cache_misses(compiled) == 2


@pytest.mark.parametrize("number", [Decimal("1.5"), Fraction(3, 2)], ids=str)
def test_equal_numbers_of_the_library_are_one_kind_of_call(number):
    compiled = jit(lambda x, factor: x * float(factor))
    for _ in range(3):
        torch.testing.assert_close(compiled(torch.ones(2), number + 0), torch.full((2,), 1.5))
    assert cache_misses(compiled) == 1
    torch.testing.assert_close(compiled(torch.ones(2), number * 2), torch.full((2,), 3.0))


@pytest.mark.parametrize("mark", [mark_dynamic, mark_static])
@pytest.mark.parametrize(("shape", "dims"), [((3, 4), 2), ((3, 4), -3), ((3, 4), (0, 7)), ((), 0)])
def test_dimensions_that_there_are_not_are_not_marked(mark, shape, dims):
    x = torch.ones(shape)
    with pytest.raises(IndexError, match="to mark"):
        mark(x, dims)
    assert not vars(x)
