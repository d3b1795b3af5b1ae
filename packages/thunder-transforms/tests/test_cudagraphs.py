"""Programs as graphs, by a stand-in for CUDA's capture and replay."""

import copy
import threading

import pytest
import torch
from torch.testing import assert_close

from thunder_frontend import jit, last_backward_traces, last_traces
from thunder_ir import OpTags
from thunder_transforms import CUDAGraphTransform, compile
from thunder_transforms.cudagraphs import CaptureError, GraphRun, why_not_captured

from .graph_recorder import StandInRecorder


def graphs(**options):
    return CUDAGraphTransform(recorder=StandInRecorder(), **options)


def compiled(function, transform, **options):
    return jit(function, executors=["torch"], transforms=[transform], **options)


def text(run):
    return str(last_traces(run)[-1])


def test_a_model_trains_as_in_eager():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 3))
    other = copy.deepcopy(model)
    transform = graphs()
    run = compiled(model, transform)
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (model, other)]
    for _ in range(6):
        x, target = torch.randn(4, 6), torch.randn(4, 3)
        losses = []
        for f, optimizer in zip((run, other), optimizers, strict=True):
            optimizer.zero_grad()
            loss = (f(x) - target).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        assert_close(*losses)
    assert_close(list(model.parameters()), list(other.parameters()))
    assert "cuda_graph_0" in text(run) and "cuda_graph" in str(last_backward_traces(run)[-1])
    assert sum(r.replayed for r in transform.runs) >= 6
    assert not any(r.reason for r in transform.runs)


def test_results_are_the_callers_and_stay_as_they_were():
    run = compiled(lambda x: (x * 2).tanh() + 1, graphs(warm_ups=1))
    inputs = [torch.randn(5) for _ in range(5)]
    results = [run(x) for x in inputs]
    assert_close(results, [(x * 2).tanh() + 1 for x in inputs])


def test_inputs_that_stay_are_read_where_they_are_and_others_are_copied():
    transform = graphs()
    run = compiled(lambda x, w: (x @ w).relu() * 2, transform)
    w = torch.randn(4, 4)
    kept = [torch.randn(4, 4) for _ in range(6)]
    for x in kept:
        assert_close(run(x, w), (x @ w).relu() * 2)
    w.mul_(3)  # at its address
    assert_close(run(kept[0], w), (kept[0] @ w).relu() * 2)
    (made,) = transform.runs
    (seen,) = made._seen.values()
    (graph,) = seen.graphs.values()
    assert made.recorded == 1 and list(graph.copies) == [0]


def test_an_input_that_moves_is_found_and_seldom_recorded_again():
    transform = graphs()
    run = compiled(lambda x, w: (x @ w).relu() * 2, transform)
    x = torch.randn(4, 4)
    weights = [torch.randn(4, 4) for _ in range(12)]
    for w in [weights[0]] * 4 + weights:
        assert_close(run(x, w), (x @ w).relu() * 2)
    (made,) = transform.runs
    assert 1 < made.recorded <= 6


def test_an_input_on_another_device_is_not_recorded_as_it_is_read_by_the_call_alone():
    run = GraphRun(lambda x, state: (x * 2 + state.ndim,), StandInRecorder(), warm_ups=1)
    x = torch.randn(3)
    for _ in range(4):
        assert_close(run(x, torch.ones((), device="meta")), (x * 2,))
    assert not run.recorded and not run.reason
    for _ in range(4):
        assert_close(run(x, torch.ones(())), (x * 2,))
    assert run.recorded == 1


def test_an_input_that_is_gone_is_not_read():
    transform = graphs(warm_ups=1)
    run = compiled(lambda x: (x * 2).exp(), transform)
    for n in range(8):
        x = torch.full((100,), float(n))
        assert_close(run(x), (x * 2).exp())
        del x


def two_layers():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 3))


def test_what_the_backward_part_reads_is_not_copied():
    model, transform = two_layers(), graphs(warm_ups=1)
    run = compiled(model, transform)
    for _ in range(6):
        x = torch.randn(4, 6)
        found = torch.autograd.grad(run(x).square().sum(), list(model.parameters()))
        assert_close(found, torch.autograd.grad(model(x).square().sum(), list(model.parameters())))
    forward, backward = transform.runs
    (lender,) = [g for s in forward._seen.values() for g in s.graphs.values()]
    reader = [g for s in backward._seen.values() for g in s.graphs.values()][-1]
    assert lender.results.lent and len(lender.results.memories) - len(lender.results.lent) == 1
    assert not reader.results.lent and set(reader.copies) <= {0, 9}  # gradient and input of the call, where they move
    assert forward.replayed == 5 and backward.replayed >= 3


