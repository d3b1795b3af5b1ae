"""Graphs that dynamo finds, compiled."""

import copy

import pytest
import torch
from torch import nn
from torch._higher_order_ops.map import map as mapped
from torch.testing import assert_close

from thunder_fx import NodeError, ThunderCompiler, compiled, thunderfx
from thunder_ir import ThunderError

pytestmark = pytest.mark.usefixtures("forget_what_was_compiled")


def network():
    return nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.GELU(), nn.Linear(16, 4)).double()


def test_it_is_a_backend_of_torch_compile_by_name():
    assert "thunder" in torch._dynamo.list_backends(exclude_tags=())
    assert_close(torch.compile(lambda x: x.sin() * 2, backend="thunder")(torch.ones(3)), torch.ones(3).sin() * 2)


def test_training_is_that_of_eager_with_what_a_model_writes_to_its_buffers():
    eager = network()
    model = copy.deepcopy(eager)
    compiled = torch.compile(model, backend="thunder")
    for _ in range(2):
        x = torch.randn(5, 8, dtype=torch.float64)
        for run in (eager, compiled):
            run(x).pow(2).sum().backward()
    assert_close([p.grad for p in model.parameters()], [p.grad for p in eager.parameters()])
    assert_close(list(model.buffers()), list(eager.buffers()))


def test_writes_to_arguments_and_views_of_them_reach_the_caller():
    def step(state, x):
        state.add_(x)
        return state.t(), state * 2

    state, x = torch.randn(2, 3), torch.randn(3)
    expected = (state + x).clone()
    view, twice = torch.compile(step, backend="thunder")(state, x)
    assert_close((state, view, twice), (expected, expected.t(), expected * 2))
    assert view.data_ptr() == state.data_ptr()


def test_inputs_that_share_memory_which_is_written_are_told_from_others():
    def step(state, x):
        state.add_(1)
        return x * 2

    backend = ThunderCompiler()
    compiled = torch.compile(step, backend=backend)
    for ends in (4, 5, 4, 5):  # of the second: apart from the first, or not
        ours, eager = torch.ones(6), torch.ones(6)
        assert_close(compiled(ours[:3], ours[ends - 2 : ends]), step(eager[:3], eager[ends - 2 : ends]))
        assert_close(ours, eager)
    assert not [part for part in backend.parts if part.compiled is None]


def test_a_graph_in_a_mode_of_torch_functions_is_run_as_it_is():
    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            return function(*args, **(kwargs or {}))

    def step(state):
        state.add_(1)
        return state.t()

    graph = torch.fx.symbolic_trace(step)
    compiled = ThunderCompiler()(graph, [torch.ones(2, 3)])
    state = torch.ones(2, 3)
    with Mode():
        assert_close(compiled(state), torch.full((3, 2), 2.0))
        assert_close(compiled(state), torch.full((3, 2), 3.0))
    assert_close(compiled(state), torch.full((3, 2), 4.0))


def test_a_written_input_that_the_backward_reads_is_kept():
    def step(x, w, counter):
        y = x * counter * w
        counter.add_(1)
        return y

    gradients = []
    for run in (step, torch.compile(step, backend="thunder")):
        w, counter = torch.ones(3, requires_grad=True), torch.full((3,), 2.0)
        run(torch.ones(3), w, counter).sum().backward()
        gradients.append((w.grad, counter))
    assert_close(*gradients)


def test_sizes_that_dynamo_leaves_open_change():
    backend = ThunderCompiler()
    compiled = torch.compile(lambda x: x.reshape(-1) * x.shape[0], backend=backend, dynamic=True)
    for n in (3, 5, 7):
        x = torch.randn(n, 2)
        assert_close(compiled(x), x.reshape(-1) * n)
    assert len(backend.graphs) == 1


@torch.library.custom_op("thunder_fx_test::by_python", mutates_args=())
def by_python(x: torch.Tensor) -> torch.Tensor:
    return torch.tensor(x.tolist())


