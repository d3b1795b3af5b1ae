"""Dimensions that change from call to call are dynamic, from the second size on that a program is compiled for."""

import datetime
import decimal
import inspect
import json

import pytest
import torch

import thunder_frontend._compiled
from thunder_frontend import cache_misses, jit, last_traces, mark_dynamic


def symbolic(function):
    return jit(function, cache="symbolic values")


def test_dimensions_that_change_are_left_open_from_the_second_size_on():
    class Cache:
        rows = None

    def program(cache, x):
        cache.rows = x if cache.rows is None else torch.cat([cache.rows, x])
        return cache.rows.softmax(0).sum() + cache.rows.shape[0]

    compiled = symbolic(program)
    ours, eagers = Cache(), Cache()
    for _ in range(8):
        x = torch.randn(2, 3)
        torch.testing.assert_close(compiled(ours, x), program(eagers, x))
        assert torch.equal(ours.rows, eagers.rows)
    assert cache_misses(compiled) == 3  # without rows, the first size, and all others


def test_what_cannot_be_done_with_open_sizes_is_compiled_for_each_size():
    def program(x):
        return x.reshape(int(str(x.shape[0])), -1) * 2

    compiled = symbolic(program)
    for n in (2, 3, 4, 3):
        x = torch.randn(n, 2)
        assert torch.equal(compiled(x), program(x))


class Refusal(Exception):
    pass


def refuses(x):
    if x.shape[0] == 3:
        raise Refusal("three rows")
    return x * 2


@pytest.mark.parametrize(
    "program",
    [refuses, lambda x: {2: x, 4: x}[x.shape[0]], lambda x: x * [3, 4, 5, 0, 1][x.shape[0] + 2]],
)
def test_what_the_program_itself_raises_reaches_the_caller_at_once(program, monkeypatch):
    attempts = []

    def acquire(*args):
        attempts.append(args)
        return acquired(*args)

    acquired = thunder_frontend._compiled.acquire
    monkeypatch.setattr(thunder_frontend._compiled, "acquire", acquire)
    compiled = symbolic(program)
    for n in (2, 3, 4):
        attempts.clear()
        x = torch.randn(n, 2)
        expected, result = outcome(program, x), outcome(compiled, x)
        if isinstance(expected, Exception):
            assert type(result) is type(expected) and result.args == expected.args
        else:
            assert torch.equal(result, expected)
        assert len(attempts) <= 1


def outcome(function, *args):
    try:
        return function(*args)
    except Exception as error:
        return error


def caught(x):
    try:
        return x * len(json.dumps(x.shape[0]))
    except TypeError:
        return x


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x * datetime.timedelta(days=x.shape[0]).days,
        lambda x: x * float(decimal.Decimal(x.shape[0])),
        lambda x: x * int.__add__(x.shape[0], 1),
        lambda x: x * pow(x.shape[0], 2, 5),
        lambda x: x * len(x.shape[0].to_bytes(4, "little")) * x.shape[0].numerator * x.shape[0].real,
        lambda x: x * x.shape[0].as_integer_ratio()[0] * x.shape[0].bit_length(),
        lambda x: x * (2 if x.shape[0].__class__ is int else 3),
        caught,
    ],
)
def test_code_in_c_gets_the_numbers_that_it_wants(program):
    compiled = symbolic(program)
    for n in (2, 3, 4, 11):
        x = torch.randn(n, 2)
        assert torch.equal(compiled(x), program(x))


def test_parameters_are_not_left_open():
    def program(module, x):
        return module(x)

    compiled = symbolic(program)
    for n in (2, 3, 4):
        module, x = torch.nn.Linear(n, 2), torch.randn(5, n)
        torch.testing.assert_close(compiled(module, x), module(x))
    assert 'weight: "float32[2, 4]"' in str(last_traces(compiled)[0])


def test_what_is_joined_with_nothing_is_new():
    compiled = symbolic(lambda nothing, x: torch.cat([nothing, x.transpose(0, 1)], 0))
    for n in (2, 3, 4):
        x, nothing = torch.randn(n, 5), torch.tensor([])
        ours, eager = compiled(nothing, x), torch.cat([nothing, x.transpose(0, 1)], 0)
        assert torch.equal(ours, eager) and ours.stride() == eager.stride() and ours._base is None
    assert cache_misses(compiled) == 2