def test_a_program_that_is_called_again_before_its_backward_part_runs_without_graphs():
    model, transform = two_layers(), graphs(warm_ups=1)
    run = compiled(model, transform)
    for _ in range(4):
        inputs = [torch.randn(4, 6) for _ in range(3)]
        results = [run(x) for x in inputs]
        for x, y in reversed(list(zip(inputs, results, strict=True))):
            found = torch.autograd.grad(y.square().sum(), list(model.parameters()))
            assert_close(found, torch.autograd.grad(model(x).square().sum(), list(model.parameters())))
        assert_close(results, [model(x) for x in inputs])
    assert transform.runs[0].replayed == 4  # the first of three each time; the others run without


def test_somebody_who_keeps_what_was_saved_finds_it_unchanged():
    model, kept = two_layers(), []
    run = compiled(model, graphs(warm_ups=1))
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append((t, t.clone())) or t, lambda t: t):
        for _ in range(5):
            x = torch.randn(4, 6)
            found = torch.autograd.grad(run(x).square().sum(), list(model.parameters()), retain_graph=True)
            assert_close(found, torch.autograd.grad(model(x).square().sum(), list(model.parameters())))
    assert kept and all(torch.equal(a, b) for a, b in kept)


def test_runs_of_one_program_hand_on_what_they_computed():
    transform = graphs(warm_ups=1)

    def function(x):
        y = (x * 2).exp()
        return (y + y.sum().item()).sin() * y

    run = compiled(function, transform)
    for _ in range(6):
        x = torch.randn(5)
        assert_close(run(x), function(x))
    first, second = transform.runs
    graph = [g for s in second._seen.values() for g in s.graphs.values()][-1]
    assert len(graph.copies) == 1  # the sum, which no graph computed
    assert first.replayed == 5 and second.replayed >= 3


def test_sizes_that_change_are_other_graphs_up_to_a_bound():
    transform = graphs(warm_ups=1, most=3)
    run = compiled(lambda x: (x * 2).exp().sum(-1), transform, cache="symbolic values")
    for _ in range(3):
        for n in range(2, 9):
            x = torch.randn(n, 3)
            assert_close(run(x), (x * 2).exp().sum(-1))
    assert all(sum(len(s.graphs) for s in r._seen.values()) <= 3 for r in transform.runs)


def test_results_that_share_memory_share_it_still():
    run = compiled(lambda x: ((y := (x * 2).exp()), y.t(), y[1:], x.t(), x[0] * 2 + 1), graphs(warm_ups=1))
    for _ in range(4):
        x = torch.randn(3, 4)
        y, transposed, tail, of_input, _ = run(x)
        assert (
            transposed.untyped_storage().data_ptr()
            == y.untyped_storage().data_ptr()
            == tail.untyped_storage().data_ptr()
        )
        assert of_input.data_ptr() == x.data_ptr()
        assert_close((transposed, tail, of_input), (y.t(), y[1:], x.t()))


def test_an_expanded_input_is_copied_as_it_is():
    run = compiled(lambda x: (x * 2).exp(), graphs(warm_ups=1))
    for _ in range(4):
        x = torch.randn(1, 4).expand(3, 4)
        assert_close(run(x), (x * 2).exp())


