"""Products beside what goes around the ring, as text and for all ranks in one process."""

import pytest
import torch

import thunder_prims as prims
from thunder_distributed import Axis
from thunder_distributed import prims as dist
from thunder_distributed.costs import Link, Machine, Network, simulate
from thunder_distributed.passes import gather_once, place_collectives, split_products, splits_of
from thunder_distributed.ranks import on_all_ranks
from thunder_ir import Tensor, trace_of, verify
from thunder_testing import assert_text

PAIR = Axis("tensor", 2, splits_products=True)


def gathers(axis, dim=0):
    def program(x, w):
        return prims.matmul(dist.wait(dist.all_gather(x, axis, dim)), w)

    return program


def test_a_product_of_what_is_gathered_runs_while_the_next_part_comes():
    before = trace_of(gathers(PAIR), Tensor((2, 3)), Tensor((3, 5)))
    trace = place_collectives(split_products(before))
    verify(trace)
    assert_text(
        trace,
        """
        def program(x: "float32[2, 3]", w: "float32[3, 5]"):
            t3 = dist_prims.permute(x, _tensor, 1)  # float32[2, 3], in flight
            t4 = prims.matmul(x, w)  # float32[2, 5]
            t5 = dist_prims.wait(t3)  # float32[2, 3]
            t6 = prims.matmul(t5, w)  # float32[2, 5]
            t2 = dist_prims.joined_from_ring((t4, t6), _tensor, 0)  # float32[4, 5]
            return t2
        """,
    )
    (split,) = splits_of(before)
    assert str(split) == "all_gather t0: 1 permutes of float32[2, 3], beside the products t2"


def test_a_sum_of_what_is_multiplied_goes_on_while_the_next_part_is():
    def program(x, w):
        return dist.wait(dist.reduce_scatter(prims.matmul(x, w), PAIR))

    before = trace_of(program, Tensor((4, 3)), Tensor((3, 5)))
    trace = place_collectives(split_products(before))
    verify(trace)
    assert_text(
        trace,
        """
        def program(x: "float32[4, 3]", w: "float32[3, 5]"):
            t3 = dist_prims.part(x, _tensor, 0, 1)  # float32[2, 3]
            t4 = prims.matmul(t3, w)  # float32[2, 5]
            t5 = dist_prims.permute(t4, _tensor, 1)  # float32[2, 5], in flight
            t6 = dist_prims.part(x, _tensor, 0, 0)  # float32[2, 3]
            t7 = prims.matmul(t6, w)  # float32[2, 5]
            t8 = dist_prims.wait(t5)  # float32[2, 5]
            t2 = dist_prims.added(t8, t7)  # float32[2, 5]
            return t2
        """,
    )
    (split,) = splits_of(before)
    assert str(split) == "reduce_scatter t1: 1 permutes of float32[2, 5], beside the products t0"


def flat(a):
    return prims.reshape(a, (a.shape[0] * a.shape[1], a.shape[2]))


def several(axis):
    """Return a program with products of three dimensions, and of rows, of one tensor that is gathered twice."""

    def program(x, w, v, u):
        first, second = (dist.wait(dist.all_gather(x, axis, 1)) for _ in range(2))
        y = prims.linear(first, w, u)
        rows = flat(second)
        z = prims.matmul(rows, v)
        gradient = prims.matmul(prims.transpose(rows, (1, 0)), z)
        back = prims.matmul(flat(y), w)
        summed = dist.wait(dist.reduce_scatter(prims.reshape(back, first.shape), axis, "sum", 1))
        return summed, gradient, z, dist.wait(dist.reduce_scatter(y, axis, "sum", 1))

    return program


@pytest.mark.parametrize("size", [2, 3, 4])
def test_values_are_those_of_one_collective(size):
    axis = Axis("tensor", size, splits_products=True)
    examples = [Tensor((2, 3, 8)), Tensor((6, 8)), Tensor((8, 5)), Tensor((6,))]
    before = trace_of(several(axis), *examples)
    once = gather_once(before)
    after = split_products(once)
    verify(after)
    assert len(splits_of(once)) == 2
    left = [b.symbol for b in after.bound_symbols]
    assert left.count(dist.permute) == 2 * (size - 1) and dist.all_gather not in left
    assert left.count(dist.reduce_scatter) == 1  # of y, which other calls read
    torch.manual_seed(0)
    inputs = [[torch.randn(e.shape, dtype=torch.float64) for e in examples] for _ in range(size)]
    for expected, made in zip(*(on_all_ranks(t, inputs) for t in (before, after)), strict=True):
        for a, b in zip(expected, made, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("program", "other"),
    [
        (gathers(Axis("tensor", 2)), (4, 4)),
        (gathers(PAIR, dim=1), (8, 4)),
        (lambda x, w: prims.matmul(w, dist.wait(dist.all_gather(x, PAIR, 0))), (4, 8)),
        (lambda x, w: prims.exp(dist.wait(dist.all_gather(x, PAIR, 0))), (4, 4)),
        (lambda x, w: dist.wait(dist.reduce_scatter(prims.exp(x), PAIR)), (4, 4)),
        (lambda x, w: dist.wait(dist.reduce_scatter(prims.matmul(x, w), PAIR, "max")), (4, 4)),
    ],
    ids=["not asked for", "summed over", "a matrix", "no product", "no product before", "not a sum"],
)
def test_what_cannot_be_split_stays_as_it_is(program, other):
    trace = trace_of(program, Tensor((4, 4)), Tensor(other))
    assert split_products(trace).bound_symbols == trace.bound_symbols and not splits_of(trace)


def test_less_of_what_is_communicated_is_waited_for():
    axis = Axis("tensor", 8, splits_products=True)

    def program(x, w, v):
        y = prims.matmul(dist.wait(dist.all_gather(x, axis)), w)
        return dist.wait(dist.reduce_scatter(prims.matmul(y, v), axis))

    trace = trace_of(program, Tensor((64, 512)), Tensor((512, 256)), Tensor((256, 512)))
    machine, network = Machine("small", {"default": 1e9}, 1e9, 1e-6), Network(Link(1e-6, 2e7))
    before, after = (simulate(place_collectives(t), machine, network) for t in (trace, split_products(trace)))
    assert before.exposed == pytest.approx(before.spent("communicate"))
    assert after.exposed < before.exposed / 4 and after.seconds < before.seconds
