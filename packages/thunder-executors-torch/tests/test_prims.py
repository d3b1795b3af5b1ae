"""Every prim gives what eager PyTorch gives, in the shape and dtype that its meta function promises."""

import pytest
import torch
from prim_samples import BACKWARD_SAMPLES, RANDOM_SAMPLES, SAMPLES, image, signal, volume

import thunder_prims
from thunder_executors import claim, resolve_executors, to_callable
from thunder_executors.checked import difference
from thunder_executors_torch import executor
from thunder_ir import Builder, NumberProxy, Symbol, Tensor, TensorProxy, Trace, device, dtypes, recording
from thunder_ir.passes import verifying
from thunder_torch import proxy_of

PRIMS = {s.name: s for s in vars(thunder_prims).values() if isinstance(s, Symbol)}


def record_call(name, args):
    """Return the trace of one call, its tensors as inputs, and these tensors."""
    tensors = []

    def proxies(value):
        if isinstance(value, torch.Tensor):
            tensors.append(value)
            return proxy_of(value, f"x{len(tensors)}")
        if isinstance(value, tuple):
            return tuple([proxies(v) for v in value])
        return value

    args = proxies(args)
    builder = Builder()
    builder.names.reserve([f"x{n + 1}" for n in range(len(tensors))])
    symbol = PRIMS[name]
    builder.language = symbol.language
    with recording(builder):
        output = symbol(*args)
    inputs = tuple([proxy_of(t, f"x{n + 1}") for n, t in enumerate(tensors)])
    return Trace("program", inputs, tuple(builder.bound_symbols), output), tensors


def run(name, args):
    trace, tensors = record_call(name, args)
    with verifying():
        result = to_callable(trace)(*tensors)
    if not isinstance(trace.output, NumberProxy):
        assert difference(trace.output, result) is None
    return result


def assert_same(got, expected):
    if isinstance(expected, (tuple, list)):
        assert len(got) == len(expected)
        for g, e in zip(got, expected, strict=True):
            assert_same(g, e)
    elif isinstance(expected, torch.Tensor) and expected.is_meta:
        assert got.is_meta
    else:
        torch.testing.assert_close(got, expected, equal_nan=True, check_stride=False)


@pytest.mark.parametrize(("name", "args", "expected"), SAMPLES, ids=[f"{i}-{s[0]}" for i, s in enumerate(SAMPLES)])
def test_gives_what_eager_pytorch_gives(name, args, expected):
    assert_same(run(name, args), expected(*args))


@pytest.mark.parametrize(("name", "args", "expected"), RANDOM_SAMPLES, ids=[s[0] for s in RANDOM_SAMPLES])
def test_draws_the_numbers_that_eager_pytorch_draws(name, args, expected):
    torch.manual_seed(3)
    got = run(name, args)
    torch.manual_seed(3)
    assert_same(got, expected(*args))


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize(("name", "arguments"), BACKWARD_SAMPLES, ids=[s[0] for s in BACKWARD_SAMPLES])
def test_backward_prims_give_the_gradients_of_autograd(name, arguments, dimensions):
    a = (signal, image, volume)[dimensions - 1].clone().requires_grad_()
    args = arguments(a, dimensions)
    outputs = run(name, args)
    y, *rest = outputs if isinstance(outputs, tuple) else (outputs,)
    dy = torch.randn_like(y)
    before = {"max_pool": (dy, a, *rest), "avg_pool": (dy, tuple(a.shape))}.get(name, (dy,))
    after = {"adaptive_avg_pool": (tuple(a.shape[2:]),)}.get(name, args[1:])

    assert_same(
        run(f"{name}_backward", tuple(t.detach() if isinstance(t, torch.Tensor) else t for t in (*before, *after))),
        torch.autograd.grad(y, a, dy)[0],
    )


def test_the_gradients_of_a_convolution_are_those_of_autograd():
    a, weight, bias = (torch.randn(s, requires_grad=True) for s in ((2, 4, 6, 6), (6, 2, 3, 3), (6,)))
    parameters = ((2, 1), (1, 0), (1, 2), False, (0, 0), 2)
    y = torch.convolution(a, weight, bias, *parameters)
    dy = torch.randn_like(y)
    expected = torch.autograd.grad(y, (a, weight, bias), dy)
    operands = (dy, a.detach(), weight.detach())

    assert_same(run("convolution_backward", (*operands, *parameters, (True, True, True))), expected)
    assert run("convolution_backward", (*operands, *parameters, (False, True, False)))[0] is None


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("mask", [None, torch.ones(4, 4, dtype=torch.bool).tril()[None, None].expand(2, 3, 4, 4)])
def test_attention_and_its_gradients_are_those_of_autograd(is_causal, mask):
    q, k, v = (torch.randn(2, 3, 4, 8, requires_grad=True) for _ in range(3))
    both = mask if not is_causal or mask is None else mask & torch.ones(4, 4, dtype=torch.bool).tril()
    y = torch.nn.functional.scaled_dot_product_attention(q, k, v, both, is_causal=is_causal and mask is None, scale=0.5)
    dy = torch.randn_like(y)
    operands = (q.detach(), k.detach(), v.detach(), mask)
    got, logarithm = run("attention", (*operands, is_causal, 0.5))

    assert_same(got, y.detach())
    found = run("attention_backward", (dy, *operands, got, logarithm, is_causal, 0.5))
    assert_same(found, torch.autograd.grad(y, (q, k, v), dy))