LEFT = {
    "waits": (lambda x: (x * 2).exp() * float((x.sum() * 0).item()) + 1, "waits for the device"),
    "from the host": (lambda x: (x * 2).exp() + torch.tensor([1.0, 2.0]).sin(), "copies from the host"),
    "writes": (lambda x: x.mul_(2).exp().add(1), "writes to memory"),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_cannot_be_recorded_is_left_out_and_named(name):
    function, words = LEFT[name]
    transform = graphs(warm_ups=1)
    run = compiled(function, transform)
    for _ in range(4):
        x = torch.randn(2)
        mine = x.clone()
        assert_close(run(mine), function(x))
        assert_close(mine, x)
    if name != "writes":  # computed right into its input
        assert any(words in left.reason for left in transform.left_out), transform.left_out


def test_what_hands_on_the_state_of_random_numbers_is_left_out():
    run = jit(lambda x: x.exp().sin(), executors=["torch"])
    run(torch.ones(3))
    bound = next(b for b in last_traces(run)[-1].bound_symbols if b.symbol.name == "exp")
    assert not why_not_captured(bound, "cpu")
    assert "state of its random numbers" in why_not_captured(bound.replace(tags=frozenset({OpTags.HOST_STATE})), "cpu")


def test_a_size_that_only_the_run_tells_is_left_out():
    transform = graphs(warm_ups=1)
    run = compiled(lambda x: (torch.nonzero(x > 0) * 2 + 1).sum(), transform)
    for _ in range(3):
        x = torch.randn(9)
        assert_close(run(x), (torch.nonzero(x > 0) * 2 + 1).sum())
    assert any("known only when the program runs" in left.reason for left in transform.left_out)


def test_a_run_that_fails_to_be_recorded_runs_without():
    def function(x):
        return ((x * float(x.sum().item())),)  # a kernel of an executor that waits in secret

    made = GraphRun(function, StandInRecorder(), warm_ups=1)
    for _ in range(3):
        x = torch.randn(3)
        assert_close(made(x), function(x))
    assert "waits for the device" in made.reason and made.recorded == 0


def test_the_stand_in_refuses_memory_from_outside():
    outside = torch.randn(3)
    with pytest.raises(CaptureError, match="outside of the graph's pool"):
        StandInRecorder().record(lambda x: (x + outside,), [torch.randn(3)])


def test_the_stand_in_reads_the_memory_that_was_recorded():
    x, other = torch.zeros(3), torch.ones(3)
    recording = StandInRecorder().record(lambda x: (x + 1,), [x])
    x.add_(other)
    recording.replay()
    assert_close(recording.outputs[0], x + 1)


def test_random_numbers_are_drawn_at_each_replay():
    run = compiled(lambda x: torch.nn.functional.dropout(x * 2, 0.5) + 1, graphs(warm_ups=1))
    x = torch.ones(1000)
    drawn = [run(x) for _ in range(5)]
    assert all(not torch.equal(a, b) for a, b in zip(drawn, drawn[1:], strict=False))


def test_threads_and_inner_calls_find_it_busy_and_run_without():
    transform = graphs(warm_ups=0)
    run = compiled(lambda x: (x * 2).exp().sin(), transform)
    x = torch.randn(50)
    expected = (x * 2).exp().sin()
    run(x)
    wrong = []

    def work():
        for _ in range(20):
            if not torch.equal(run(x), expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    (made,) = transform.runs
    with transform.recorder.lock:
        before = made.replayed
        assert_close(run(x), expected)
        assert made.replayed == before


def test_graphs_that_share_memory_are_replayed_one_at_a_time():
    transform = graphs(warm_ups=0)
    first = compiled(lambda x: (x * 2).exp().sin(), transform)
    second = compiled(lambda x: (x * 3).cos() + 1, transform)
    x = torch.randn(50)
    expected = [(x * 2).exp().sin(), (x * 3).cos() + 1]
    assert_close([first(x), second(x)], expected)
    beside = []

    def other_thread():
        transform.recorder.between = lambda: None
        thread = threading.Thread(target=lambda: beside.append(second(x)))
        thread.start()
        thread.join()

    transform.recorder.between = other_thread
    assert_close([first(x), *beside], expected)
    assert_close([first(x), second(x)], expected)
    assert [run.replayed for run in transform.runs] == [3, 2]


def test_a_graph_is_replayed_on_the_queue_that_it_was_made_for():
    transform = graphs(warm_ups=1)
    run = compiled(lambda x: (x * 2).exp().sin(), transform)
    x = torch.randn(50)
    for queue in ("a queue", "another", "a queue", "another"):
        transform.recorder.on = queue
        for _ in range(3):
            assert_close(run(x), (x * 2).exp().sin())
    (made,) = transform.runs
    assert made.recorded == 2 and set(transform.recorder.memory) == {"a queue", "another"}


def test_reduce_overhead_records_programs_of_a_model_forward_and_backward(monkeypatch):
    made = []

    def transform():
        made.append(graphs(warm_ups=1))
        return made[-1]

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr("thunder_transforms.cudagraphs.CUDAGraphTransform", transform)
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.Linear(8, 3))
    monkeypatch.setattr("thunder_executors_torch.by_device.on_cuda", lambda: ())
    run = compile(model, mode="reduce-overhead")
    for _ in range(4):
        x = torch.randn(4, 6)
        dy = torch.randn(4, 3)
        found = torch.autograd.grad(run(x), list(model.parameters()), dy)
        assert_close(found, torch.autograd.grad(model(x), list(model.parameters()), dy))
    (graphed,) = made
    assert len(graphed.runs) >= 2 and all(r.replayed for r in graphed.runs) and not graphed.left_out


def test_modes_are_those_of_plugins():
    with pytest.raises(ValueError, match="there is no mode 'fast'; there are default, reduce-overhead"):
        compile(torch.nn.Linear(2, 2), mode="fast")
    if not torch.cuda.is_available():
        with pytest.raises(RuntimeError, match="PyTorch sees no CUDA device"):
            compile(torch.nn.Linear(2, 2), mode="reduce-overhead")
