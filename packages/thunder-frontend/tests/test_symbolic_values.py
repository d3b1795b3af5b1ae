"""One program for all numbers and sizes that meet the constraints it recorded."""

import copy
import functools
import math

import pytest
import torch
from torch import nn
from versions import needs_torch

from thunder_frontend import AcquisitionError, cache_misses, explain_misses, jit, last_traces, mark_dynamic


def symbolic(function):
    return jit(function, cache="symbolic values")


def test_numbers_are_left_open():
    compiled = symbolic(lambda x, n, f: x * n + f)
    for n, f in ((2, 0.5), (3, 1.5), (-1, 0.0)):
        x = torch.randn(3)
        torch.testing.assert_close(compiled(x, n, f), x * n + f)
    assert cache_misses(compiled) == 1


def test_a_comparison_is_a_constraint():
    compiled = symbolic(lambda x, n: x * n if n > 2 else x - n)
    x = torch.randn(3)
    for n in (3, 4, 1, 2, 7, 0):
        torch.testing.assert_close(compiled(x, n), x * n if n > 2 else x - n)
    assert cache_misses(compiled) == 2
    assert "a1 > 2 does not hold any more" in explain_misses(compiled)[0][0]


def test_a_number_that_python_needs_is_fixed():
    def program(x, n):
        for _ in range(n):
            x = x + 1
        return x

    compiled = symbolic(program)
    for n in (1, 2, 3):
        assert torch.equal(compiled(torch.zeros(2), n), torch.full((2,), float(n)))
    assert cache_misses(compiled) == 3


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x.sum() / x.shape[0],
        lambda x: x.view(x.shape[0] * x.shape[1]) + 1,
        lambda x: x.reshape(x.size(0), -1, 2).transpose(0, 1) * 2,
        lambda x: torch.cat([x, x]) + torch.zeros(2 * x.shape[0], 4),
        lambda x: torch.softmax(x, dim=0) @ torch.ones(4, 3),
        lambda x: nn.functional.layer_norm(x, (4,)),
        lambda x: x[: x.shape[0] // 2],
        lambda x: x + torch.arange(x.shape[0]).unsqueeze(1),
    ],
)
def test_marked_dimensions_are_left_open(program):
    compiled = symbolic(program)
    for n in (4, 6, 10):
        x = torch.randn(n, 4)
        torch.testing.assert_close(compiled(mark_dynamic(x.clone(), 0)), program(x))
    assert cache_misses(compiled) == 1, explain_misses(compiled)


def test_sizes_that_must_agree_are_a_constraint():
    compiled = symbolic(lambda x, y: x + y)
    for n in (2, 3):
        compiled(mark_dynamic(torch.randn(n), 0), mark_dynamic(torch.randn(n), 0))
    assert cache_misses(compiled) == 1
    with pytest.raises(RuntimeError):
        compiled(mark_dynamic(torch.randn(2), 0), mark_dynamic(torch.randn(3), 0))


def test_sizes_not_marked_are_fixed():
    compiled = symbolic(lambda x: x * 2)
    compiled(torch.randn(2)), compiled(torch.randn(3))
    assert cache_misses(compiled) == 2


def test_modules_train_with_open_batch_sizes():
    module = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2))
    compiled = symbolic(module)
    for n in (3, 5, 8):
        x = torch.randn(n, 4)
        expected = torch.autograd.grad(module(x).square().sum(), list(module.parameters()))
        result = torch.autograd.grad(compiled(mark_dynamic(x.clone(), 0)).square().sum(), list(module.parameters()))
        torch.testing.assert_close(result, expected)
    assert cache_misses(compiled) == 1, explain_misses(compiled)
    assert "i0" in str(last_traces(compiled)[0])


def test_what_pytorch_finds_out_of_sizes_becomes_constraints():
    compiled = symbolic(lambda x: torch.zeros(torch.linalg.svdvals(x).shape[0]))
    for n, length in ((2, 2), (3, 3), (2, 2), (5, 4), (6, 4)):
        assert compiled(mark_dynamic(torch.randn(n, 4), 0)).shape == (length,)
    assert cache_misses(compiled) == 2


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.renorm(x, 2, 0, 1.0),
        lambda x: torch.renorm(torch.cat([x, x[1:]]), 2, 0, 1.0),
        lambda x: torch.nn.functional.embedding(torch.arange(x.shape[0]), torch.ones(50, 2)) + x,
    ],
)
def test_operations_that_stay_whole_take_open_sizes(function):
    compiled = symbolic(function)
    for n in (4, 5, 3, 9):
        x = torch.randn(n, 2, requires_grad=True)
        expected = function(x)
        result = compiled(mark_dynamic(x, 0))
        assert torch.equal(result, expected)
        y = torch.randn_like(expected)
        torch.testing.assert_close(torch.autograd.grad(result, x, y), torch.autograd.grad(expected, x, y))
    assert cache_misses(compiled) == 1, explain_misses(compiled)


