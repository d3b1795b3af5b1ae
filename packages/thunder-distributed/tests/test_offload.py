"""Shards in the memory of the host: where programs copy them, as text, for a device that need not be there."""

import pytest
import torch
from torch import nn
from torch.distributed.fsdp import CPUOffloadPolicy, OffloadPolicy

import thunder_prims as prims
from thunder_autograd import forward_and_backward
from thunder_distributed import Axis, fsdp
from thunder_distributed.copies import copy_to
from thunder_distributed.costs import Link, Machine, Network, simulate
from thunder_distributed.parameters import Sharded, sharded, sharded_again
from thunder_distributed.passes import bucket_collectives, place_collectives
from thunder_distributed.ranks import on_all_ranks
from thunder_ir import Tensor, device, dtypes, trace_of, verify

CUDA = device("cuda:0")


def layers(axis, count=3, on=CUDA):
    """Return the forward and the backward program of layers whose parts are on the host."""
    hows = [Sharded(axis, (8, 8), 0, (f"layer {i}", 0), again=True, computed_on=on) for i in range(count)]

    def program(x, *parts):
        for part, how in zip(parts, hows, strict=True):
            x = prims.tanh(prims.matmul(x, sharded_again(part, how, True)))
        return x

    parts = [Tensor((8 // axis.size, 8), requires_grad=True) for _ in hows]
    return forward_and_backward(trace_of(program, Tensor((4, 8), device=on or "cpu"), *parts))


def steps(trace):
    """Return what a program does with copies and collectives, and its products, in order."""
    waits = {
        b.output.name: b for b in trace.bound_symbols if b.symbol.name in ("copy_to", "all_gather", "reduce_scatter")
    }
    named = []
    for bound in trace.bound_symbols:
        name = bound.symbol.name
        if name == "copy_to":
            named.append(f"to {bound.args[1].type}")
        elif name == "wait":
            named.append(f"wait for {waits[bound.args[0].name].symbol.name}")
        elif name in ("all_gather", "reduce_scatter", "matmul"):
            named.append(name)
    return named


def test_parts_are_copied_one_gather_ahead_of_their_own():
    forward = place_collectives(layers(Axis("shard", 8)).forward)
    verify(forward)
    gather = ["wait for copy_to", "all_gather"]
    assert steps(forward) == [
        "to cuda", *gather, "to cuda", "wait for all_gather", *gather, "to cuda", "matmul", "wait for all_gather",
        *gather, "matmul", "wait for all_gather", "matmul",
    ]  # fmt: skip
    assert {b.output.device for b in forward.bound_symbols if b.symbol.name in ("all_gather", "matmul")} == {CUDA}


def test_gradients_are_copied_back_before_the_next_one_is_sent():
    backward = place_collectives(layers(Axis("shard", 8)).backward)
    verify(backward)
    made = steps(backward)
    assert made.count("to cuda") == 2  # the first matrix is not asked for: nobody wants the gradient of x
    sent = [i for i, step in enumerate(made) if step == "reduce_scatter"]
    back = [i for i, step in enumerate(made) if step == "to cpu"]
    assert len(sent) == len(back) == 3 and sent[0] < back[0] < sent[1] < back[1] < sent[2] < back[2]
    assert made[-3:] == ["wait for copy_to"] * 3
    assert {p.device.type for p in backward.outputs if p is not None} == {"cpu"}


def test_more_is_copied_ahead_where_memory_allows():
    ahead = place_collectives(layers(Axis("shard", 8, ahead_bytes=2 * 8 * 8 * 4)).forward)
    verify(ahead)
    made = steps(ahead)
    assert made[: made.index("matmul")].count("to cuda") == 3


def test_parts_are_converted_and_packed_on_the_device():
    axis = Axis("shard", 4)
    hows = [Sharded(axis, (8, 8), 0, ("layer", i), gathered_in=dtypes.bfloat16, computed_on=CUDA) for i in range(2)]

    def program(x, *parts):
        for part, how in zip(parts, hows, strict=True):
            x = prims.matmul(x, sharded(part, how, True))
        return x

    parts = [Tensor((2, 8), requires_grad=True) for _ in hows]
    split = forward_and_backward(trace_of(program, Tensor((4, 8), "bfloat16", device=CUDA), *parts))
    forward, backward = (place_collectives(bucket_collectives(trace)) for trace in (split.forward, split.backward))
    verify(forward)
    verify(backward)
    packs = [b for trace in (forward, backward) for b in trace.bound_symbols if b.symbol.name == "pack"]
    assert {p.type_string for b in packs for p in b.inputs} >= {"cuda:0 bfloat16[2, 8]"}
    copied = [b.output.type_string for b in backward.bound_symbols if b.symbol.name == "copy_to"]
    assert copied == ["float32[2, 8], in flight"] * 2


def test_programs_with_copies_compute_what_those_without_do():
    axis = Axis("shard", 4)
    split, plain = layers(axis), layers(axis, count=3, on=None)
    torch.manual_seed(0)
    inputs = [[torch.randn(4, 8), *torch.randn(3, 2, 8)] for _ in range(4)]
    for made, expected in zip(
        on_all_ranks(place_collectives(bucket_collectives(split.forward)), inputs),
        on_all_ranks(plain.forward, inputs),
        strict=True,
    ):
        assert torch.equal(made[0], expected[0])


def test_timelines_show_what_copies_are_waited_for():
    trace = layers(Axis("shard", 8)).forward
    machine = Machine("small", {"default": 1e9}, 1e9, 1e-6, host=1e6)
    before, after = (simulate(t, machine, Network(Link(1e-6, 1e9))) for t in (trace, place_collectives(trace)))
    assert before.spent("copy") == after.spent("copy") == pytest.approx(3 * 32 / 1e6)
    assert after.exposed < before.exposed


def test_a_part_is_on_the_host_whatever_the_model_computes_on(one_process):
    compiled = fsdp(nn.Linear(4, 4), device="meta", offload_policy=CPUOffloadPolicy(pin_memory=False))
    assert {p.device.type for p in compiled.parameters()} == {"cpu"}
    assert {how.computed_on.type for how in compiled._thunder_parallel.hows.values()} == {"meta"}


def test_a_copy_is_there_once_it_is_waited_for():
    a = torch.arange(4.0)
    copied = copy_to(a, device("cpu")).wait()
    assert torch.equal(copied, a) and copied.data_ptr() != a.data_ptr()
    assert copy_to(a, device("meta")).wait().device.type == "meta"


def test_what_is_no_policy_is_refused(one_process):
    with pytest.raises(TypeError, match="takes a CPUOffloadPolicy of torch.distributed.fsdp as offload_policy"):
        fsdp(nn.Linear(2, 2), offload_policy=True)


def test_a_policy_without_offload_leaves_parts_where_they_are(one_process):
    compiled = fsdp(nn.Linear(4, 4), device="meta", offload_policy=OffloadPolicy())
    assert {p.device.type for p in compiled.parameters()} == {"meta"}
