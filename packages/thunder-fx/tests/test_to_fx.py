"""A trace as an FX graph of ATen operations."""

from types import SimpleNamespace

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensor

import thunder_torch as ltorch
from thunder_autograd import forward_and_backward
from thunder_fx import FXError, to_fx
from thunder_ir import IntegerProxy, Location, StringProxy, Tensor, Trace, record, trace_of


def traced(function, *examples):
    return trace_of(function, *examples, language=ltorch.torch_language)


def targets(module):
    return [node.target for node in module.graph.nodes if node.op == "call_function"]


def test_a_graph_computes_what_the_trace_says():
    module = to_fx(traced(lambda x, y: ((x @ y).softmax(-1), x.sum()), Tensor((2, 3)), Tensor((3, 4))))
    x, y = torch.randn(2, 3), torch.randn(3, 4)
    found, total = module(x, y)
    torch.testing.assert_close(found, (x @ y).softmax(-1))
    torch.testing.assert_close(total, x.sum())


def test_placeholders_have_the_names_of_the_inputs_and_nodes_have_fake_values():
    module = to_fx(traced(lambda x: x.relu().t(), Tensor((2, 3), "float64")))
    nodes = list(module.graph.nodes)
    assert [n.name for n in nodes if n.op == "placeholder"] == ["x"]
    values = [n.meta["val"] for n in nodes if n.op != "output"]
    assert all(isinstance(v, FakeTensor) for v in values)
    assert values[-1].shape == (3, 2) and values[-1].stride() == (1, 3) and values[-1].dtype is torch.float64


@pytest.mark.parametrize("kind", [Location, SimpleNamespace])  # interpreters have places of their own
def test_nodes_know_the_users_line(kind):
    trace = traced(lambda x: x.exp(), Tensor((2,)))
    here = kind(filename=__file__, line=1, function="model")
    trace = trace.replace(bound_symbols=tuple(b.replace(location=here) for b in trace.bound_symbols))
    (exp,) = [n for n in to_fx(trace).graph.nodes if n.op == "call_function"]
    place, text = exp.stack_trace.splitlines()
    assert place.strip() == f'File "{__file__}", line 1, in model'
    assert text.strip() == '"""A trace as an FX graph of ATen operations."""'


def test_open_sizes_are_symbols_and_one_graph_serves_all_of_them():
    rows = IntegerProxy(5)
    trace = traced(lambda x, w: (ltorch.linear(x, w).reshape(-1), x.shape[0] * 2), Tensor((rows, 4)), Tensor((6, 4)))
    module = to_fx(trace)
    (x,) = [n for n in module.graph.nodes if n.name == "x"]
    assert isinstance(x.meta["val"].shape[0], torch.SymInt)
    for n in (5, 9):
        x, w = torch.randn(n, 4), torch.randn(6, 4)
        found, twice = module(n, x, w)
        torch.testing.assert_close(found, torch.nn.functional.linear(x, w).reshape(-1))
        assert twice == 2 * n


def test_what_the_program_demands_of_open_sizes_guards_the_symbols():
    def program(x):
        return x * 2 if x.shape[0] > 3 else x

    trace = traced(program, Tensor((IntegerProxy(5), 4)))
    assert trace.constraints
    module = to_fx(trace)
    (x,) = [n for n in module.graph.nodes if n.name == "x"]
    guards = x.meta["val"].fake_mode.shape_env.guards
    assert any(">" in str(g.expr) or "<" in str(g.expr) for g in guards)


def test_only_core_aten_is_there_if_asked_for():
    trace = traced(lambda x: torch_symbol(torch.nn.functional.silu)(x), Tensor((3,)))
    assert torch.ops.aten.silu.default in targets(to_fx(trace))
    module = to_fx(trace, core_aten=True)
    assert torch.ops.aten.silu.default not in targets(module)
    x = torch.randn(3)
    torch.testing.assert_close(module(x), torch.nn.functional.silu(x))


def torch_symbol(function):
    return ltorch.symbol_of(function)


def test_a_graph_writes_to_nothing():
    """``normal_`` has no out-of-place form: it runs on a copy."""
    trace = traced(lambda x: ltorch.call(ltorch.functional_of(torch.Tensor.log_normal_), (x,), {}), Tensor((3,)))
    module = to_fx(trace)
    assert not any(t._schema.is_mutable for t in targets(module) if hasattr(t, "_schema"))
    torch.manual_seed(0)
    found = module(torch.zeros(3))
    torch.manual_seed(0)
    torch.testing.assert_close(found, torch.zeros(3).log_normal_())


def test_forward_and_backward_programs_become_graphs():
    x, w = (torch.randn(s, dtype=torch.float64, requires_grad=True) for s in ((3, 4), (5, 4)))

    def program(x, w):
        return ltorch.symbol_of(torch.nn.functional.gelu)(ltorch.linear(x, w))

    inputs = [ltorch.proxy_of(x, "x"), ltorch.proxy_of(w, "w")]
    trace = record(program, inputs, language=ltorch.torch_language)
    split = forward_and_backward(trace)
    forward, backward = to_fx(split.forward), to_fx(split.backward)
    expected = torch.nn.functional.gelu(torch.nn.functional.linear(x, w))
    dy = torch.randn_like(expected)
    with torch.no_grad():
        result, saved = forward(x, w)
        gradients = backward(*saved, dy)
    torch.testing.assert_close(result, expected)
    torch.testing.assert_close(tuple(gradients), torch.autograd.grad(expected, (x, w), dy))


def test_an_input_that_is_no_tensor_or_number_is_refused_by_name():
    trace = Trace("program", (StringProxy("fast", name="mode"),), (), ())
    with pytest.raises(FXError, match="the input mode is a .*; FX graphs take tensors and numbers"):
        to_fx(trace)


def test_an_operation_that_looks_at_values_is_refused_with_its_line():
    trace = traced(lambda x: ltorch.symbol_of(numpy_like)(x), Tensor((2,)))
    here = Location(__file__, 7, "model")
    trace = trace.replace(bound_symbols=tuple(b.replace(location=here) for b in trace.bound_symbols))
    with pytest.raises(FXError, match=r"numpy_like at .*:7 cannot be an FX graph"):
        to_fx(trace)


def numpy_like(x):
    """Knows its metadata, and needs the values to compute."""
    return x.clone() if not isinstance(x, FakeTensor) or x.fake_mode.shape_env is None else torch.tensor(x.tolist())
