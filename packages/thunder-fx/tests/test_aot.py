"""Graphs of the forward and the backward part, handed to compilers: as ``functorch.compile`` does."""

import copy

import functorch.compile
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from thunder_fx import aot


def seen_by(graphs):
    def compiler(module, examples):
        graphs.append((module, examples))
        return module

    return compiler


def placeholders(module):
    return [n.name for n in module.graph.nodes if n.op == "placeholder"]


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 2)).double()


def gradients_of(call, *inputs):
    inputs = [x.clone().requires_grad_() for x in inputs]
    out = call(*inputs)
    out.pow(2).sum().backward()
    return out.detach(), [x.grad for x in inputs]


def attention(q, k):
    return torch.softmax(q @ k.t(), -1).tanh() @ k


PARTITIONS = [
    aot.default_partition,
    aot.min_cut_rematerialization_partition,
    functorch.compile.default_partition,
    functorch.compile.min_cut_rematerialization_partition,
]


@pytest.mark.parametrize("partition", PARTITIONS, ids=lambda p: f"{p.__module__.partition('.')[0]}_{p.__name__}")
def test_compilers_get_a_forward_and_a_backward_graph_cut_by_any_partition(partition):
    forward, backward = [], []
    compiled = aot.aot_function(attention, seen_by(forward), seen_by(backward), partition)
    q, k = (torch.randn(s, dtype=torch.float64) for s in ((3, 4), (5, 4)))
    assert_close(gradients_of(compiled, q, k), gradients_of(attention, q, k))
    ((module, examples),) = forward
    assert placeholders(module) == ["primals_1", "primals_2"]
    assert [tuple(e.shape) for e in examples] == [(3, 4), (5, 4)]
    assert placeholders(backward[0][0])[-1] == "tangents_1"


def test_without_gradients_there_is_one_graph_for_the_compiler_of_inference():
    graphs = []
    compiled = aot.aot_function(attention, None, inference_compiler=seen_by(graphs))
    q, k = torch.randn(3, 4), torch.randn(5, 4)
    assert_close(compiled(q, k), attention(q, k))
    compiled(q, k)
    assert len(graphs) == 1


def test_a_module_keeps_its_parameters_and_trains():
    eager = network()
    model = copy.deepcopy(eager)
    compiled = aot.aot_module(model, aot.nop)
    x = torch.randn(3, 4, dtype=torch.float64)
    for run in (eager, compiled):
        run(x).pow(2).sum().backward()
    assert_close([p.grad for p in model.parameters()], [p.grad for p in eager.parameters()])


def test_it_makes_a_backend_of_dynamo():
    def backend(module, examples):
        return aot.aot_module_simplified(module, examples, fw_compiler=aot.nop)

    torch._dynamo.reset()
    eager = network()
    model = copy.deepcopy(eager)
    x = torch.randn(3, 4, dtype=torch.float64)
    for run in (eager, torch.compile(model, backend=backend)):
        run(x).pow(2).sum().backward()
    assert_close([p.grad for p in model.parameters()], [p.grad for p in eager.parameters()])


CASES = {  # what may be the matter with aliases and writes, as functions of two tensors
    "writes to an argument": lambda a, b: (a.mul_(b), b * 2)[1],
    "returns an argument": lambda a, b: (a, a * b),
    "returns a view": lambda a, b: (a.t(), a * b),
    "returns one value twice": lambda a, b: (lambda c: (c, c))(a * b),
    "returns a value and a view of it": lambda a, b: (lambda c: (c, c.view(-1)))(a * b),
    "writes and reads": lambda a, b: (a.add_(1), (a * b).sum())[1],
    "writes twice": lambda a, b: (a.add_(1), a.mul_(2), b + a)[2],
    "writes through a view": lambda a, b: (a.view(-1).add_(1), a * b)[1],
    "writes to what it made": lambda a, b: (a * b).add_(1).mul_(b),
    "returns no tensor": lambda a, b: {"sum": a + b, "rest": [None, 3, "x"]},
    "returns a constant": lambda a, b: (torch.ones(2), a * b),
    "takes one tensor twice": lambda a, b: a * a + b,
    "detaches": lambda a, b: (a.detach() * b, a * b.detach()),
    "returns integers": lambda a, b: (a.argmax(), a * b),
    "has a part without gradients": lambda a, b: _quietly(a) * b,
}


def _quietly(a):
    with torch.no_grad():
        return a.exp()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("requires_grad", [False, True], ids=["inference", "training"])
def test_aliases_and_writes_are_those_of_eager(name, requires_grad):
    outcomes = []
    for run in (CASES[name], aot.aot_function(CASES[name], aot.nop)):
        torch.manual_seed(0)
        leaves = [torch.randn(2, 2, dtype=torch.float64, requires_grad=requires_grad) for _ in range(2)]
        a, b = leaves[0] * 1, leaves[1] * 1
        result = run(a, b)
        tensors = [t for t in torch.utils._pytree.tree_leaves(result) if isinstance(t, torch.Tensor)]
        facts = [(t.requires_grad, t.data_ptr() == a.data_ptr(), t.stride()) for t in tensors]
        inexact = [t for t in tensors if t.requires_grad]
        if inexact:
            sum(t.pow(2).sum() for t in inexact).backward()
        # a gradient of zeros stands for none where a result that was not used has one
        gradients = [torch.zeros_like(x) if x.grad is None else x.grad for x in leaves]
        outcomes.append(([t.detach() for t in tensors], a.detach(), b.detach(), gradients, facts))
    *eager, eager_facts = outcomes[0]
    *found, found_facts = outcomes[1]
    assert_close(found, eager)
    assert found_facts == eager_facts


