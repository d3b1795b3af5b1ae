"""``trace_function``: what a function does, as a trace; the truth is the function itself, run by PyTorch."""

import copy
import threading

import pytest
import torch
import torch.nn.functional as F
from torch.utils._pytree import tree_flatten

from thunder_autograd import grad_transform_on_trace
from thunder_executors import to_callable
from thunder_guards.errors import AcquisitionError, DataDependentError
from thunder_ir.passes import dead_code_elimination
from thunder_tracing import trace_function
from thunder_tracing._torch_versions import SETTINGS_OF_CALLS
from thunder_tracing.derivatives import inner_gradients


def randn(*shape, **kwargs):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)), **kwargs)


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x * 2

    @staticmethod
    def backward(context, gradient):
        return gradient * 20  # not the derivative, so that a test sees whose was taken


def writes_through_a_view(x, y):
    x[1].mul_(y)
    x.t()[0] += 1
    return x.sum()


def returns_in_a_nest(x, y):
    return {"sum": x + y, "rest": [x, (y.t(), 3, None, "text")]}


def loops(x, n):
    for _ in range(n):
        x = x.sin() if x.ndim == 2 else x
    return x


def gradient_of_a_loss(w, x):
    loss = F.mse_loss(x @ w, torch.ones(2, 3))
    return loss, torch.autograd.grad(loss, w)[0]


def foreach(x, y):
    return torch._foreach_add([x, y], 2.0)


def writes_one_for_each(x, y):
    torch._foreach_mul_([x, y], 3.0)


def written_and_returned(x):
    x.add_(1)
    part = x[0]
    x.mul_(2)
    return part, x, x.detach()


def shapes_decide(x):
    return x.reshape(-1, x.shape[-1])[: x.size(0)], x.expand(2, *x.shape).contiguous()


def without_gradients(x):
    with torch.no_grad():
        y = x.exp()
    return x * y


PROGRAMS = {
    "writes through views": (writes_through_a_view, lambda: (randn(3, 4), randn(4))),
    "results in a nest": (returns_in_a_nest, lambda: (randn(3, 3), randn(3, 3))),
    "a loop over a number": (loops, lambda: (randn(3, 3), 4)),
    "a gradient": (gradient_of_a_loss, lambda: (randn(3, 3, requires_grad=True), randn(2, 3))),
    "functions on lists": (foreach, lambda: (randn(3), randn(2))),
    "writes on lists": (writes_one_for_each, lambda: (randn(3), randn(2))),
    "writes and views returned": (written_and_returned, lambda: (randn(3, 4),)),
    "shapes": (shapes_decide, lambda: (randn(2, 3, 4),)),
    "no_grad": (without_gradients, lambda: (randn(3, requires_grad=True),)),
    "one tensor twice": (lambda x, y: (x + y, y), lambda: (randn(3),) * 2),
    "indexing": (lambda x, i: x[i, ..., 1:], lambda: (randn(4, 3, 2), torch.tensor([2, 0]))),
    "nothing of tensors": (lambda x: 3, lambda: (randn(2),)),
    "an attention": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        lambda: (randn(2, 2, 4, 8), randn(2, 2, 5, 8), randn(2, 2, 5, 8)),
    ),
    "a checkpoint": (
        lambda x: torch.utils.checkpoint.checkpoint(torch.sin, x, use_reentrant=False),
        lambda: (randn(3, requires_grad=True),),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_traced_function_does_what_the_function_does(name):
    function, arguments = PROGRAMS[name]
    if name == "a checkpoint" and hasattr(torch.utils.checkpoint, "_NoopSaveInputs"):
        pytest.skip("the checkpoint of this PyTorch makes a leaf, and a custom function whose backward raises")
    traced = trace_function(function, *arguments())
    mine, eager = arguments(), arguments()
    got, wanted = traced.call(to_callable(traced.trace), *mine), function(*eager)
    leaves, spec = tree_flatten((got, mine))
    expected, wanted_spec = tree_flatten((wanted, eager))
    assert spec == wanted_spec
    for leaf, other in zip(leaves, expected, strict=True):
        if isinstance(other, torch.Tensor):
            torch.testing.assert_close(leaf, other, rtol=1e-6, atol=1e-6)
        else:
            assert leaf == other


def test_results_share_memory_with_inputs_as_eager_has_it():
    x = randn(3, 4)
    traced = trace_function(written_and_returned, x)
    part, same, other = traced.call(to_callable(traced.trace), x)
    assert same is x and part.data_ptr() == x.data_ptr() == other.data_ptr()
    assert [(o.input, len(o.steps)) for o in traced.outputs] == [(0, 1), (0, 0), (0, 1)]


def test_tracing_leaves_arguments_and_parameters_as_they_are():
    model = torch.nn.BatchNorm1d(4)
    before, x = copy.deepcopy(model.state_dict()), randn(5, 4)
    kept = x.clone()
    trace_function(model, x)
    trace_function(writes_through_a_view, x, randn(4))
    torch.testing.assert_close((dict(model.state_dict()), x), (dict(before), kept), rtol=0, atol=0)


def test_parameters_are_inputs_and_buffers_are_written():
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.ReLU())
    eager, x = copy.deepcopy(model), randn(6, 3)
    traced = trace_function(model, x)
    held = [i.tensor for i in traced.inputs if i.argument is None]
    assert {id(t) for t in held} == {id(t) for t in (*model.parameters(), *model.buffers())}
    assert [i.proxy.name for i in traced.inputs][:3] == ["a0", "_0_weight", "_0_bias"]
    torch.testing.assert_close(traced.call(to_callable(traced.trace), x), eager(x))
    torch.testing.assert_close(model.state_dict(), eager.state_dict())
    written = {id(traced.inputs[w.input].tensor) for w in traced.writes}
    assert written == {id(buffer) for buffer in model.buffers()}


