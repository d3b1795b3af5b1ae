"""Graphs that are not what they should be: the message names the node and the user's line."""

import ast
from pathlib import Path

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import ShapeEnv

import thunder_fx
from thunder_executors import to_callable
from thunder_fx import FXError, NodeError, ThunderCompiler, aot, from_fx

LINE = '  File "model.py", line 7, in forward\n    y = mystery(x)\n'


def graph_of(target, *args, values=True):
    """A graph of one call, with the line that it is from."""
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    if values:
        x.meta["val"] = FakeTensorMode().from_tensor(torch.ones(3))
    node = graph.call_function(target, (x, *args))
    node.name, node.meta["stack_trace"] = "mystery", LINE
    graph.output(node)
    return torch.fx.GraphModule(torch.nn.Module(), graph)


def nobody_knows(kernel=None):
    """An operator of which there is a schema alone, or a kernel that runs it on tensors with data."""
    name = "mystery" if kernel is None else "kernel"
    if not hasattr(torch.ops.thunder_fx_bad_input, name):
        torch.library.define(f"thunder_fx_bad_input::{name}", "(Tensor x) -> Tensor")
        if kernel is not None:
            torch.library.impl(f"thunder_fx_bad_input::{name}", "cpu", kernel)
    return getattr(torch.ops.thunder_fx_bad_input, name).default


READERS = {
    "from_fx": lambda module: from_fx(module),
    "aot": lambda module: aot.aot_module_simplified(module, [torch.ones(3)], aot.nop)(torch.ones(3)),
    "backend": lambda module: ThunderCompiler(fallback="error")(module, [torch.ones(3)])(torch.ones(3)),
}


@pytest.mark.parametrize("reader", READERS)
def test_an_operator_that_nobody_knows_is_named_with_the_users_line(reader):
    told = r"node mystery \(call_function .*thunder_fx_bad_input.mystery.default\) at model.py:7 cannot be recorded"
    with pytest.raises(NodeError, match=told):
        READERS[reader](graph_of(nobody_knows()))


def test_an_operator_that_runs_on_data_alone_is_a_call_of_the_program_and_named_where_a_graph_is_wanted():
    module = graph_of(nobody_knows(lambda x: x * 2))
    x = torch.ones(3)
    assert torch.equal(to_callable(from_fx(module))(x), x * 2)
    with pytest.raises(FXError, match=r"(?s)model.py:7 cannot be an FX graph.*thunder_fx_bad_input.kernel.default"):
        READERS["aot"](module)


@pytest.mark.parametrize("reader", ["from_fx", "backend"])
def test_a_higher_order_operator_that_nobody_knows_is_named_with_the_users_line(reader):
    operator = torch.ops.higher_order.wrap_activation_checkpoint
    with pytest.raises(NodeError, match=r"node mystery .*wrap_activation_checkpoint.* at model.py:7"):
        READERS[reader](graph_of(operator))


def test_a_graph_without_fake_values_names_the_placeholder_and_the_way_out():
    with pytest.raises(FXError, match=r"the placeholder x has no fake value.*pass example_inputs"):
        from_fx(graph_of(torch.sin, values=False))


def test_a_call_whose_arguments_do_not_fit_is_named_with_the_users_line():
    with pytest.raises(NodeError, match=r"node mystery \(call_function .*mm.default\) at model.py:7"):
        from_fx(graph_of(torch.ops.aten.mm.default, 3))


def unbacked():
    """A graph of sizes that only a run tells, made by PyTorch."""
    mode = FakeTensorMode(shape_env=ShapeEnv(allow_dynamic_output_shape_ops=True, allow_scalar_outputs=True))
    with mode:
        x = torch.empty(5)
    return make_fx(lambda x: torch.nonzero(x).sum() * 2)(x)


def test_sizes_that_only_a_run_tells_are_those_of_the_program_or_named():
    module = unbacked()
    try:
        trace = from_fx(module)
    except FXError as error:
        assert "node nonzero" in str(error)  # noqa: PT017
    else:
        x = torch.tensor([1.0, 0, 2, 0, 3])
        torch.testing.assert_close(to_callable(trace)(x), module(x))


def test_an_input_of_a_size_that_only_a_run_tells_is_named():
    shapes = ShapeEnv()
    mode = FakeTensorMode(shape_env=shapes)
    size = shapes.create_unbacked_symint()
    with mode:
        value = torch.empty(size)
    module = graph_of(torch.sin)
    module.graph.find_nodes(op="placeholder")[0].meta["val"] = value
    with pytest.raises(
        FXError, match=r"the input x_0 is u0, a size that only a run tells \(unbacked\): pass an example"
    ):
        from_fx(module)


def test_no_pickle_is_loaded():
    loads = []
    for path in Path(thunder_fx.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, (ast.Import, ast.ImportFrom)) else []
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if any("pickle" in n for n in names) or called in ("torch.load", "torch.jit.load", "eval", "exec"):
                loads.append(f"{path.name}: {ast.unparse(node)}")
    assert not loads
