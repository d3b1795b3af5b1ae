"""``out=``: results land in the caller's tensor as in eager, or are refused."""

import itertools
import warnings

import pytest
import torch

from thunder_frontend import AcquisitionError, jit

INTO = {
    "sum": lambda x, out: torch.sum(x, 0, out=out),
    "prod": lambda x, out: torch.prod(x, 0, out=out),
    "mean": lambda x, out: torch.mean(x, 0, out=out),
    "cumsum": lambda x, out: torch.cumsum(x, 0, out=out),
    "amax": lambda x, out: torch.amax(x, 0, out=out),
    "add": lambda x, out: torch.add(x, 1.5, out=out),
    "isin": lambda x, out: torch.isin(x, x, out=out),
    "sort": lambda x, out: torch.sort(x, dim=0, out=(out, torch.empty(2, 2, dtype=torch.int64))),
    "quantile": lambda x, out: torch.quantile(x, 0.5, 0, out=out),
}
DTYPES = (torch.float32, torch.float64, torch.float16, torch.int64, torch.bool, torch.complex64)


@pytest.mark.parametrize("name", INTO)
def test_out_of_another_dtype_is_computed_in_or_refused_as_in_eager(name):
    function = INTO[name]
    compiled = jit(function, fallback="error")
    for of, into in itertools.product(DTYPES, DTYPES):
        x = torch.tensor([[0.6, 0.7], [1.5, -2.6]]).to(of)
        found = []
        for called in (function, compiled):
            out = torch.zeros((2,) if name in ("sum", "prod", "mean", "amax", "quantile") else (2, 2), dtype=into)
            try:
                called(x.clone(), out)
                found.append(out)
            except (RuntimeError, NotImplementedError, IndexError, TypeError) as error:
                found.append(type(error))
        if isinstance(found[0], type):
            assert isinstance(found[1], type), (of, into, found)
        else:
            torch.testing.assert_close(found[1], found[0], msg=f"{of}, {into}: {found}")


def test_out_in_the_memory_of_what_a_kernel_reads_is_left_to_the_kernel():
    def reduced(x):
        return torch.sum(x, 0, out=x)

    def multiplied(x):
        return torch.mm(x, x, out=x)

    def a_row(x):
        return torch.sum(x[:2], 0, out=x[2])

    def scaled(x):
        return torch.mul(2, x, out=x)

    for program, x, stays_whole in (
        (reduced, torch.tensor(2.0), False),
        (multiplied, torch.ones(3, 3), False),
        (a_row, torch.ones(3, 3), True),
        (scaled, torch.ones(3, 3), True),
    ):
        ours, eagers = x.clone(), x.clone()
        program(eagers)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            jit(program, fallback="split")(ours)
        torch.testing.assert_close(ours, eagers)
        if stays_whole:
            torch.testing.assert_close(jit(program, fallback="error")(x.clone()), program(x.clone()))
        else:
            with pytest.raises(AcquisitionError, match=r"an out= in the memory of what it reads"):
                jit(program, fallback="error")(x.clone())


def test_out_that_is_read_is_not_resized():
    def program(x, y):
        z = y * 1
        torch.mul(z, x, out=z)
        return x * 2

    args = torch.ones(3), torch.ones(3, 1)
    with pytest.raises(AcquisitionError, match="resizes a tensor that is read or seen by others"):
        jit(program, fallback="error")(*args)
    for function in (program, jit(program, fallback="split")):
        with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
            function(*args)


@pytest.mark.parametrize(
    "program",
    [
        lambda x: torch.mean(x, dim=-1, out=None),
        lambda x: torch.addmm(torch.ones(3, 3), x, x.T, out=None),
        lambda x: torch.sort(x, out=None)[0],
    ],
    ids=["mean", "addmm", "sort"],
)
def test_gradients_flow_where_out_is_none(program):
    x, same = (torch.linspace(-1, 1, 12).view(3, 4).requires_grad_() for _ in range(2))
    expected, made = program(x), jit(program, fallback="error")(same)
    torch.testing.assert_close(made, expected)
    expected.square().sum().backward(), made.square().sum().backward()
    torch.testing.assert_close(same.grad, x.grad)
