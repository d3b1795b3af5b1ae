"""Functions as graphs that are called as the functions are, beside what PyTorch makes of them."""

import pytest
import torch
from torch.fx.experimental import proxy_tensor
from torch.testing import assert_close

from thunder_fx.aot import make_fx


def written_and_viewed(x):
    view = x.t()
    x.add_(1)
    return view, x, x.sum()


FUNCTIONS = {
    "plain": (lambda x: x.sin() + 1, [torch.randn(3, 4)]),
    "a number": (lambda x, n: x * n, [torch.randn(3), 3]),
    "nested": (lambda given: {"sum": given["a"] + given["b"]}, [{"a": torch.randn(3), "b": torch.randn(3)}]),
    "held tensors": (torch.nn.Linear(4, 2), [torch.randn(3, 4)]),
    "writes and views": (written_and_viewed, [torch.randn(3, 4)]),
}


def copied(args):
    return torch.utils._pytree.tree_map_only(torch.Tensor, torch.clone, args)


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_graph_does_what_the_function_does(name, mode):
    function, example = FUNCTIONS[name]
    given = copied(example)
    graph = make_fx(function, tracing_mode=mode)(*given)
    assert_close(given, example)  # nothing is written while the graph is made
    expected = copied(example)
    with torch.no_grad():
        assert_close(graph(*given), function(*expected))
    assert_close(given, expected)


def test_results_share_memory_as_those_of_the_function_do():
    x = torch.randn(3, 4)
    view, same, _ = make_fx(written_and_viewed)(x)(x)
    assert same is x
    assert view._base is x and view.stride() == (1, 4)


@pytest.mark.parametrize("name", ["plain", "a number", "held tensors"])
def test_a_graph_is_the_one_that_pytorch_makes(name):
    function, example = FUNCTIONS[name]
    ours, theirs = make_fx(function)(*example), proxy_tensor.make_fx(function)(*example)
    assert ours.code == theirs.code


def test_open_sizes_serve_others():
    graph = make_fx(lambda x: x.reshape(-1) * x.shape[0], tracing_mode="symbolic")(torch.randn(3, 4))
    x = torch.randn(5, 7)
    assert_close(graph(x), x.reshape(-1) * 5)


def test_sizes_that_the_function_compares_are_those_of_the_graph():
    graph = make_fx(lambda x, y: x + y, tracing_mode="symbolic")(torch.randn(3), torch.randn(3))
    first, second = (node.meta["val"] for node in graph.graph.find_nodes(op="placeholder"))
    assert first.shape == second.shape and isinstance(first.shape[0], torch.SymInt)


def test_decompositions_are_applied_and_nodes_say_the_users_line():
    table = {torch.ops.aten.silu.default: lambda x: x * x.sigmoid()}
    graph = make_fx(torch.nn.functional.silu, table)(torch.randn(3))
    assert [n.target for n in graph.graph.find_nodes(op="call_function", target=torch.ops.aten.sigmoid.default)]
    (sine,) = make_fx(lambda x: x.sin())(torch.ones(2)).graph.find_nodes(
        op="call_function", target=torch.ops.aten.sin.default
    )
    assert "test_make_fx.py" in sine.stack_trace and "x.sin()" in sine.stack_trace


def test_an_unknown_mode_is_refused():
    with pytest.raises(ValueError, match="tracing_mode is one of real, fake, symbolic, not 'dynamic'"):
        make_fx(torch.sin, tracing_mode="dynamic")