def test_numbers_of_code_are_no_numbers_of_the_call():
    def takes(x, *others):
        return x + len(inspect.signature(takes).parameters)

    assert torch.equal(symbolic(takes)(torch.ones(2)), torch.full((2,), 3.0))


def test_backward_programs_that_are_made_late_leave_sizes_open():
    def program(x):
        y = x * 2
        y.diagonal(0, -1, 0).add_(x.sum())
        return y, x.sin()

    compiled = symbolic(program)
    for n in (3, 4, 5):
        found = []
        for function in (program, compiled):
            x = torch.linspace(0, 1, n * (n + 1)).view(n, n + 1).requires_grad_()
            (gradient,) = torch.autograd.grad(function(x)[0].square().sum(), x)
            found.append(gradient)
        torch.testing.assert_close(found[1], found[0])
    assert cache_misses(compiled) == 2


def test_what_pytorch_has_no_kernel_for_raises_though_its_result_is_not_read():
    def program(x):
        x.unique()
        return x * 2

    compiled = jit(program, cache="symbolic values", fallback="error")
    for n in (2, 3):
        with pytest.raises(NotImplementedError, match="not implemented for 'ComplexFloat'"):
            compiled(mark_dynamic(torch.ones(n, 3, dtype=torch.complex64), 0))


def graph_of(nodes):
    """Return features of the nodes of a graph, its edges, and which graph of a batch each node is of."""
    generator = torch.Generator().manual_seed(nodes)
    features = torch.randn(nodes, 3, generator=generator, dtype=torch.float64).requires_grad_()
    edges = torch.randint(nodes, (2, 3 * nodes), generator=generator)
    edges[:, 0] = torch.tensor([0, nodes - 1])
    return features, edges, torch.arange(nodes) // 3


def without_loops(x, edges, _):
    return edges[:, edges[0] != edges[1]]


def summed_over_edges(x, edges, _):
    edges = edges[:, edges[0] != edges[1]]
    return torch.zeros_like(x).index_add(0, edges[1], x[edges[0]])


def with_loops(x, edges, _):
    kept = edges[0] != edges[1]
    loops = x.new_full((x.size(0),) + edges.size()[2:], 1.0)
    loops[edges[0][~kept]] = 2.0
    return torch.cat([x.sum(1)[edges[0]][kept], loops])


def pooled(x, _, batch):
    groups = int(batch.max()) + 1
    return x.new_zeros(x.size()[:0] + (groups,) + x.size()[1:]).index_add(0, batch, x)


def positive_against_all(x, _, batch):
    return torch.softmax(x[x[:, 0] > 0] @ x.T, -1)


@pytest.mark.parametrize("program", [without_loops, summed_over_edges, with_loops, pooled, positive_against_all])
def test_what_values_select_of_changing_sizes_needs_one_program(program):
    compiled = jit(program, fallback="error")
    for nodes in (5, 6, 8, 11, 4):
        x, edges, batch = graph_of(nodes)
        results = [f(x, edges, batch) for f in (program, compiled)]
        torch.testing.assert_close(results[1], results[0])
        if results[0].requires_grad:
            gradients = [torch.autograd.grad(r.square().sum(), x) for r in results]
            torch.testing.assert_close(gradients[1], gradients[0])
    assert cache_misses(compiled) == 2  # the first size, and all others


def test_a_size_with_numbers_that_are_known_only_then_is_a_size():
    def program(x, n):
        rows = int(n.max())
        shape = (rows,) + x.size()[1:]
        return isinstance(x.size()[:0] + (rows,), torch.Size), type(shape).__name__, x.new_ones(shape), shape

    compiled = jit(program, fallback="error")
    for rows in (3, 5):
        found, expected = (f(torch.ones(2, 4), torch.tensor([1, rows])) for f in (compiled, program))
        torch.testing.assert_close(found[2], expected[2])
        assert (found[:2], found[3], type(found[3])) == (expected[:2], expected[3], type(expected[3]))
    assert cache_misses(compiled) == 1


