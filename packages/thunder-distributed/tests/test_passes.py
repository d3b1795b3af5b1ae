"""Passes over collectives, as text, with the sizes of a mesh of eight in one process."""

import pytest

import thunder_prims as prims
from thunder_distributed import Axis
from thunder_distributed import prims as dist
from thunder_distributed.buffers import Buffer
from thunder_distributed.passes import bucket_collectives, gather_once, place_collectives
from thunder_distributed.prim import OWNED
from thunder_ir import Tensor, trace_of, verify
from thunder_testing import assert_text

DATA = Axis("data", 8)


def mean(gradient, axis, bucket):
    return dist.wait(dist.all_reduce(gradient, axis, "mean", bucket))


def test_gradients_are_sent_together_in_the_order_of_their_places():
    def program(x, y):
        first = mean(prims.exp(x), DATA, ("", 1))
        second = mean(prims.exp(y), DATA, ("", 0))
        return first, second

    trace = bucket_collectives(trace_of(program, Tensor((2, 3)), Tensor((4,))))
    verify(trace)
    assert_text(
        trace,
        """
        def program(x: "float32[2, 3]", y: "float32[4]"):
            t0 = prims.exp(x)  # float32[2, 3]
            t3 = prims.exp(y)  # float32[4]
            t6 = dist_prims.pack((t3, t0), 1, (), 0.125, _buffer)  # float32[10]
            t7 = dist_prims.all_reduce(t6, _data, 'sum', None)  # float32[10], in flight
            t8 = dist_prims.wait(t7)  # float32[10]
            (t5, t2) = dist_prims.unpack(t8, ((4,), (2, 3)), 1, ())  # float32[4], float32[2, 3]
            return (t2, t5)
        """,
    )


def test_views_of_what_a_bucket_takes_come_right_before_it():
    def program(x, y):
        first = mean(prims.reshape(prims.exp(x), (6,)), DATA, ("", 1))
        second = mean(prims.exp(y), DATA, ("", 0))
        return first, second

    trace = bucket_collectives(trace_of(program, Tensor((2, 3)), Tensor((4,))))
    verify(trace)
    names = [b.symbol.name for b in trace.bound_symbols]
    assert names == ["exp", "exp", "reshape", "pack", "all_reduce", "wait", "unpack"]


def test_buckets_are_packed_into_memory_that_the_next_step_takes_again_on_a_cpu_only():
    def buffers(device):
        trace = bucket_collectives(
            trace_of(lambda x, y: [mean(t, DATA, ("", i)) for i, t in enumerate((x, y))], x(device), x(device))
        )
        return [b.args[4] for b in trace.bound_symbols if b.symbol is dist.pack]

    def x(device):
        return Tensor((4,), device=device)

    (first,), (again,), (none,) = buffers("cpu"), buffers("cpu"), buffers("cuda")
    assert first is again
    assert isinstance(first, Buffer)
    assert none is None


def test_a_bucket_is_closed_when_it_is_large_enough():
    axis = Axis("data", 8, bucket_bytes=32)

    def program(x, y, z):
        return [mean(t, axis, ("", i)) for i, t in enumerate((x, y, z))]

    trace = bucket_collectives(trace_of(program, Tensor((4,)), Tensor((4,)), Tensor((4,))))
    verify(trace)
    sent = [b.args[0].type_string for b in trace.bound_symbols if b.symbol is dist.all_reduce]
    assert sent == ["float32[8]", "float32[4]"]