def test_philox_numbers_depend_on_seed_and_offset_alone():
    asked = ((4,), 0.0, 1.0, dtypes.float32, device("cpu"))
    first, again, other = (run("uniform_philox", (*asked, *state)) for state in ((1, 0), (1, 0), (1, 4)))
    assert torch.equal(first, again) and not torch.equal(first, other)


def test_the_state_of_the_generator_moves_on():
    here = device("cpu")
    torch.manual_seed(0)
    seed, offset = run("get_and_update_rng_state", (None, None, here))
    assert offset == 0 and run("get_and_update_rng_state", (seed, offset, here)) == (seed, 4)
    assert run("get_and_update_rng_state", (None, None, here)) != (seed, 0)


def test_generators_can_be_set_back_and_forth():
    torch.manual_seed(0)
    devices = ("cpu",)
    states = run("generator_states", (devices,))
    first, second = torch.rand(3), torch.rand(3)
    after_two = run("exchange_generator_states", (devices, states))
    assert torch.equal(torch.rand(3), first)
    after_one = run("exchange_generator_states", (devices, after_two))
    third = torch.rand(3)
    run("exchange_generator_states", (devices, after_one))
    assert torch.equal(torch.rand(3), second) and torch.equal(torch.rand(3), third)


def test_empty_has_the_metadata_asked_for():
    assert run("empty", ((2, 3), dtypes.int16, device("cpu"))).shape == (2, 3)


def test_what_was_recorded_can_be_asserted():
    a = torch.zeros(2)
    run("assert_tensor_metadata", (a, (2,), dtypes.float32, device("cpu")))
    with pytest.raises(RuntimeError, match="expected a tensor of shape, dtype and device"):
        run("assert_tensor_metadata", (a, (3,), dtypes.float32, device("cpu")))


def test_every_prim_is_run_by_someone():
    executors = resolve_executors()
    unclaimed = [name for name, s in PRIMS.items() if s.is_prim and not any(e.implementations(s) for e in executors)]
    assert unclaimed == []


def test_every_prim_that_this_executor_runs_has_a_sample():
    sampled = {s[0] for s in SAMPLES + RANDOM_SAMPLES} | {f"{s[0]}_backward" for s in BACKWARD_SAMPLES}
    sampled |= {"convolution_backward", "uniform_philox", "get_and_update_rng_state", "empty", "assert_tensor_metadata"}
    sampled |= {"attention", "attention_backward", "generator_states", "exchange_generator_states"}
    assert {name for name, s in PRIMS.items() if executor.implementations(s)} - sampled == set()


def test_generated_code_calls_pytorch_directly():
    def program(a, b):
        return thunder_prims.sum(thunder_prims.mul(a, b), (1,))

    builder = Builder()
    inputs = (Tensor((2, 3)).renamed("a"), Tensor((2, 3)).renamed("b"))
    with recording(builder):
        output = program(*inputs)
    trace = claim(Trace("program", inputs, tuple(builder.bound_symbols), output), [executor])

    assert isinstance(output, TensorProxy)
    assert str(trace).splitlines()[1:-1] == [
        "    t0 = torch.mul(a, b)  # float32[2, 3]",
        "    t1 = torch.sum(t0, (1,))  # float32[2]",
    ]


@pytest.mark.parametrize("sizes", [(3, 2, 4, 5), (8, 1, 7, 3), (8, 5, 7, 1), (2, 3, 0, 4), (0, 2, 3, 4)], ids=str)
def test_products_of_batches_have_the_bits_and_the_layout_of_matmul(sizes):
    batch, n, k, m = sizes
    a, b = torch.randn(batch, k, n).transpose(1, 2), torch.randn(batch, k, m)
    for x in (a, a.contiguous()):
        y, expected = run("matmul", (x, b)), torch.matmul(x, b)
        assert torch.equal(y, expected) and y.stride() == expected.stride()


def test_columns_times_rows_lie_in_rows_however_their_operands_lie():
    a, b = torch.randn(4, 3, 5).permute(2, 1, 0)[:, :, :1], torch.randn(4, 5, 6).permute(1, 0, 2)[:, :1]
    y = run("matmul", (a, b))
    assert torch.equal(y, torch.matmul(a, b)) and y.is_contiguous()