def transformed(x, y):
    base = torch.distributions.Normal(x, 1.0)
    return torch.distributions.TransformedDistribution(base, [torch.distributions.AffineTransform(y, 2.0)]).log_prob(y)


def broadcast_size(x, y):
    size = torch.broadcast_shapes(x.shape, y.shape, (1, 1))
    return x.expand(size) * 2, size, type(size) is torch.Size


def made_size(x, y):
    size = torch.Size([x.shape[0], 4])
    return y.expand(size) + size.numel(), size, isinstance(size, torch.Size)


@pytest.mark.parametrize("program", [transformed, broadcast_size, made_size])
def test_sizes_that_are_made_of_open_ones_need_one_program(program):
    compiled = jit(program, fallback="error")
    for rows in (2, 3, 5, 4):
        x, y = torch.randn(rows, 4), torch.rand(rows, 1)
        torch.testing.assert_close(compiled(x, y), program(x, y))
    assert cache_misses(compiled) == 2  # the first size, and all others


def test_sizes_of_the_run_that_do_not_broadcast_raise_as_pytorch_does():
    def program(x, y):
        return torch.zeros(torch.broadcast_shapes(x.shape, y.shape)) + 1

    compiled = jit(program)
    for rows in (2, 3):
        assert torch.equal(compiled(torch.ones(rows, 4), torch.ones(rows, 1)), torch.ones(rows, 4))
    messages = [
        str(pytest.raises(RuntimeError, f, torch.ones(5, 4), torch.ones(6, 1)).value) for f in (compiled, program)
    ]
    assert messages[0] == messages[1]


@pytest.mark.parametrize(
    "program", [lambda x: x.stride(), lambda x: x.transpose(0, 1).stride(2)], ids=["input", "view"]
)
def test_strides_of_dimensions_of_size_1_are_those_of_the_call(program):
    compiled = jit(program, cache="auto")
    for size in (2, 3, 4):
        for memory_format in (torch.contiguous_format, torch.channels_last):
            x = torch.randn(2, size, 1, 1).to(memory_format=memory_format)
            assert compiled(x) == program(x)


@pytest.mark.parametrize("goal", [1, 2])
def test_numbers_that_many_steps_compute_one_from_another_take_as_many_steps(goal):
    def program(x):
        n = x.shape[0]
        for _ in range(64):  # each of which reads the one before twice
            n = n // 2 + n % 2
        return x * (2 if n == goal else 3)

    compiled = jit(program, fallback="error")
    for rows in (8, 9, 0, 12, 6):
        x = torch.ones(rows, 2)
        torch.testing.assert_close(compiled(x), program(x))
    assert cache_misses(compiled) <= 4


def test_losses_refuse_as_many_weights_as_there_are_no_classes():
    compiled, loss = jit(torch.nn.functional.cross_entropy), torch.nn.functional.cross_entropy
    targets = torch.randint(0, 4, (8,))
    for classes in (7, 6, 5):
        x, weights = torch.randn(8, classes), torch.rand(classes)
        torch.testing.assert_close(compiled(x, targets, weights), loss(x, targets, weights))
    for count in (4, 6):
        with pytest.raises(RuntimeError, match="weight tensor should be defined"):
            compiled(x, targets, torch.rand(count))


def test_filled_diagonals_of_square_matrices_leave_their_sizes_open():
    def program(x, value):
        square = x.outer(x)
        square.fill_diagonal_(value)
        return square, x.expand(2, -1).clone().t().fill_diagonal_(value)

    compiled = jit(program)
    for n in (2, 3, 4, 5):
        x, same = (torch.linspace(1, n, n).requires_grad_() for _ in range(2))
        expected, made = program(x, -1.5), compiled(same, -1.5)
        torch.testing.assert_close(made, expected, rtol=0, atol=0)
        for each in (expected, made):
            (each[0].sum() + each[1].square().sum()).backward()
        torch.testing.assert_close(same.grad, x.grad)
    assert cache_misses(compiled) == 2
