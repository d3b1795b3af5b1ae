"""An FX graph as a trace."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from thunder_executors import to_callable
from thunder_fx import FXError, from_fx
from thunder_ir import OpTags, verify


def symbols(trace):
    return [bound.symbol.id for bound in trace.bound_symbols]


def test_aten_operations_become_the_functions_that_programs_know():
    module = make_fx(lambda x, w: torch.softmax(x @ w, -1)[:, 1:].sum(0))(torch.randn(3, 4), torch.randn(4, 5))
    trace = from_fx(module, [torch.randn(3, 4), torch.randn(4, 5)])
    verify(trace)
    assert symbols(trace) == ["ltorch.mm", "ltorch.torch_softmax", "ltorch.getitem", "ltorch.sum"]
    x, w = torch.randn(3, 4), torch.randn(4, 5)
    torch.testing.assert_close(to_callable(trace)(x, w), torch.softmax(x @ w, -1)[:, 1:].sum(0))


def test_functions_and_methods_of_pytorch_are_recorded():
    module = torch.fx.symbolic_trace(lambda x: torch.nn.functional.gelu(x).transpose(0, 1) + 1)
    trace = from_fx(module, [torch.randn(2, 3)])
    assert symbols(trace) == ["ltorch.gelu", "ltorch.transpose", "ltorch.add"]


def test_an_operator_that_programs_do_not_know_is_one_whole_operation():
    @torch.library.custom_op("thunder_fx_test::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    twice.register_fake(torch.empty_like)
    module = make_fx(lambda x: torch.ops.thunder_fx_test.twice(x).sin())(torch.randn(3))
    trace = from_fx(module, [torch.randn(3)])
    assert len(trace.bound_symbols) == 2
    x = torch.randn(3)
    torch.testing.assert_close(to_callable(trace)(x), (x * 2).sin())


def test_fake_values_stand_for_examples():
    mode = FakeTensorMode()
    module = make_fx(lambda x: x.exp())(mode.from_tensor(torch.randn(3, 2)))
    assert from_fx(module).output.shape == (3, 2)


def test_random_operations_stay_random():
    module = make_fx(lambda x: torch.bernoulli(x.sigmoid()) + torch.rand_like(x))(torch.randn(8))
    trace = from_fx(module, [torch.randn(8)])
    drawing = [b for b in trace.bound_symbols if OpTags.RANDOM in b.symbol.tags]
    assert len(drawing) == 2
    x = torch.randn(8)
    torch.manual_seed(0)
    expected = module(x)
    torch.manual_seed(0)
    torch.testing.assert_close(to_callable(trace)(x), expected)


def test_open_sizes_that_are_no_inputs_of_the_graph_follow_them():
    module = make_fx(lambda x: x.reshape(-1) * x.shape[0], tracing_mode="symbolic")(torch.randn(5, 3))
    trace = from_fx(module)
    assert [p.name for p in trace.inputs] == ["x_1", "x_1_0", "x_1_1"]
    x = torch.randn(7, 2)
    torch.testing.assert_close(to_callable(trace)(x, 7, 2), x.reshape(-1) * 7)


def test_the_users_lines_are_kept():
    module = make_fx(lambda x: x.exp(), record_stack_traces=True)(torch.randn(3))
    (exp,) = [n for n in module.graph.nodes if n.op == "call_function"]
    exp.meta["stack_trace"] = '  File "model.py", line 7, in forward\n    return x.exp()\n'
    (bound,) = from_fx(module, [torch.randn(3)]).bound_symbols
    assert (bound.location.filename, bound.location.line, bound.location.function) == ("model.py", 7, "forward")


def test_a_graph_without_fake_values_is_refused():
    module = torch.fx.symbolic_trace(lambda x: x.sin())
    with pytest.raises(FXError, match=r"the placeholder x has no fake value .* pass example_inputs"):
        from_fx(module)


def test_a_number_of_examples_that_does_not_fit_is_refused():
    module = torch.fx.symbolic_trace(lambda x: x.sin())
    with pytest.raises(FXError, match="the graph has 1 inputs, and 2 examples are given"):
        from_fx(module, [torch.ones(2), torch.ones(2)])


def test_an_unknown_size_is_refused_by_name():
    module = make_fx(lambda x, n: x * n)(torch.ones(2), 3)
    mode = FakeTensorMode(shape_env=torch.fx.experimental.symbolic_shapes.ShapeEnv())
    unknown = mode.shape_env.create_unbacked_symint()
    with pytest.raises(FXError, match=r"the input n_1 is u0, a size that only a run tells \(unbacked\)"):
        from_fx(module, [torch.ones(2), unknown])


def test_a_node_that_fails_is_named_with_the_users_line():
    module = make_fx(lambda x: x.view(6))(torch.randn(2, 3))
    (view,) = [n for n in module.graph.nodes if n.op == "call_function"]
    view.meta["stack_trace"] = '  File "model.py", line 7, in forward\n    return x.view(6)\n'
    with pytest.raises(FXError, match=r"node view \(call_function torch.ops.aten.view.default\) at model.py:7"):
        from_fx(module, [torch.randn(2, 4)])
