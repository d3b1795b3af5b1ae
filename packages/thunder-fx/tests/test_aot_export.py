"""Modules and functions as single graphs, beside what PyTorch makes of them."""

import pytest
import torch
from torch import nn
from torch._functorch import aot_autograd
from torch.testing import assert_close

from thunder_fx import FXError, aot


def placeholders(module):
    return [n.name for n in module.graph.nodes if n.op == "placeholder"]


def attention(q, k):
    return torch.softmax(q @ k.t(), -1).tanh() @ k


def test_a_joint_graph_is_exported():
    q, k = (torch.randn(s, dtype=torch.float64, requires_grad=True) for s in ((3, 4), (5, 4)))
    module = aot.aot_export_joint_simple(attention, (q, k), trace_joint=True)
    assert placeholders(module) == ["primals_1", "primals_2", "tangents_1"]
    dy = torch.randn(3, 4, dtype=torch.float64)
    expected = attention(q, k)
    with torch.no_grad():
        result, *gradients = module(q, k, dy)
    assert_close((result, *gradients), (expected, *torch.autograd.grad(expected, (q, k), dy)))


def test_a_function_that_writes_is_not_exported():
    with pytest.raises(FXError, match="the function writes to its arguments"):
        aot.aot_export_joint_simple(lambda x: x.add_(1), [torch.ones(2)], trace_joint=False)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x, scale=1.0):
        hidden = self.norm(self.linear(x) * scale)
        return hidden.pow(2).mean(), hidden.detach().argmax(-1)


def exported(by, **options):
    torch.manual_seed(0)
    model = Model()
    return model, *by.aot_export_module(model, [torch.ones(5, 4)], **options)


def state_of(model):
    return [*model.parameters(), *model.buffers()]


@pytest.mark.parametrize("options", [{"trace_joint": False}, {"trace_joint": True, "output_loss_index": 0}], ids=str)
def test_a_module_is_exported_as_pytorch_exports_it(options):
    _, theirs, their_signature = exported(aot_autograd, **options)
    model, ours, signature = exported(aot, **options)
    x = torch.randn(5, 4)
    given = [t.detach() for t in state_of(model)]
    assert_close(list(ours(*given, x)), list(theirs(*given, x)))
    assert signature.parameters == their_signature.parameters
    assert signature.buffers == their_signature.buffers
    assert sorted(signature.buffers_to_mutate.values()) == sorted(their_signature.buffers_to_mutate.values())
    assert list(signature.inputs_to_parameters.values()) == list(their_signature.inputs_to_parameters.values())
    assert len(signature.user_outputs) == len(their_signature.user_outputs)
    if options["trace_joint"]:
        found, expected = signature.backward_signature, their_signature.backward_signature
        assert list(found.gradients_to_parameters.values()) == list(expected.gradients_to_parameters.values())
        outputs = [n.name for n in ours.graph.output_node().args[0]]
        assert outputs.index(found.loss_output) == len(signature.buffers_to_mutate)


def test_gradients_of_a_joint_graph_are_those_of_eager():
    model, graph, signature = exported(aot, trace_joint=True, output_loss_index=0)
    x = torch.randn(5, 4)
    loss, _ = model(x)
    expected = torch.autograd.grad(loss, list(model.parameters()))
    _, fresh, _ = exported(aot, trace_joint=True, output_loss_index=0)
    given = [t.detach() for t in state_of(Model())]
    given[: len(expected)] = [p.detach() for p in model.parameters()]
    found = fresh(*given, x)[-len(expected) :]
    assert_close(tuple(found), expected)


REFUSED = {
    "no loss is named": ({}, "output_loss_index says which result it is"),
    "the loss is not one number": ({"output_loss_index": 1}, "the loss, is not one number that requires grad"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_loss_is_refused(name):
    options, told = REFUSED[name]
    with pytest.raises(FXError, match=told):
        aot.aot_export_module(Model(), [torch.ones(5, 4)], trace_joint=True, **options)
