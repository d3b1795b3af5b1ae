"""Errors that depend on values: a program raises what eager raises, whether or not anybody reads the result."""

import asyncio

import pytest
import torch

from thunder_frontend import jit, last_traces

F = torch.nn.functional


def index(x, i):
    x[i]
    return x * 2


def index_by_a_list(x, i):
    x[[0, int(i.shape[0]) + 2]]
    return x * 2


def index_written(x, i):
    y = x * 1
    y[i] = 0
    return x * 2


def gathers(x, i):
    torch.gather(x, 0, i[:, None])
    return x * 2


def embeds(x, i):
    F.embedding(i, x)
    return x * 2


def adds_by_index(x, i):
    (x * 1).index_add_(0, i, x[: i.shape[0]])
    return x * 2


def loses(x, i):
    F.nll_loss(x, i.expand(x.shape[0]))
    return x * 2


def counts(x, i):
    F.one_hot(i, 3)
    return x * 2


def takes_apart(x, i):
    torch.linalg.cholesky(x[:3, :3] * (i - 2))
    return x * 2


def inverts(x, i):
    torch.linalg.inv(torch.eye(3) * (3 - i))
    return x * 2


def reads_a_view_of_it(x, i):
    x[i].view(-1)[0].sin()
    return x.sum()


PROGRAMS = [
    index, index_by_a_list, index_written, gathers, embeds, adds_by_index, loses, counts, takes_apart, inverts,
    reads_a_view_of_it,
]  # fmt: skip


def attempt(function, x, i):
    try:
        return function(x, i)
    except (IndexError, RuntimeError, torch.linalg.LinAlgError) as error:
        return type(error).__name__


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("program", PROGRAMS)
def test_what_nobody_reads_fails_as_in_eager(program, requires_grad):
    compiled = jit(program)
    for value in (1, 3, 2, 9):
        x, i = torch.eye(4, 3) + 1, torch.tensor([value])
        x.requires_grad_(requires_grad)
        expected, result = attempt(program, x, i), attempt(compiled, x, i)
        assert type(result) is type(expected), (value, result, expected)
        if isinstance(expected, torch.Tensor):
            assert torch.equal(result, expected)
        if isinstance(result, torch.Tensor) and requires_grad:
            result.sum().backward()


def test_nothing_else_is_run_for_nothing():
    def program(x, i):
        (x.sin() @ x.t()).relu()
        return x * 2

    compiled = jit(program)
    compiled(torch.ones(3, 3), torch.tensor([0]))
    text = str(last_traces(compiled)[-1])
    assert "sin" not in text and "matmul" not in text


def test_nothing_is_selected_of_an_empty_tensor():
    def program(x):
        x[[0]]
        return x * 2

    with pytest.raises(IndexError):
        jit(program)(torch.zeros(0, 3))
    assert jit(program)(torch.ones(1, 3)).shape == (1, 3)


def writes_before(x, i):
    x["a"].mul_(2)
    result = torch.zeros(3)[i]
    x["b"].add_(result.sum())
    return result


def counts_statistics(x, i):
    with torch.no_grad():
        x["norm"](x["a"][:, None] * torch.arange(3.0))
    return torch.zeros(3)[i]


def accumulates_gradients(x, i):
    (x["leaf"] * x["leaf"]).sum().backward()
    return torch.zeros(3)[i]


def steps(x, i):
    optimizer = torch.optim.SGD(x["model"].parameters(), lr=0.1, momentum=0.9)
    x["model"](torch.ones(2, 3)).sum().backward()
    optimizer.step()
    return torch.zeros(3)[i]


def writes_objects(x, i):
    x["list"].append(1)
    x["model"].steps = 3
    x["a"].t_()
    x["b"].data = x["b"] * 2
    x["a"].requires_grad_()
    return torch.zeros(3)[i]


def computes_into(x, i):
    torch.add(x["a"], 1, out=x["a"])
    torch._foreach_mul_([x["b"], x["a"]], 2)
    F.dropout(x["b"], 0.5, inplace=True)
    return torch.zeros(3)[i]


def makes_arguments():
    torch.manual_seed(0)
    return {
        "a": torch.ones(4, 4)[:, 0], "b": torch.ones(3), "leaf": torch.ones(3, requires_grad=True),
        "model": torch.nn.Linear(3, 3), "norm": torch.nn.BatchNorm1d(3), "list": [0],
    }  # fmt: skip


