"""Costs: formulas on published numbers, timelines of small programs, plans."""

import json
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.distributed._tools.mem_tracker import MemTracker

import thunder_prims as prims
from thunder_distributed import Axis
from thunder_distributed import prims as dist
from thunder_distributed.costs import Link, Machine, Network, machine, simulate
from thunder_distributed.costs.measuring import Measured, MeasuredNetwork, _apart, measure_operations
from thunder_distributed.costs.planning import plan
from thunder_distributed.costs.simulate import operations_of
from thunder_distributed.costs.transformers import Transformer
from thunder_distributed.costs.validation import halves, published, validate
from thunder_distributed.passes import place_collectives
from thunder_distributed.timelines import TENSOR_LAYERS, tensor_timelines, timelines
from thunder_distributed.timelines import main as timelines_main
from thunder_distributed.validate import MEDIAN, WORST, main
from thunder_frontend import jit, last_backward_traces, last_traces
from thunder_ir import Tensor, trace_of

AXIS = Axis("shard", 8)
SLOW = Machine("slow", {"default": 1e9}, 1e9, 1e-6)
RING = Network(Link(1e-6, 1e9))


def test_a_ring_sends_each_byte_once_less_the_own_share():
    assert RING.seconds("all_gather", 8e6, 8) == pytest.approx(7e-6 + 7e-3)
    assert RING.seconds("all_reduce", 8e6, 8) == pytest.approx(2 * (7e-6 + 7e-3))
    assert RING.seconds("all_gather", 8e6, 1) == 0


@pytest.mark.parametrize(("size", "published"), [(16 * 2**20, 115e-6), (2**30, 2 * 7 / 8 * 2**30 / 466e9)])
def test_reductions_on_eight_h200_take_what_was_measured(size, published):
    """Source: stas00/ml-engineering, all-reduce on 8 H200."""
    assert machine("h100")[1].seconds("all_reduce", size, 8) == pytest.approx(published, rel=0.3)


def test_bandwidth_between_table_entries_is_interpolated_in_logarithms():
    link = Link(0.0, 100.0, ((10.0, 0.1), (1000.0, 0.5)))
    assert [link.reached(s) for s in (1, 10, 100, 1000, 1e6)] == pytest.approx([10, 10, 30, 50, 50])


def layers(x, a, b):
    for shard in (a, b):
        x = prims.matmul(x, dist.wait(dist.all_gather(shard, AXIS)))
    return x


def test_a_timeline_shows_what_the_passes_hide():
    trace = trace_of(layers, Tensor((64, 64)), Tensor((8, 64)), Tensor((8, 64)))
    before = simulate(trace, SLOW, RING)
    after = simulate(place_collectives(trace), SLOW, RING)
    assert after.seconds < before.seconds
    assert 0 < after.exposed < before.exposed
    assert before.seconds == pytest.approx(before.spent("compute") + before.exposed)
    assert "exposed" in after.table() and "all_gather" in after.table()


def test_a_timeline_is_written_for_the_browser(tmp_path):
    trace = trace_of(layers, Tensor((64, 64)), Tensor((8, 64)), Tensor((8, 64)))
    simulate([trace, trace], SLOW, RING).save_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {e["tid"] for e in events} == {"compute", "communicate", "wait"}