by_python.register_fake(torch.empty_like)
by_python.register_autograd(lambda ctx, gradient: gradient * 3)


def chooses(x):
    y = torch.ops.thunder_fx_test.by_python(x.sin())
    z = mapped(lambda v: v + 1, y)
    return z.exp() * 2


def test_an_operator_with_a_derivative_is_one_call_whatever_its_kernel_reads():
    compiled = thunderfx(lambda x: torch.ops.thunder_fx_test.by_python(x.sin()))
    x = torch.randn(3, requires_grad=True)
    y = compiled(x)
    assert_close(y, x.sin())
    assert_close(torch.autograd.grad(y.sum(), x)[0], x.cos() * 3)
    assert compiled.report() == "graph 1: 2 calls compiled"


def test_what_a_program_cannot_hold_runs_in_pytorch_between_two_and_is_reported():
    compiled = thunderfx(chooses)
    x = torch.randn(3, 3)
    assert_close(compiled(x), chooses(x))
    first, second, third = compiled.report().splitlines()
    assert first.endswith("calls compiled") and third.endswith("calls compiled")
    assert "node map_impl (call_function torch.ops.higher_order.map_impl) at" in second
    assert "is a higher-order operator that programs do not know" in second
    assert compiled.last_traces


def test_what_a_program_cannot_hold_is_an_error_if_the_user_wants_that():
    with pytest.raises(Exception, match="node map_impl .* is a higher-order operator") as error:
        thunderfx(chooses, fallback="error")(torch.randn(3, 3))
    assert isinstance(error.value.__cause__ or error.value, NodeError) or "NodeError" in str(error.value)


def test_a_transform_inside_of_a_graph_runs_in_pytorch_as_a_whole():
    def batched(x):
        return torch.vmap(lambda row: row.sin().cumsum(0) * 2)(x.exp()).sum(0)

    compiled = thunderfx(batched)
    x = torch.randn(3, 4)
    assert_close(compiled(x), batched(x))
    (left,) = [p for p in compiled.backend.parts if p.compiled is None]
    assert "begins a transform of torch.func inside of a graph" in left.reason


def test_python_runs_between_the_graphs_that_dynamo_finds():
    def prints(x):
        y = x.sin()
        print("between")
        return y * 2

    compiled = thunderfx(prints)
    assert_close(compiled(torch.ones(3)), torch.ones(3).sin() * 2)
    assert len(compiled.backend.graphs) == 2


def test_checkpointed_parts_are_parts_of_the_program():
    def model(x, w):
        return torch.utils.checkpoint.checkpoint(lambda a: (a @ w).relu(), x, use_reentrant=False).sum()

    gradients = []
    for run in (model, torch.compile(model, backend="thunder", fullgraph=True)):
        x, w = (torch.ones(3, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
        run(x, w).backward()
        gradients.append((x.grad, w.grad))
    assert_close(*gradients)


def test_options_that_there_are_not_are_refused():
    with pytest.raises(Exception, match=r"backend 'thunder' takes the options executors, fallback"):
        torch.compile(lambda x: x + 1, backend="thunder", options={"speed": 11})(torch.ones(2))


def test_a_graph_whose_program_has_no_derivative_is_left_to_pytorch_or_named(monkeypatch):
    def refuses(*args):
        raise ThunderError("there is no derivative of mystery")

    monkeypatch.setattr(compiled, "made_ready", refuses)
    x = torch.randn(3, requires_grad=True)
    backend = ThunderCompiler()
    found = torch.compile(lambda x: x.sin() * 2, backend=backend)(x)
    assert_close(torch.autograd.grad(found.sum(), x)[0], x.cos() * 2)
    assert backend.report() == "graph 1: PyTorch runs there is no derivative of mystery"
    torch._dynamo.reset()
    with pytest.raises(ThunderError, match="no derivative of mystery"):
        torch.compile(lambda x: x.sin() * 2, backend=ThunderCompiler(fallback="error"))(x)