def state_of(x):
    modules = [t for name in ("model", "norm") for t in x[name].state_dict(keep_vars=True).values()]
    tensors = [x["a"], x["b"], x["leaf"], *modules]
    gradients = [None if t.grad is None else t.grad.tolist() for t in tensors]
    values = [(t.tolist(), t.shape, t.stride(), t.requires_grad, t.data_ptr()) for t in tensors]
    return values, gradients, list(x["list"]), getattr(x["model"], "steps", None)


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize(
    "program",
    [writes_before, counts_statistics, accumulates_gradients, steps, writes_objects, computes_into],
)
def test_an_operation_that_fails_leaves_everything_as_it_was(program, recorded):
    compiled = jit(program)
    with torch.set_grad_enabled(recorded or program in (accumulates_gradients, steps)):
        for warm in (False, True):
            x = makes_arguments()
            before = state_of(x)
            with pytest.raises(IndexError):
                compiled(x, torch.tensor([9]))
            assert state_of(x) == before
            if not warm:
                compiled(makes_arguments(), torch.tensor([0]))


@pytest.mark.parametrize("writes", [False, True])
@pytest.mark.parametrize("cache", ["constant values", "symbolic values"])
def test_what_an_exception_of_the_users_holds_is_computed(writes, cache):
    def program(x):
        if writes:
            x.add_(1)
        raise ValueError(x * 2, x.shape[0] + 1)

    compiled = jit(program, cache=cache)
    for n in (2, 3, 4):
        with pytest.raises(ValueError) as caught:
            compiled(torch.ones(n))
        doubled, length = caught.value.args
        assert torch.equal(doubled, torch.full((n,), 4.0 if writes else 2.0)) and length == n + 1


@pytest.mark.parametrize(
    ("function", "dtype"),
    [
        (lambda x: x.topk(1), torch.bool), (lambda x: x.argmax(), torch.bool), (lambda x: x.unique(), torch.complex64),
        (lambda x: torch.cdist(x, x), torch.bfloat16), (lambda x: torch.linalg.det(x @ x.mT + 1), torch.half),
    ],
    ids=["topk of masks", "argmax of masks", "unique of complex", "cdist of bfloat16", "determinant of half"],
)  # fmt: skip
def test_what_has_no_kernel_raises_though_nobody_reads_its_result(function, dtype):
    def program(x):
        function(x)
        return x

    x = torch.ones(2, 3, dtype=dtype)
    expected = pytest.raises((RuntimeError, NotImplementedError), program, x).value
    assert str(pytest.raises(type(expected), jit(program), x).value) == str(expected)
    assert torch.equal(jit(program)(torch.ones(2, 3)), torch.ones(2, 3))


@pytest.mark.parametrize("index", [(slice(None), [-1, 0]), [0, 1], 1, (..., 0)], ids=str)
def test_an_index_of_constants_that_fits_leaves_no_call_if_nobody_reads_it(index):
    def program(x):
        x[index]
        return x * 2

    compiled = jit(program)
    assert torch.equal(compiled(torch.ones(3, 4)), torch.full((3, 4), 2.0))
    assert "getitem" not in str(last_traces(compiled)[-1]) or index == (..., 0)
    for shape in ((3, 0), (0, 4)):
        try:
            expected = program(torch.ones(shape))
        except IndexError:
            with pytest.raises(IndexError):
                compiled(torch.ones(shape))
        else:
            assert torch.equal(compiled(torch.ones(shape)), expected)


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_the_complement_of_floats_is_refused_in_eagers_words(device):
    with pytest.raises(TypeError, match="only implemented on integer and Boolean-type tensors"):
        jit(lambda x: ~x)(torch.ones(2, device=device))


@pytest.mark.parametrize(
    "operation",
    [lambda x: x @ x, lambda x: x.view(7), lambda x: x[7], lambda x: x.sum(5), lambda x: torch.cat([x, x[0]])],
    ids=["matmul", "view", "index", "sum", "cat"],
)
def test_the_context_of_an_error_is_what_was_being_handled(operation):
    def program(x, first):
        try:
            try:
                if first:
                    raise KeyError("first")
                operation(x)
            except KeyError:
                operation(x)
        except (RuntimeError, IndexError) as error:
            return repr(error.__context__), repr(error.__cause__), x + 1

    compiled, x = jit(program, fallback="error"), torch.ones(3, 4)
    for first in (True, False):
        assert compiled(x, first)[:2] == program(x, first)[:2] == ("KeyError('first')" if first else "None", "None")


class Stopped(BaseException):
    """Stops training, past all handlers of errors."""


@pytest.mark.parametrize("kind", [ValueError, Stopped, SystemExit, GeneratorExit, asyncio.CancelledError])
@pytest.mark.parametrize("warm", [False, True])
def test_what_comes_before_any_exception_of_the_programs_stays_done(kind, warm):
    def program(x, kept, stops):
        x.add_(1)
        kept.append(x * 2)
        if stops:
            raise kind(x + 1)
        return x

    def done(function):
        x, kept = torch.zeros(2), []
        if warm:
            function(x, kept, False)
        for _ in range(2):
            with pytest.raises(kind) as caught:
                function(x, kept, True)
            kept.append(caught.value.args[0])
        return x, kept

    torch.testing.assert_close(done(jit(program, fallback="error")), done(program))
