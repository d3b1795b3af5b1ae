"""Reads at places that indices tell give what eager PyTorch gives, errors included."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

import thunder_prims as prims
from thunder_executors import Region, to_callable
from thunder_executors_llvm import executor
from thunder_ir import dtypes, trace_of
from thunder_torch import proxy_of, symbol_of, torch_language

pytestmark = pytest.mark.skipif(executor.missing() is not None, reason=f"the executor cannot run: {executor.missing()}")

SIZES = st.sampled_from([1, 2, 3, 16, 17, 65])


def run(program, *tensors):
    """Run all of a program in kernels, whatever that is worth."""
    trace = trace_of(program, *[proxy_of(t, "") for t in tensors])
    region = Region(trace.bound_symbols, trace.inputs, tuple(trace.outputs))
    return executor.runner(region, "alone")(*tensors)


def laid(draw, tensor):
    """Return the tensor with its dimensions in another order in memory, or every second element of a larger one."""
    how = draw(st.sampled_from(["rows", "turned", "stepped", "repeated"]))
    if how == "turned":
        return tensor.mT.contiguous().mT if tensor.ndim > 1 else tensor
    if how == "stepped":
        return torch.repeat_interleave(tensor, 2, -1)[..., ::2]
    return tensor[:1].expand(tensor.shape) if how == "repeated" else tensor


@settings(deadline=None, max_examples=15)
@given(data=st.data())
def test_reads_by_index_are_those_of_eager_in_any_layout(data):
    rows, columns, count = data.draw(SIZES), data.draw(SIZES), data.draw(SIZES)
    dtype = data.draw(st.sampled_from([torch.float32, torch.float64, torch.bfloat16, torch.int32, torch.bool]))
    index_dtype = data.draw(st.sampled_from([torch.int64, torch.int32]))
    torch.manual_seed(data.draw(st.integers(0, 99)))
    x = laid(data.draw, (torch.randn(rows, columns) * 3).to(dtype))
    of_rows = laid(data.draw, torch.randint(0, rows, (count,)).to(index_dtype))
    of_columns = laid(data.draw, torch.randint(0, columns, (rows, count)))

    def program(x, i, j):
        both = (i, prims.remainder(i, columns))
        return (
            prims.embedding(i, x), prims.take(x, i, 0), prims.gather(x, j, 1), prims.index(x, both),
            prims.index(x, (None, j)),
        )  # fmt: skip

    i, j = of_rows.long(), of_columns
    expected = (x[i], x.index_select(0, i), x.gather(1, j), x[i, i % columns], x[:, j])
    for got, wanted in zip(run(program, x, of_rows, of_columns), expected, strict=True):
        assert torch.equal(got, wanted)


@pytest.mark.parametrize("wrong", [5, -1, 2**40])
@pytest.mark.parametrize("place", [0, 1000])
def test_an_index_that_leads_out_of_its_tensor_raises_what_eager_raises(wrong, place):
    x, i = torch.randn(5, 7), torch.zeros(2000, dtype=torch.int64)
    i[place] = wrong

    def outcome(call):
        try:
            return call()
        except (IndexError, RuntimeError) as error:
            return type(error), str(error)

    for program, eager in (
        (lambda x, i: (prims.neg(prims.take(x, i, 0)),), lambda: -torch.index_select(x, 0, i)),
        (lambda x, i: (prims.neg(prims.embedding(i, x)),), lambda: -F.embedding(i, x)),
        (
            lambda x, i: (prims.slice(prims.take(x, i, 0), (0, 0), (1, 7)),),  # which does not want the wrong one
            lambda: torch.index_select(x, 0, i)[:1],
        ),
    ):
        assert outcome(lambda program=program: run(program, x, i)) == outcome(eager)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_cross_entropy_is_the_same_for_every_number_of_threads(threads):
    x, target = torch.randn(64, 5000), torch.randint(0, 5000, (64,))

    def program(x, target):
        shifted = prims.sub(x, prims.broadcast_in_dim(prims.amax(x, (1,)), x.shape, (0,)))
        total = prims.log(prims.sum(prims.exp(shifted), (1,)))
        picked = prims.squeeze(prims.gather(shifted, prims.reshape(target, (64, 1)), 1), (1,))
        return prims.sum(prims.sub(total, picked), (0,)), prims.sub(total, picked)

    expected = run(program, x, target)
    had = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        got = run(program, x, target)
    finally:
        torch.set_num_threads(had)
    assert all([torch.equal(g, e) for g, e in zip(got, expected, strict=True)])
    torch.testing.assert_close(got[0], F.cross_entropy(x, target, reduction="sum"))


def test_writes_of_one_element_to_each_row_are_choices():
    x, i, s = torch.randn(6, 40), torch.randint(0, 40, (6, 1)), torch.randn(6, 1)
    x[2, i[2, 0]] = -0.0
    s[2] = -0.0

    def program(x, i, s):
        return prims.scatter_add(x, i, s, 1), prims.scatter(x, i, s, 1), prims.scatter(x, i, 3.0, 1)

    expected = (x.scatter_add(1, i, s), x.scatter(1, i, s), x.scatter(1, i, 3.0))
    for got, wanted in zip(run(program, x, i, s), expected, strict=True):
        assert torch.equal(got.view(torch.int32), wanted.view(torch.int32))


@pytest.mark.parametrize("returned", ["with rows", "alone", "both"])
@pytest.mark.parametrize("size", [1, 16, 70])
def test_sums_of_what_is_written_to_rows_of_zeros_are_those_of_eager(size, returned):
    i = torch.randint(0, size, (8, 1))
    x, s = torch.randn(8, size), torch.tensor([1.5, -0.0, 0.0, torch.inf, -torch.inf, torch.nan, 1e-42, -3.0])[:, None]

    def program(x, i, s):
        zeros = prims.full(x.shape, 0.0, dtypes.float32, x.device)
        spread = prims.neg(prims.scatter(zeros, i, prims.neg(s), 1))
        total = prims.sum(spread, (1,))
        rows = prims.add(x, prims.broadcast_in_dim(total, x.shape, (0,)))
        return {"with rows": (rows,), "alone": (total,), "both": (total, rows)}[returned]

    total = s[:, 0] + 0.0
    expected = {"with rows": (x + s,), "alone": (total,), "both": (total, x + s)}[returned]
    for got, wanted in zip(run(program, x, i, s), expected, strict=True):
        torch.testing.assert_close(got, wanted, rtol=0, atol=0, equal_nan=True)
        assert torch.equal(got.signbit(), wanted.signbit()) or wanted.isnan().any()


@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_gradients_of_embeddings_have_the_bits_of_eager_in_any_layout_for_any_number_of_threads(data):
    rows, width, count = data.draw(SIZES), data.draw(st.sampled_from([1, 2, 17, 64, 130, 700])), data.draw(SIZES)
    padding = data.draw(st.sampled_from([-1, 0, rows - 1]))
    dtype = data.draw(st.sampled_from([torch.float32, torch.float64, torch.bfloat16, torch.float16]))
    index_dtype = data.draw(st.sampled_from([torch.int64, torch.int32, torch.int16, torch.uint8]))
    shape = data.draw(st.sampled_from([(count,), (count, 1), (2, count), (count, 3), ()]))
    torch.manual_seed(data.draw(st.integers(0, 99)))
    dy = laid(data.draw, torch.randn(*shape, width).to(dtype))
    indices = laid(data.draw, torch.randint(0, rows, shape).to(index_dtype)) if shape else torch.randint(0, rows, ())
    if data.draw(st.booleans()):
        dy = torch.full_like(dy, -0.0) if data.draw(st.booleans()) else dy[..., :1].expand(dy.shape)

    def program(dy, indices):
        return (prims.embedding_backward(prims.mul(dy, 3.0), indices, rows, padding, False),)

    expected = torch.ops.aten.embedding_dense_backward(dy * 3.0, indices.long(), rows, padding, False)
    had = torch.get_num_threads()
    for threads in (1, 2, 4):
        torch.set_num_threads(threads)
        try:
            (got,) = run(program, dy, indices)
        finally:
            torch.set_num_threads(had)
        assert torch.equal(bits(got), bits(expected))


def bits(tensor):
    """Return the bits of a tensor's elements, as integers of their size."""
    return tensor.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()])