def test_sizes_that_pytorch_computes_with_in_its_own_way_stay_symbolic():
    compiled = symbolic(lambda x: torch.nn.functional.unfold(x, 2))
    for n in (2, 3, 2):
        x = torch.randn(n, 1, 3, 3, requires_grad=True)
        assert torch.equal(compiled(mark_dynamic(x, 0)), torch.nn.functional.unfold(x, 2))
    assert cache_misses(compiled) == 1


def test_operators_on_the_bits_of_sizes_fix_them():
    def function(x):
        n = x.shape[0]
        return x * (n & 6) + (1 << n) + (n >> 1) + ~n + (3 ^ n) + (n | 8) + n.bit_length()

    compiled = symbolic(function)
    for n in (4, 5, 4):
        x = mark_dynamic(torch.randn(n), 0)
        assert torch.equal(compiled(x), function(x))
    assert cache_misses(compiled) == 2


def adds(y, n):
    y += n
    return y


def subtracts(y, n):
    y -= n
    return y


def multiplies(y, n):
    y *= n
    return y


def divides(y, n):
    y /= n
    return y


def divides_to_whole(y, n):
    y //= n
    return y


def takes_the_rest(y, n):
    y %= n
    return y


def raises(y, n):
    y **= n
    return y


@pytest.mark.parametrize("write", [adds, subtracts, multiplies, divides, divides_to_whole, takes_the_rest, raises])
@pytest.mark.parametrize("number", [lambda x, n: n, lambda x, n: x.shape[0], lambda x, n: x.sum().item()])
def test_operators_that_write_take_open_numbers_in_place(write, number):
    def program(x, n):
        y = x * 2
        first = y[:1]
        return y, first is write(first, number(x, n))

    compiled = jit(program, fallback="error")
    for n in (3, 4, 5, 6):
        x = torch.arange(1.0, n + 1)
        torch.testing.assert_close(compiled(x, n), program(x, n))
    assert cache_misses(compiled) == 2


def test_counters_among_the_state_of_modules_are_written_by_open_numbers():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.seen = torch.tensor(0)

        def forward(self, x):
            self.seen += x.numel()
            return self.seen

    counts = Counts()
    seen, compiled = counts.seen, jit(counts, fallback="error")
    results = [compiled(torch.ones(n)) for n in (3, 4, 5)]

    assert counts.seen is seen and seen == 12
    assert all(r is seen for r in results)


def test_whether_a_quotient_of_sizes_is_whole_is_a_constraint():
    compiled = symbolic(lambda x: x if (x.shape[0] / 4).is_integer() else x * divmod(x.shape[0], 4)[1])
    for n in (4, 8, 6, 7, 12):
        x = mark_dynamic(torch.randn(n), 0)
        assert torch.equal(compiled(x), x if n % 4 == 0 else x * (n % 4))
    assert cache_misses(compiled) == 2


def test_statistics_of_batches_are_taken_of_any_size():
    module = nn.Sequential(nn.Conv1d(2, 3, 1), nn.BatchNorm1d(3))
    compiled = symbolic(module)
    for n in (3, 5, 8):
        x = torch.randn(n, 2, 4)
        expected = torch.autograd.grad(module(x).square().sum(), list(module.parameters()))
        result = torch.autograd.grad(compiled(mark_dynamic(x.clone(), 0)).square().sum(), list(module.parameters()))
        torch.testing.assert_close(result, expected)
    assert cache_misses(compiled) == 1, explain_misses(compiled)


def test_sizes_that_a_decomposition_computes_once_more_are_there_for_the_backward_program():
    def function(x):
        return torch.nn.functional.batch_norm(x[1:], None, None, training=True)

    compiled = symbolic(function)
    for n in (4, 5, 3):
        x, y = torch.randn(n, 3, requires_grad=True), torch.randn(n - 1, 3)
        expected = torch.autograd.grad(function(x), x, y)
        torch.testing.assert_close(torch.autograd.grad(compiled(mark_dynamic(x, 0)), x, y), expected)
    assert cache_misses(compiled) == 1


class HalfOfTheRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        n = gradient.shape[0] // 2
        return torch.cat([gradient[:n] * 2, gradient[n:] * 3]) if n * 2 > 3 else gradient


def test_sizes_that_a_backward_of_the_users_compares_are_checked_before_a_call():
    compiled = symbolic(HalfOfTheRows.apply)
    for n in (4, 6, 2, 8, 3):
        x, y = torch.randn(n, 3, requires_grad=True), torch.randn(n, 3)
        expected = torch.autograd.grad(HalfOfTheRows.apply(x), x, y)
        torch.testing.assert_close(torch.autograd.grad(compiled(mark_dynamic(x, 0)), x, y), expected)
    assert cache_misses(compiled) == 2


def test_functions_on_lists_of_tensors_take_open_sizes():
    def program(x):
        torch._foreach_mul_([x, x], 2)
        torch.nn.utils.clip_grad_norm_([x], 1.0)
        return torch._foreach_add([x], x.shape[0])[0]

    compiled = symbolic(program)
    for n in (2, 3, 5):
        ours, eagers = [torch.ones(n, 2, requires_grad=True).detach() for _ in range(2)]
        ours.grad, eagers.grad = torch.ones(n, 2), torch.ones(n, 2)
        torch.testing.assert_close(compiled(mark_dynamic(ours, 0)), program(eagers))
        torch.testing.assert_close((ours, ours.grad), (eagers, eagers.grad))


def test_open_numbers_that_are_keys_of_dicts_outside_are_fixed():
    class Rotary(nn.Module):
        def __init__(self):
            super().__init__()
            self.tables, self.named, self.base = {}, {}, 10.0

        def forward(self, x):
            n = x.shape[0]
            if n not in self.tables:
                self.tables[n] = torch.arange(n)[:, None] / self.base
            if (key := (n, x.dtype)) not in self.named:
                self.named[key] = n * 2.0
            return x + self.tables[n] + self.named.get(key, 0.0)

    eager, module = Rotary(), Rotary()
    compiled = symbolic(module)
    for n in (2, 2, 4, 4, 6, 2, 4):
        x = torch.randn(n, 3)
        torch.testing.assert_close(compiled(x), eager(x))
        assert list(module.tables) == list(eager.tables) and module.named == eager.named
    module.tables.clear()
    eager.tables.clear()
    module.base = eager.base = 5.0
    torch.testing.assert_close(compiled(x), eager(x))


@pytest.mark.parametrize(
    ("program", "numbers"),
    [
        (lambda x, n: x * (2 if n in {5, 7} else 3) * n, (2, 3, 5, 2)),
        (lambda x, n: x * (2 if n in MEMBERS else 3) * n, (2, 3, 5, 2)),
        (lambda x, n: x + math.copysign(1.0, n), (0.0, -0.0, 1.0, -1.0)),
        (lambda x, n: x * (1 if n == 0.0 else 2), (0.0, -0.0, 1.0)),
    ],
)
def test_numbers_that_sets_and_python_are_asked_about_are_told_apart(program, numbers):
    compiled = symbolic(program)
    for n in numbers:
        torch.testing.assert_close(compiled(torch.ones(2), n), program(torch.ones(2), n))


MEMBERS = {5, 7}


def test_functions_with_a_cache_answer_from_it_for_symbolic_numbers():
    factors = [2.0]

    @functools.lru_cache
    def scaled(n):
        return n * factors[0]

    compiled = symbolic(lambda x, n: x * scaled(n))
    x = torch.ones(2)
    assert compiled(x, 3)[0] == 6 and compiled(x, 4)[0] == 8
    factors[0] = 5.0
    assert compiled(x, 3)[0] == 6 and compiled(x, 5)[0] == 25
    scaled.cache_clear()
    assert compiled(x, 3)[0] == 15


def test_functions_with_a_cache_compute_with_numbers_that_only_the_run_tells():
    @functools.lru_cache
    def scaled(n):
        return n * 2.0

    compiled = jit(lambda x: x * scaled(x.sum().item()))
    for k in (1.0, 2.0, 1.0):
        assert torch.equal(compiled(torch.full((3,), k)), torch.full((3,), 6 * k * k))