def test_users_of_functorch_change_an_import():
    names = {name for name in dir(functorch.compile) if not name.startswith("_")}
    assert names <= set(aot.__all__)


def test_the_backward_graph_is_compiled_when_it_first_runs():
    backward = []
    compiled = aot.aot_function(attention, aot.nop, seen_by(backward))
    out = compiled(*[torch.randn(s, requires_grad=True) for s in ((3, 4), (5, 4))])
    assert not backward
    out.sum().backward()
    assert len(backward) == 1


def test_compilers_are_told_which_graph_they_compile():
    names = []

    def compiler(module, examples):
        (name,) = aot.get_aot_compilation_context()[0]
        names.append(name.partition("_")[2])
        return module

    aot.aot_function(attention, compiler)(*[torch.randn(3, 3, requires_grad=True) for _ in range(2)]).sum().backward()
    aot.aot_function(attention, compiler)(*[torch.randn(3, 3) for _ in range(2)])
    assert names == ["forward", "backward", "inference"]


def test_boxed_compilers_get_a_list():
    given = []

    @aot.make_boxed_compiler
    def compiler(module, examples):
        def run(*inputs):
            given.append(len(inputs))
            return module(*inputs)

        return run

    x = torch.randn(3, 3)
    assert_close(aot.aot_function(attention, compiler)(x, x + 1), attention(x, x + 1))
    assert given == [2]


@pytest.mark.parametrize("requires_grad", [False, True], ids=["inference", "training"])
def test_one_graph_serves_the_sizes_that_are_left_open(requires_grad):
    graphs = []
    compiled = aot.aot_function(attention, seen_by(graphs), dynamic=True)
    for rows in (3, 5, 9):
        q, k = (torch.randn(s, 4, dtype=torch.float64) for s in (rows, rows + 1))
        if requires_grad:
            assert_close(gradients_of(compiled, q, k), gradients_of(attention, q, k))
        else:
            assert_close(compiled(q, k), attention(q, k))
    assert len(graphs) == 1 + requires_grad


def test_tangents_are_laid_out_as_the_backward_graph_expects():
    strides = []

    def backward(module, examples):
        (tangent,) = [e for n, e in zip(placeholders(module), examples, strict=True) if n.startswith("tangents")]

        def run(*inputs):
            strides.append((tangent.stride(), inputs[-1].stride()))
            return module(*inputs)

        return run

    x = torch.randn(3, 4, requires_grad=True)
    aot.aot_function(lambda x: x.exp() * 2, aot.nop, backward)(x).backward(torch.randn(4, 3).t())
    assert strides == [((4, 1), (4, 1))]


def saved_by(partition, aot_function, function, *inputs):
    """How many values a forward graph hands to the backward graph, and how many bytes they have."""
    graphs = []
    aot_function(function, fw_compiler=aot.nop, bw_compiler=seen_by(graphs), partition_fn=partition)(
        *inputs
    ).sum().backward()
    ((module, examples),) = graphs
    saved = [e for n, e in zip(placeholders(module), examples, strict=True) if not n.startswith("tangents")]
    return len(saved), sum(e.numel() * e.element_size() for e in saved)


PRODUCTS = {
    "three factors": lambda x: (x + 1) * (x - 1) * (x + 2),
    "a chain": lambda x: ((x + 1).tanh() * (x - 1)).sigmoid() * (x * 2 + 3).exp(),
    "a norm": lambda x: (x - x.mean(-1, keepdim=True)) * torch.rsqrt(x.var(-1, keepdim=True) + 1e-5) * 3,
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_what_is_computed_again_is_not_saved_and_no_more_is_saved_than_by_pytorch(name):
    x = torch.randn(8, 16, requires_grad=True)
    count, size = saved_by(aot.min_cut_rematerialization_partition, aot.aot_function, PRODUCTS[name], x)
    theirs, their_size = saved_by(
        functorch.compile.min_cut_rematerialization_partition, functorch.compile.aot_function, PRODUCTS[name], x
    )
    assert count <= theirs and size <= their_size


def test_of_a_product_of_sums_only_the_input_is_saved():
    x = torch.randn(8, requires_grad=True)
    partition = aot.min_cut_rematerialization_partition
    assert saved_by(partition, aot.aot_function, PRODUCTS["three factors"], x) == (1, 8 * 4)
    everything = saved_by(aot.default_partition, aot.aot_function, PRODUCTS["three factors"], x)
    assert everything[0] > 1


def test_decompositions_replace_operations_in_forward_and_backward():
    def targets(decompositions):
        graphs = []
        compiled = aot.aot_function(torch.nn.functional.silu, seen_by(graphs), decompositions=decompositions)
        compiled(torch.randn(3, requires_grad=True)).sum().backward()
        return {str(n.target) for module, _ in graphs for n in module.graph.nodes if n.op == "call_function"}

    table = torch._decomp.get_decompositions([torch.ops.aten.silu, torch.ops.aten.silu_backward])
    assert not any("silu" in t for t in targets(table))
    assert any("silu" in t for t in targets(None))
    assert not any("silu" in t for t in targets(aot.default_decompositions | table))


class Tripled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 3


@pytest.mark.parametrize("function", [lambda x: Tripled.apply(x), lambda x: Tripled.apply(x * 2)])
def test_views_that_custom_functions_return_have_their_gradients(function):
    x, ours = (torch.ones(2, 3, requires_grad=True) for _ in range(2))
    expected, result = function(x), aot.aot_function(function, aot.nop)(ours)
    assert result._is_view() and (result._base is ours) == (expected._base is x)
    assert_close(torch.autograd.grad(result.sum(), ours), torch.autograd.grad(expected.sum(), x))