def test_rows_that_many_threads_add_are_those_of_one():
    dy, indices = torch.randn(3000, 1024), torch.randint(0, 50, (3000,))

    def program(dy, indices):
        return (prims.embedding_backward(dy, indices, 50, 7, False),)

    expected = torch.zeros(50, 1024).index_add_(0, indices, dy).index_fill_(0, torch.tensor([7]), 0)
    had = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        (got,) = run(program, dy, indices)
    finally:
        torch.set_num_threads(had)
    assert torch.equal(got, expected)


@pytest.mark.parametrize("wrong", [50, -1, 2**40])
def test_a_gradient_for_a_row_that_is_not_there_is_what_pytorch_makes_of_it(wrong):
    dy, indices = torch.randn(300, 20), torch.randint(0, 50, (300,))
    indices[200] = wrong

    def program(dy, indices):
        return (prims.embedding_backward(dy, indices, 50, -1, False),)

    try:
        expected = torch.ops.aten.embedding_dense_backward(dy, indices, 50, -1, False)
    except (IndexError, RuntimeError) as error:
        with pytest.raises(type(error)):
            run(program, dy, indices)
    else:
        assert torch.equal(run(program, dy, indices)[0], expected)


def test_nothing_to_look_up_is_what_eager_makes_of_it():
    x, i = torch.randn(5, 7), torch.zeros(0, dtype=torch.int64)

    def program(x, i):
        return (prims.neg(prims.take(x, i, 0)),)

    trace = trace_of(program, proxy_of(x, ""), proxy_of(i, ""))
    assert torch.equal(run(program, x, i)[0], to_callable(trace, [])(x, i)[0])


@pytest.mark.parametrize("shape", [(7,), (7, 3)], ids=str)
def test_an_index_that_a_reduction_finds_is_no_part_of_the_kernel_that_reads_there(shape):
    def program(x):
        at = symbol_of(torch.argmax)(x) if x.ndim == 1 else symbol_of(torch.argmax)(x, 0)[1]
        return symbol_of(torch.Tensor.__getitem__)(x, at) * 2

    x = torch.randn(shape)
    trace = trace_of(program, proxy_of(x, ""), language=torch_language)

    assert torch.equal(to_callable(trace, [executor])(x), x[x.argmax() if x.ndim == 1 else x.argmax(0)[1]] * 2)