def test_estimates_of_steps_that_nothing_was_fitted_to_are_close(capsys):
    known, predicted = halves(published())
    assert not {s.name for s in known} & {s.name for s in predicted} and len(predicted) >= 10
    assert main() == 0, capsys.readouterr().out
    errors = sorted(validate().errors(predicted=True))
    assert errors[len(errors) // 2] <= MEDIAN and errors[-1] <= WORST


def test_a_plan_has_the_fastest_layout_first_and_none_that_does_not_fit():
    model = Transformer(80, 8192, 64, 8, 28672, 3, 128256)
    plans = plan(model, 256, batch=512, length=8192, memory=80 * 2**30, fitted=validate().fitted)
    assert all(p.bytes <= 80 * 2**30 for p in plans)
    assert [p.estimate.seconds for p in plans] == sorted(p.estimate.seconds for p in plans)
    with pytest.raises(ValueError, match=r"no layout of 70\.\d billion parameters over 8 processes fits into 16 GiB"):
        plan(model, 8, batch=8, length=8192, memory=16 * 2**30, fitted=validate().fitted)


def test_attention_takes_products_of_queries_with_keys():
    def attend(query, key):
        return prims.attention(query, key, key, None, True, 1.0)[0]

    (bound,) = trace_of(attend, Tensor((4, 100, 8)), Tensor((4, 300, 8))).bound_symbols
    assert operations_of(bound) == 2 * 2 * 4 * 100 * 300 * 8 / 2


def test_steps_of_large_models_wait_less_by_the_passes(capsys):
    model = Transformer(4, 4096, 32, 8, 11008, 3, 32000)
    for processes in (8, 1024):
        before, after = timelines(model, 2048, processes)
        assert after.exposed < before.exposed / 2 and after.seconds < before.seconds
        assert after.spent("compute") > 6 * 2048 * 4 * model.layer_weights / 890e12
    assert timelines_main(["--models", "llama-2-7b", "--processes", "8"]) == 0
    assert "| llama-2-7b | 8 |" in capsys.readouterr().out


def test_split_products_of_large_parts_wait_less(capsys):
    whole, split = tensor_timelines(Transformer(4, 8192, 64, 8, 28672, 3, 128256), 8192, 8)
    assert split.exposed < 0.9 * whole.exposed
    assert sum(e.what == "permute" for e in split.events) == 8 * TENSOR_LAYERS * 7
    assert timelines_main(["--models", "llama-2-7b", "--tensor", "8"]) == 0
    assert "| llama-2-7b | 8 |" in capsys.readouterr().out


def test_a_machine_that_is_not_known_is_refused():
    with pytest.raises(KeyError, match="no machine is known as 'abacus'; there are h100, a100, cpu"):
        machine("abacus")


class Block(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.norm, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (4, -1)).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, -1))
        x = x + self.out(nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


def tracked_peak(run, given, held):
    """Return what PyTorch's tracker finds while a program runs."""
    tracker = MemTracker()
    tracker.track_external(*held, *[t for t in given if isinstance(t, torch.Tensor)])
    with torch.no_grad(), tracker:
        kept = run(given)
    assert kept is not None
    return max(found["Total"] for found in tracker.get_tracker_snapshot("peak").values())


@pytest.mark.parametrize("shape", [(8, 32, 64), (2, 16, 64)], ids=["activations", "parameters"])
def test_peaks_are_those_of_pytorchs_tracker(shape):
    compiled = jit(Block(), executors=["torch"])
    x = torch.randn(shape)
    y = compiled(x)
    y.sum().backward()
    forward, backward = last_traces(compiled)[-1], last_backward_traces(compiled)[-1]
    values = {name.replace(".", "_"): p.detach() for name, p in compiled.named_parameters()}
    given = [values.get(p.name, x) for p in forward.inputs]
    run, back = forward.python_callable(), backward.python_callable()
    peak = tracked_peak(lambda inputs: run(*inputs), given, [])
    assert simulate(forward, SLOW, RING).peak_bytes == pytest.approx(peak, rel=0.05)
    with torch.no_grad():
        saved = [*run(*given)[1], torch.ones_like(y)]  # which the program empties
    peak = tracked_peak(back, saved, given)
    step = simulate([forward, backward], SLOW, RING)
    assert step.peak_bytes == pytest.approx(peak, rel=0.05)


def beside_products(x, shard):
    started = dist.all_gather(shard, AXIS)
    return prims.matmul(prims.matmul(x, x), dist.wait(started))


BESIDE = trace_of(beside_products, Tensor((64, 64)), Tensor((64 // AXIS.size, 64)))
PRODUCT = SLOW.seconds(2.0 * 64**3, 3.0 * 64 * 64 * 4, "float32")


def test_devices_compute_more_slowly_while_something_is_sent():
    took = RING.seconds("all_gather", 64 * 64 * 4, AXIS.size)
    events = simulate(BESIDE, replace(SLOW, slowdown=1.5), RING).events
    (sent,), (first, second) = ([e for e in events if e.stream == stream] for stream in ("communicate", "compute"))
    assert sent.end == pytest.approx(took) and took < PRODUCT
    assert first.end == pytest.approx(took + PRODUCT - took / 1.5)
    assert second.end - second.start == pytest.approx(PRODUCT)


def test_what_is_sent_takes_turns_with_computing_where_they_share_cores():
    here = replace(SLOW, cores=0.5)
    long = MeasuredNetwork({"all_gather": [Measured(size, PRODUCT, 0.0, 16 * PRODUCT, 2 * PRODUCT) for size in (1, 2)]})
    timeline = simulate(BESIDE, here, long)
    (sent,), (first, second) = ([e for e in timeline.events if e.stream == s] for s in ("communicate", "compute"))
    pace = 0.5 - 2 / 16  # of a core, computing, as long as something is sent
    assert first.end == pytest.approx(PRODUCT / pace)
    assert timeline.exposed == pytest.approx(PRODUCT * (1 - 1 / (16 * pace)))
    assert second.start == pytest.approx(sent.end) == pytest.approx(first.end + timeline.exposed)
    assert second.end - second.start == pytest.approx(PRODUCT / 0.5)


def test_a_program_that_sends_nothing_shares_cores_alone():
    trace = trace_of(lambda x: prims.matmul(x, x), Tensor((64, 64)))
    assert simulate(trace, replace(SLOW, cores=0.5), RING).seconds == pytest.approx(2 * PRODUCT)
    assert simulate(trace, replace(SLOW, cores=4.0), RING).seconds == pytest.approx(PRODUCT)


def test_what_is_not_waited_for_ends_all_the_same():
    def program(x, a, b):
        return dist.all_gather(a, AXIS), dist.all_gather(b, AXIS), prims.matmul(x, x)

    trace = trace_of(program, Tensor((2, 2)), Tensor((64, 64)), Tensor((64, 64)))
    took = RING.seconds("all_gather", 8 * 64 * 64 * 4, AXIS.size)
    timeline = simulate(trace, SLOW, RING)
    assert [e.end for e in timeline.events if e.stream == "communicate"] == pytest.approx([took, 2 * took])
    assert timeline.seconds == pytest.approx(2 * took)


def test_calls_of_a_program_are_measured_without_other_processes():
    compiled = jit(Block(), executors=["torch"])
    compiled(torch.randn(8, 32, 64)).sum().backward()
    programs = last_traces(compiled)[-1], last_backward_traces(compiled)[-1]
    found = measure_operations(programs, rounds=2)
    bounds = [bound for trace in programs for bound in trace.bound_symbols]
    products = [bound for bound in bounds if bound.symbol.name in ("linear", "matmul")]
    assert found.keys() == {id(bound) for bound in bounds}
    assert len(products) > 3 and all([found[id(bound)] > 0 for bound in products])
    step = simulate(programs, SLOW, RING, lambda bound: found[id(bound)])
    assert step.seconds == pytest.approx(sum(found.values()))


def test_a_collective_between_two_sizes_takes_what_lies_between_them():
    table = (Measured(1e3, 1e-3, 1e-4), Measured(3e3, 2e-3, 3e-4))
    network = MeasuredNetwork({"all_reduce": table})
    assert network.seconds("all_reduce", 2e3, 2) == pytest.approx(1.5e-3)
    assert network.calling("all_reduce", 5e3, 2) == pytest.approx(5e-4)
    assert network.seconds("all_reduce", 1.0, 2) == pytest.approx(1e-3)
    assert network.seconds("all_reduce", 1e9, 1) == 0.0
    assert network.beside("all_reduce", 1e9, 1) == (0.0, 0.0)


def test_beside_computing_a_collective_takes_longer_and_keeps_cores_busy():
    table = (Measured(1e3, 1e-3, 0.0, 8e-3, 1e-3), Measured(3e3, 2e-3, 0.0, 16e-3, 3e-3))
    assert MeasuredNetwork({"all_reduce": table}).beside("all_reduce", 2e3, 2) == pytest.approx((12e-3, 1 / 6))


def test_of_sizes_that_are_almost_the_same_one_is_measured():
    assert _apart([1.0e6, 1.05e6, 1.06e6, 5e5]) == [1024.0, 5e5, 1.06e6]
    assert _apart([64.0]) == [64.0, 1024.0, 2048.0]