def test_the_first_bucket_is_small_and_the_others_share_what_is_left():
    def program(tensors):
        return [mean(t, DATA, ("", i)) for i, t in enumerate(tensors)]

    trace = bucket_collectives(trace_of(program, [Tensor((1024, 128))] * 12))
    verify(trace)
    sent = [b.args[0].numel * 4 // 1024 for b in trace.bound_symbols if b.symbol is dist.all_reduce]
    assert sent == [1024, 2048, 2048, 1024]  # of six megabytes
    few = bucket_collectives(trace_of(program, [Tensor((1024, 16))] * 12))
    assert len([b for b in few.bound_symbols if b.symbol is dist.all_reduce]) == 1  # of less than one


@pytest.mark.parametrize(("parts", "sent"), [(4, [1024, 2048, 2048, 1024]), (2, [1024, 5120]), (1, [6144])])
def test_an_axis_says_into_how_many_buckets_all_is_divided(parts, sent):
    axis = Axis("data", 8, bucket_parts=parts)

    def program(tensors):
        return [mean(t, axis, ("", i)) for i, t in enumerate(tensors)]

    trace = bucket_collectives(trace_of(program, [Tensor((1024, 128))] * 12))
    assert [b.args[0].numel * 4 // 1024 for b in trace.bound_symbols if b.symbol is dist.all_reduce] == sent


def test_what_has_another_dtype_or_no_bucket_is_sent_by_itself():
    def program(x, y, z):
        return mean(x, DATA, ("", 0)), mean(y, DATA, ("", 1)), mean(z, DATA, None)

    before = trace_of(program, Tensor((4,)), Tensor((4,), "bfloat16"), Tensor((4,)))
    assert bucket_collectives(before).bound_symbols == before.bound_symbols


def test_shards_of_a_layer_are_gathered_together_where_the_first_is_needed():
    def program(x, weight, bias):
        whole = dist.wait(dist.all_gather(weight, DATA, 0, ("layer", 0)))
        y = prims.matmul(x, whole)
        return prims.add(
            y, prims.broadcast_in_dim(dist.wait(dist.all_gather(bias, DATA, 0, ("layer", 1))), (2, 8), (1,))
        )

    trace = bucket_collectives(trace_of(program, Tensor((2, 8)), Tensor((1, 8)), Tensor((1,))))
    verify(trace)
    assert_text(
        trace,
        """
        def program(x: "float32[2, 8]", weight: "float32[1, 8]", bias: "float32[1]"):
            t7 = dist_prims.pack((weight, bias), 1, (), None, None)  # float32[9]
            t8 = dist_prims.all_gather(t7, _data, 0, None)  # float32[72], in flight
            t9 = dist_prims.wait(t8)  # float32[72]
            (t1, t4) = dist_prims.unpack(t9, ((8, 8), (8,)), 8, (0, 0))  # float32[8, 8], float32[8]
            t2 = prims.matmul(x, t1)  # float32[2, 8]
            t5 = prims.broadcast_in_dim(t4, (2, 8), (1,))  # float32[2, 8]
            t6 = prims.add(t2, t5)  # float32[2, 8]
            return t6
        """,
    )


def test_what_several_layers_gather_of_one_input_is_gathered_once():
    def program(x, first, second):
        y = prims.matmul(dist.wait(dist.all_gather(x, DATA)), first)
        return prims.add(y, prims.matmul(dist.wait(dist.all_gather(x, DATA)), second))

    trace = gather_once(trace_of(program, Tensor((1, 4)), Tensor((4, 3)), Tensor((4, 3))))
    verify(trace)
    assert_text(
        trace,
        """
        def program(x: "float32[1, 4]", first: "float32[4, 3]", second: "float32[4, 3]"):
            t0 = dist_prims.all_gather(x, _data, 0, None)  # float32[8, 4], in flight
            t1 = dist_prims.wait(t0)  # float32[8, 4]
            t2 = prims.matmul(t1, first)  # float32[8, 3]
            t5 = prims.matmul(t1, second)  # float32[8, 3]
            t6 = prims.add(t2, t5)  # float32[8, 3]
            return t6
        """,
    )


def gathers_twice(first, second, read=prims.exp):
    def program(x, y):
        given = {"x": x, "y": y}
        return [read(dist.wait(dist.all_gather(given[name], *rest))) for name, *rest in (first, second)]

    return trace_of(program, Tensor((8, 8)), Tensor((8, 8)))


def test_a_weight_that_is_tied_is_gathered_once_and_is_one_tensor():
    place = ("layer", 0)
    trace = gather_once(gathers_twice(("x", DATA, 0, place), ("x", DATA, 0, place), read=lambda whole: whole))
    verify(trace)
    assert order_of(trace) == ["all_gather", "wait"] and len({p.name for p in trace.outputs}) == 1


@pytest.mark.parametrize(
    "before",
    [
        gathers_twice(("x", DATA), ("y", DATA)),
        gathers_twice(("x", DATA), ("x", DATA, 1)),
        gathers_twice(("x", DATA), ("x", Axis("other", 8))),
        gathers_twice(("x", DATA), ("x", DATA), read=lambda whole: whole),
    ],
    ids=["of others", "along another dimension", "over another axis", "memory that two results would share"],
)
def test_gathers_that_differ_are_not_merged(before):
    assert gather_once(before).bound_symbols == before.bound_symbols


def test_a_wait_moves_down_to_its_first_reader():
    def program(x, shard):
        whole = dist.wait(dist.all_gather(shard, DATA))
        return prims.matmul(prims.tanh(x), whole)

    trace = place_collectives(trace_of(program, Tensor((4, 8)), Tensor((1, 8))))
    verify(trace)
    assert_text(
        trace,
        """
        def program(x: "float32[4, 8]", shard: "float32[1, 8]"):
            t0 = dist_prims.all_gather(shard, _data, 0, None)  # float32[8, 8], in flight
            t2 = prims.tanh(x)  # float32[4, 8]
            t1 = dist_prims.wait(t0)  # float32[8, 8]
            t3 = prims.matmul(t2, t1)  # float32[4, 8]
            return t3
        """,
    )


def layers(axis):
    def program(x, a, b, c):
        for shard in (a, b, c):
            x = prims.matmul(x, dist.wait(dist.all_gather(shard, axis)))
        return x

    return trace_of(program, Tensor((8, 8)), Tensor((1, 8)), Tensor((1, 8)), Tensor((1, 8)))


def order_of(trace):
    return [b.symbol.name for b in trace.bound_symbols]


def test_one_gather_is_under_way_while_what_came_before_is_computed_with():
    trace = place_collectives(layers(DATA))
    verify(trace)
    assert order_of(trace) == [
        "all_gather", "wait", "all_gather", "matmul", "wait", "all_gather", "matmul", "wait", "matmul",
    ]  # fmt: skip


def test_more_gathers_are_under_way_where_memory_allows():
    trace = place_collectives(layers(Axis("data", 8, ahead_bytes=2 * 8 * 8 * 4)))
    verify(trace)
    assert order_of(trace) == [
        "all_gather", "all_gather", "wait", "all_gather", "matmul", "wait", "matmul", "wait", "matmul",
    ]  # fmt: skip


def test_a_gather_begins_when_the_buffer_of_the_one_before_is_freed():
    def program(x, *shards):
        for i, shard in enumerate(shards):
            x = prims.matmul(x, dist.wait(dist.all_gather(shard, DATA, 0, (f"layer {i // 2}", i))))
        return x

    trace = place_collectives(bucket_collectives(trace_of(program, Tensor((8, 8)), *[Tensor((1, 8))] * 4)))
    verify(trace)
    assert order_of(trace) == [
        "pack", "all_gather", "wait", "unpack", "pack", "all_gather", "matmul", "matmul",
        "wait", "unpack", "matmul", "matmul",
    ]  # fmt: skip


def test_as_much_is_gathered_ahead_as_the_largest_gather_takes():
    def program(x, *shards):
        for shard in shards:
            x = prims.matmul(x, dist.wait(dist.all_gather(shard, DATA, 1)))
        return x

    sizes = [Tensor((8, 1)), Tensor((8, 1)), Tensor((8, 2)), Tensor((16, 1))]
    trace = place_collectives(trace_of(program, Tensor((8, 8)), *sizes))
    verify(trace)
    assert order_of(trace) == [
        "all_gather", "all_gather", "wait", "matmul", "wait", "all_gather", "matmul",
        "wait", "all_gather", "matmul", "wait", "matmul",
    ]  # fmt: skip


def scatters(axis, *buckets):
    def program(*tensors):
        return [
            dist.wait(dist.reduce_scatter(prims.exp(t), axis, "mean", 0, bucket))
            for t, bucket in zip(tensors, buckets, strict=True)
        ]

    return trace_of(program, *[Tensor((8,))] * len(buckets))


def test_whole_gradients_are_let_go_of_before_the_next_ones_are_sent():
    trace = place_collectives(scatters(DATA, None, None, None))
    verify(trace)
    assert order_of(trace) == [
        "exp", "reduce_scatter", "exp", "wait", "reduce_scatter", "exp", "wait", "reduce_scatter", "wait",
    ]  # fmt: skip


def test_more_gradients_are_under_way_where_memory_allows():
    trace = place_collectives(scatters(Axis("data", 8, ahead_bytes=2 * 8 * 4), None, None, None))
    verify(trace)
    assert order_of(trace) == [
        "exp", "reduce_scatter", "exp", "reduce_scatter", "exp", "wait", "reduce_scatter", "wait", "wait",
    ]  # fmt: skip


def test_whole_gradients_are_let_go_of_before_the_next_ones_are_packed():
    places = [(f"layer {i // 2}", i) for i in range(4)]
    trace = place_collectives(bucket_collectives(scatters(DATA, *places)))
    verify(trace)
    assert order_of(trace) == [
        "exp", "exp", "pack", "reduce_scatter", "exp", "exp", "wait", "pack", "reduce_scatter",
        "wait", "unpack", "unpack",
    ]  # fmt: skip


def test_what_is_large_travels_alone_and_is_copied_nowhere():
    large, small = Tensor((1024, 128)), Tensor((8,))  # half a megabyte, and little

    def program(a, b, c, x, y, z):
        places = [("layer", i) for i in range(3)]
        whole = [dist.wait(dist.all_gather(t, DATA, 0, p)) for t, p in zip((a, b, c), places, strict=True)]
        parts = [dist.wait(dist.reduce_scatter(t, DATA, "mean", 0, p)) for t, p in zip((x, y, z), places, strict=True)]
        return whole, parts

    whole = Tensor((8192, 128))
    trace = bucket_collectives(trace_of(program, large, small, small, whole, Tensor((64,)), Tensor((64,))))
    verify(trace)
    kinds = (dist.all_gather, dist.reduce_scatter)
    sent = [(b.symbol.name, b.args[0].type_string) for b in trace.bound_symbols if b.symbol in kinds]
    assert sent == [
        ("all_gather", "float32[1024, 128]"), ("all_gather", "float32[16]"),
        ("reduce_scatter", "float32[8192, 128]"), ("reduce_scatter", "float32[128]"),
    ]  # fmt: skip


LARGE = Tensor((1024, 256))  # a megabyte


def sums_in_place(program, *examples):
    """Which of the sums of a program are made in place."""
    trace = bucket_collectives(trace_of(program, *examples))
    verify(trace)
    return [bound.has_tag(OWNED) for bound in trace.bound_symbols if bound.symbol is dist.all_reduce]


def test_a_sum_that_fills_a_bucket_is_made_in_place_where_nothing_else_has_its_memory():
    def program(a, b, c):
        first, second = prims.matmul(a, b), prims.reshape(prims.matmul(a, c), (256, 1024))
        return [mean(t, DATA, ("", i)) for i, t in enumerate((first, second))]

    assert sums_in_place(program, Tensor((1024, 8)), Tensor((8, 256)), Tensor((8, 256))) == [True, True]


def test_a_sum_of_a_quarter_of_all_that_is_sent_waits_for_no_others():
    axis = Axis("data", 8, bucket_parts=1)

    def program(a, b, others):
        return [mean(t, axis, ("", i)) for i, t in enumerate((prims.matmul(a, b), *others))]

    others = [Tensor((1024, 128))] * 4
    assert sums_in_place(program, Tensor((1024, 8)), Tensor((8, 256)), others) == [
        True,
        True,
    ]  # the other one is packed


@pytest.mark.parametrize(
    "program",
    [
        lambda a, b, c: [mean(c, DATA, ("", 0))],  # of the caller
        lambda a, b, c: [mean(prims.reshape(c, (256, 1024)), DATA, ("", 0))],
        lambda a, b, c: [mean(prims.exp(c), DATA, ("", 0))],  # of which no schema says that it is new
        lambda a, b, c: [mean(d := prims.matmul(a, b), DATA, ("", 0)), d],
        lambda a, b, c: [mean(d := prims.matmul(a, b), DATA, ("", 0)), prims.sum(d, (0,))],
        lambda a, b, c: [mean(prims.reshape(d := prims.matmul(a, b), (256, 1024)), DATA, ("", 0)), prims.exp(d)],
    ],
)
def test_a_sum_of_what_others_read_is_a_tensor_of_its_own(program):
    assert sums_in_place(program, Tensor((1024, 8)), Tensor((8, 256)), LARGE) == [False]


def test_programs_without_collectives_stay_as_they_are():
    trace = trace_of(lambda x: prims.exp(x), Tensor((2,)))
    assert place_collectives(trace).bound_symbols is trace.bound_symbols