def test_the_derivative_of_a_custom_function_is_its_own():
    x = randn(3, requires_grad=True)
    traced = trace_function(lambda x: torch.autograd.grad(Doubled.apply(x).sum(), x)[0], x)
    assert torch.equal(traced.call(to_callable(traced.trace), x), torch.full((3,), 20.0))
    assert torch.autograd.grad(Doubled.apply(x).sum(), x)[0].eq(20).all()  # PyTorch's own is there again


class Tripled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view(-1)

    @staticmethod
    def backward(ctx, gradient):
        return gradient.view(3, 1) * 3


def test_a_view_that_a_custom_function_returns_is_seen():
    x = randn(3, 1, requires_grad=True)
    traced = trace_function(lambda x: Tripled.apply(x), x)
    assert [bound.symbol.name for bound in traced.trace.bound_symbols] == ["Tripled"]
    y = traced.call(lambda x: [Tripled.apply(x)], x)  # a view of the input, and not with its gradient
    assert y.data_ptr() == x.data_ptr()
    assert torch.equal(torch.autograd.grad(y.sum(), x)[0], torch.full((3, 1), 3.0))


def test_a_custom_function_whose_apply_was_taken_before_is_seen_or_refused():
    x = randn(3, 1, requires_grad=True)
    if SETTINGS_OF_CALLS:
        with pytest.raises(AcquisitionError, match="Tripled.apply was taken of its class before"):
            trace_function(Tripled.apply, x)
    else:
        traced = trace_function(Tripled.apply, x)
        assert [bound.symbol.name for bound in traced.trace.bound_symbols] == ["Tripled"]
    assert torch.equal(torch.autograd.grad(Tripled.apply(x).sum(), x)[0], torch.full((3, 1), 3.0))


def test_other_threads_reach_autograd_meanwhile():
    x, found = randn(3, requires_grad=True), []

    def traced(y):
        other = threading.Thread(target=lambda: found.append(Doubled.apply(x)))
        other.start()
        other.join()
        return Doubled.apply(y)

    trace_function(traced, x)
    assert torch.equal(found[0], x * 2) and found[0].grad_fn is not None


def test_calls_say_which_line_of_the_user_they_are_of():
    traced = trace_function(without_gradients, randn(3))
    assert "y = x.exp()" in {b.location.text for b in traced.trace.bound_symbols}


def test_a_trace_has_nothing_that_nobody_reads():
    traced = trace_function(lambda x: (x.exp(), x + 1)[1], randn(3))
    assert len(traced.trace.bound_symbols) == len(dead_code_elimination(traced.trace).bound_symbols) == 1


def gives_a_gradient(w):
    (w * w).sum().backward()


X = torch.ones(2, 3)
REFUSED = {
    "a branch on a value": (lambda x: x + 1 if x.sum() > 0 else x, (X,), DataDependentError, "depends on|value"),
    "a number of a tensor": (lambda x: x * x.sum().item(), (X,), DataDependentError, "known only when"),
    "a changed shape": (lambda x: x.t_(), (X,), AcquisitionError, "changes the shape"),
    "other memory": (lambda x: setattr(x, "data", x + 1), (X,), AcquisitionError, "memory"),
    "a gradient of an input": (gives_a_gradient, (torch.ones(2, requires_grad=True),), AcquisitionError, "attribute"),
    "a leaf": (lambda x: (x + 1).requires_grad_(), (X,), AcquisitionError, "leaf"),
    "shared memory": (lambda x, y: x.add_(1), (X, X.t()), AcquisitionError, "shares memory"),
    "another trace": (lambda x: x + len(trace_function(torch.sin, X).inputs), (X,), AcquisitionError, "inside of"),
    "torch.func": (lambda x: torch.vmap(torch.sin)(x), (X,), AcquisitionError, "torch.func"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_trace_cannot_hold_is_refused_with_the_reason(name):
    function, arguments, error, words = REFUSED[name]
    before = [a.clone() for a in arguments]
    with pytest.raises(error, match=words):
        trace_function(function, *arguments)
    assert all(map(torch.equal, arguments, before))


def test_arguments_nested_in_another_way_are_refused():
    traced = trace_function(lambda xs: xs[0] + xs[1], [X, X])
    with pytest.raises(TypeError, match="nested"):
        traced.call(to_callable(traced.trace), (X, X))


def test_gradients_within_look_at_what_they_go_through_alone(monkeypatch):
    lengths = []

    def counted(trace, **options):
        lengths.append(len(trace.bound_symbols))
        return grad_transform_on_trace(trace, **options)

    def program(x):
        for _ in range(5):
            x = torch.autograd.grad(x.sin().prod(), x, create_graph=True)[0].cos() + x
        return x

    monkeypatch.setattr(inner_gradients, "grad_transform_on_trace", counted)
    x = randn(4).requires_grad_()
    traced = trace_function(program, x)
    assert len(set(lengths)) == 1, "the cost of each grows with what was recorded before"
    torch.testing.assert_close(traced.call(to_callable(traced.trace), x).detach(), program(x).detach())
