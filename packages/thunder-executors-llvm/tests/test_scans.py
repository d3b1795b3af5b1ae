"""Cumulative sums and products, with what stands before and after them, give the bits that PyTorch gives."""

import pytest
import torch

import thunder_prims as prims
from thunder_executors import Region
from thunder_executors_llvm import executor
from thunder_ir import trace_of
from thunder_torch import proxy_of

pytestmark = pytest.mark.skipif(executor.missing() is not None, reason=f"the executor cannot run: {executor.missing()}")

CASES = [
    ((4, 6), torch.float32), ((37, 53), torch.float32), ((3, 2000), torch.float32), ((700, 7), torch.float64),
    ((64, 128), torch.float32), ((2, 3, 65), torch.int64), ((1, 50), torch.uint8), ((50, 1), torch.int32),
    ((37, 53), torch.bfloat16), ((5, 33), torch.float16), ((1, 1, 9), torch.float64), ((1, 1), torch.float32),
]  # fmt: skip


def run(program, *tensors):
    """Run all of a program in kernels, whatever that is worth."""
    trace = trace_of(program, *[proxy_of(t, "") for t in tensors])
    region = Region(trace.bound_symbols, trace.inputs, tuple(trace.outputs))
    return executor.runner(region, "alone")(*tensors)


def values(shape, dtype, turned):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0)) * 2
    x = x.abs().to(dtype) if not dtype.is_floating_point else x.to(dtype)
    return x.transpose(-1, -2).contiguous().transpose(-1, -2) if turned else x


def backwards(operation, a, dim):
    return prims.flip(operation(prims.flip(a, (dim,)), dim), (dim,))


@pytest.mark.parametrize("turned", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize(("shape", "dtype"), CASES, ids=str)
def test_cumulative_sums_and_products_have_eagers_bits_from_both_ends(shape, dtype, turned):
    x = values(shape, dtype, turned)
    for dim in range(x.ndim):
        for prim, eager in ((prims.cumsum, torch.cumsum), (prims.cumprod, torch.cumprod)):
            total, behind, squares = run(
                lambda a, prim=prim, dim=dim: (
                    prim(a, dim),
                    backwards(prim, a, dim),
                    prims.neg(prim(prims.mul(a, a), dim)),
                ),
                x,
            )
            wanted = eager(x.flip(dim), dim, dtype=dtype).flip(dim)
            torch.testing.assert_close(total, eager(x, dim, dtype=dtype), rtol=0, atol=0, equal_nan=True)
            torch.testing.assert_close(behind, wanted, rtol=0, atol=0, equal_nan=True)
            torch.testing.assert_close(squares, -eager(x * x, dim, dtype=dtype), rtol=0, atol=0, equal_nan=True)
            assert total.stride() == eager(x, dim, dtype=dtype).stride()


def test_what_is_before_and_after_a_cumulative_sum_is_in_its_kernel():
    def nucleus(x):
        def rows(v):
            return prims.broadcast_in_dim(v, x.shape, (0,))

        e = prims.exp(prims.sub(x, rows(prims.amax(x, (1,)))))
        total = prims.cumsum(prims.div(e, rows(prims.sum(e, (1,)))), 1)
        return (prims.where(prims.lt(total, 0.9), x, float("-inf")), prims.sum(total, (1,)))

    x = torch.randn(33, 70)
    kept, total = run(nucleus, x)
    expected = torch.softmax(x.double(), 1).cumsum(1)
    sure = (expected - 0.9).abs() > 1e-5
    assert torch.equal(kept[sure], torch.where(expected < 0.9, x, -torch.inf)[sure])
    torch.testing.assert_close(total.double(), expected.sum(1), rtol=1e-6, atol=0)


def test_a_sum_and_one_from_the_other_end_can_meet():
    x = torch.randn(9, 21)
    both, total, turned = run(
        lambda a: (
            prims.add(prims.cumsum(a, 1), backwards(prims.cumsum, prims.exp(a), 1)),
            prims.cumsum(a, 1),
            prims.flip(prims.cumsum(a, 1), (1,)),
        ),
        x,
    )
    torch.testing.assert_close(both, x.cumsum(1) + x.exp().flip(1).cumsum(1).flip(1))
    assert torch.equal(total, x.cumsum(1)) and torch.equal(turned, x.cumsum(1).flip(1))


@pytest.mark.parametrize("dim", [0, 1])
def test_bits_do_not_depend_on_the_number_of_threads(dim):
    x, found = torch.randn(300, 400), []
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 4):
            torch.set_num_threads(threads)
            found.append(run(lambda a: (prims.cumsum(prims.exp(a), dim),), x)[0])
    finally:
        torch.set_num_threads(before)
    assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])