def test_shapes_that_are_keys_of_dicts_outside_are_fixed():
    known = {}

    def program(x):
        if x.shape not in known:
            known[x.shape] = len(known) + 1.0
        return x * known[x.shape]

    compiled = symbolic(program)
    results = [float(compiled(torch.ones(n, 2))[0, 0]) for n in (4, 5, 4, 6, 5)]
    assert results == [1, 2, 1, 3, 2] and list(known) == [(4, 2), (5, 2), (6, 2)]
    assert all(type(key) is torch.Size for key in known)


def halves_the_rows(y):
    half = y[y.shape[0] // 2 :]
    half[0] = 1
    return y * 2


def swaps_rows(y):
    y[0], y[-1] = y[-1], y[0]
    return torch.bernoulli(y.sigmoid().detach()) + y


@pytest.mark.parametrize("program", [halves_the_rows, swaps_rows])
def test_writes_to_slices_with_open_bounds_have_gradients(program):
    compiled = symbolic(program)
    for n in (3, 4, 5):
        x, gradients = torch.randn(n, 2), []
        for function in (program, compiled):
            torch.manual_seed(0)
            leaf = x.clone().requires_grad_()
            (function(leaf * 1) * torch.arange(2 * n).view(n, 2)).sum().backward()
            gradients.append(leaf.grad)
        torch.testing.assert_close(*gradients)


INDEX = torch.zeros(1, 5, dtype=torch.int64)
DIMENSIONS = [
    lambda x, dim: torch.cat([x, x], dim),
    lambda x, dim: x.gather(dim, INDEX),
    lambda x, dim: x.scatter(dim, INDEX, 1.0),
    lambda x, dim: x.scatter_add(dim, INDEX, x[:1]),
    lambda x, dim: x.index_select(dim, INDEX[0]),
    lambda x, dim: x.index_fill(dim, INDEX[0], 1.0),
    lambda x, dim: torch.tensordot(x, x, dim),
    lambda x, dim: torch.masked.softmax(x, dim, mask=x > -1),
    lambda x, dim: torch.signal.windows.hann(dim + 5),
]


@pytest.mark.parametrize("program", DIMENSIONS)
def test_dimensions_may_be_symbolic_numbers(program):
    compiled, x = symbolic(program), torch.rand(5, 5)
    for dim in (0, 1, 0):
        torch.testing.assert_close(compiled(x, dim), program(x, dim))


def test_lists_of_the_callers_go_with_symbolic_numbers():
    compiled = symbolic(torch.stack)
    for dim, count in ((0, 2), (1, 2), (0, 3)):
        tensors = [torch.rand(2, 2) for _ in range(count)]
        assert torch.equal(compiled(tensors, dim), torch.stack(tensors, dim))


def test_a_tensor_whose_sizes_were_open_may_be_left_out():
    compiled = symbolic(lambda x, bias=None: x * 2 if bias is None else x + bias)
    x = torch.rand(3, 4)
    for bias in (torch.rand(4), torch.rand(3, 4), torch.rand(3, 1), None, torch.rand(4)):
        assert torch.equal(compiled(x, bias=bias), x * 2 if bias is None else x + bias)


LAYOUTS = [
    torch.ones(4, 2), torch.ones(5, 3), torch.ones(6, 4), torch.ones(7, 5), torch.ones(4, 2).t(), torch.ones(5, 3).t(),
    torch.ones(6, 4).t(), torch.ones(6, 4)[::2], torch.ones(8, 4)[::2], torch.ones(1, 4), torch.ones(4, 1),
    torch.ones(4, 4)[:, :1], torch.ones(1, 3).expand(4, 3), torch.ones(2, 2),
]  # fmt: skip


@pytest.mark.parametrize(
    "program",
    [
        lambda t: torch.ones(2) * t.stride(0) + t.stride()[1] * 100,
        lambda t: (
            torch.ones(2)
            * (t[:, 0].stride(0) + t.t().stride(0) * 100 + ((t.t() + 1).stride(0) if min(t.shape) > 1 else 0) * 10000)
        ),
        lambda t: torch.ones(2) * (2 if t.is_contiguous() else 3) * (5 if t.t().is_contiguous() else 7),
        lambda t: torch.ones(2) * (2 if t[:, :2].is_contiguous() else 3) * (5 if t[:2].is_contiguous() else 7),
        lambda t: t.permute(1, 0).contiguous().view(-1)[:2] * 2,
        lambda t: (t.t() * 2).transpose(0, 1) if t.stride(0) else t,
        lambda t: (
            torch.ones(2) * len(str(tuple(t.shape))) + len(repr([t.shape])) + len(f"{t.shape}") + len(f"{t.shape}")
        ),
    ],
)
def test_how_tensors_lie_in_memory_is_told_apart(program):
    compiled = symbolic(program)
    for tensor in (*LAYOUTS, *LAYOUTS):
        expected, result = program(tensor), compiled(tensor)
        torch.testing.assert_close(result, expected)
        assert result.stride() == expected.stride()


@needs_torch(2, 10, "has no grouped_mm")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_products_of_experts_take_any_number_of_tokens(dtype):
    def program(x, weight, ends):
        gate, up = torch.nn.functional.grouped_mm(x, weight.transpose(1, 2), offs=ends).chunk(2, dim=-1)
        return gate * up

    compiled, weight = jit(program, cache="symbolic values"), torch.randn(3, 8, 8, dtype=dtype)
    for tokens in (6, 8, 10, 12):
        args = torch.randn(tokens, 8, dtype=dtype), weight, torch.tensor([2, 4, tokens], dtype=torch.int32)
        torch.testing.assert_close(compiled(*args), program(*args))
    assert cache_misses(compiled) == 2


def test_a_view_that_computes_nothing_is_made_where_autograd_records_nothing():
    def program(x):
        rolled = x.roll(1)
        with torch.no_grad():
            return rolled.T

    x = mark_dynamic(torch.arange(3.0), 0).requires_grad_() * 1
    assert symbolic(program)(mark_dynamic(x, 0)).is_leaf


@pytest.mark.parametrize(
    "program",
    [
        lambda x, v: x * (3 if v == v else 4),
        lambda x, v: x * len(repr(v)),
        lambda x, v: x if v < 1 else -x,
        lambda x, v: x * v,
    ],
)
def test_numbers_that_are_none_and_zeros_are_told_apart(program):
    compiled = jit(program, cache="symbolic values")
    for v in (math.nan, 1.0, math.nan, 2.0, -0.0, 0.0, math.inf, -math.nan):
        torch.testing.assert_close(compiled(torch.ones(2), v), program(torch.ones(2), v), equal_nan=True)


@pytest.mark.parametrize("size", [(2, 3), (3,), ()], ids=str)
def test_results_with_names_have_them_where_sizes_are_open(size):
    def program(x):
        return x.sort(-1).values, x.max(0).indices, x.topk(1, -1).values

    x = torch.arange(6.0)[: math.prod(size)].reshape(size)
    found = symbolic(program)(mark_dynamic(x, 0) if size else x)
    assert all([torch.equal(a, b) for a, b in zip(found, program(x), strict=True)])


def test_a_grid_of_several_dtypes_is_refused_where_sizes_are_open():
    with pytest.raises(RuntimeError, match="meshgrid expects all tensors to have the same dtype"):
        symbolic(lambda x: torch.meshgrid(x, x.half(), indexing="ij"))(mark_dynamic(torch.ones(3), 0))


def test_nested_tensors_are_refused_beside_constraints_on_numbers():
    compiled = jit(lambda x, n: x * 2 if n > 1 else x, cache="symbolic values")
    compiled(torch.ones(3), 2)
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    with pytest.raises(AcquisitionError, match="nested"):
        compiled(nested, 3)


def test_copies_of_expanded_tensors_are_expanded():
    compiled = symbolic(copy.deepcopy)
    for rows in (2, 3, 4):
        x = torch.arange(3.0).expand(rows, 3)
        copied = compiled(x)
        assert torch.equal(copied, x) and copied.stride() == x.stride() and copied.data_ptr() != x.data_ptr()


def test_a_view_that_the_layout_of_a_written_tensor_forbids_is_refused_with_open_sizes():
    def program(x):
        x.mul_(2)
        x.t().view(-1)
        return x + 1

    compiled = jit(program, cache="symbolic values", fallback="error")
    x = mark_dynamic(torch.ones(4, 3), 0)
    for function in (program, compiled, compiled):
        with pytest.raises(RuntimeError, match="view size is not compatible"):
            function(x)
