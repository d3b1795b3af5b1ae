"""Compiled functions in ``torch.autograd``: everything that an operation of PyTorch's does there."""

from functools import partial

import pytest
import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.testing import assert_close

import thunder_prims as prims
from thunder_autograd import forward_and_backward
from thunder_executors import OperatorExecutor, to_callable, transform_for_execution
from thunder_ir import OpTags, Symbol, Tensor, trace_of
from thunder_torch.bridge import connect_autograd, in_a_box

executor = OperatorExecutor("test", checks=False)
for prim, function in {
    prims.add: torch.add, prims.mul: torch.mul, prims.sin: torch.sin, prims.cos: torch.cos, prims.neg: torch.neg,
    prims.matmul: torch.matmul, prims.transpose: torch.permute, prims.gt: torch.gt,
    prims.exp: torch.exp, prims.tanh: torch.tanh, prims.full: lambda s, v, d, e: torch.full(s, v, dtype=torch.float64),
    prims.clone: torch.clone, prims.conj: torch.conj,
}.items():  # fmt: skip
    executor.implements(prim)(function)


@executor.implements(prims.sub)
def sub(a, b):
    return a - b


@executor.implements(prims.uniform)
def uniform(shape, low, high, dtype, device):
    return torch.rand(shape, dtype=torch.float64)


compile = partial(to_callable, executors=[executor])
ready = partial(transform_for_execution, executors=[executor])


def compiled(function, *shapes, requires_grad=None, lazy=True, boxed=False, **options):
    flags = requires_grad or [True] * len(shapes)
    trace = trace_of(function, *[Tensor(s, "float64", requires_grad=f) for s, f in zip(shapes, flags, strict=True)])
    split = forward_and_backward(trace, **options)
    backward = transform_for_execution(split.backward, [executor])
    return connect_autograd(
        compile(split.forward),
        (in_a_box(backward) if boxed else backward).python_callable(),
        split,
        boxed=boxed,
        compile=ready if lazy else None,
    )


def leaves(*shapes):
    torch.manual_seed(0)
    return [torch.randn(s, dtype=torch.float64, requires_grad=True) for s in shapes]


def gated(x, w):
    h = prims.tanh(prims.matmul(x, w))
    return h * h + prims.sin(h)


def gated_in_torch(x, w):
    h = torch.tanh(x @ w)
    return h * h + torch.sin(h)


def two(x):
    return prims.sin(x) * x, prims.exp(x) * 2.0


def two_in_torch(x):
    return torch.sin(x) * x, torch.exp(x) * 2.0


@pytest.mark.parametrize("boxed", [False, True])
@pytest.mark.parametrize("partition", ["min-cut", "save-all"])
def test_gradients_are_those_of_eager(partition, boxed):
    x, w = leaves((3, 4), (4, 2))

    y = compiled(gated, (3, 4), (4, 2), partition=partition, boxed=boxed)(x, w)

    expected = gated_in_torch(x, w)
    assert_close(y, expected)
    dy = torch.randn_like(y)
    assert_close(torch.autograd.grad(y, (x, w), dy), torch.autograd.grad(expected, (x, w), dy))


def test_passes_gradcheck_and_gradgradcheck():
    x, w = leaves((3, 4), (4, 2))
    function = compiled(gated, (3, 4), (4, 2))

    assert torch.autograd.gradcheck(function, (x, w))
    assert torch.autograd.gradgradcheck(function, (x, w))


def test_has_third_derivatives():
    (x,) = leaves((3,))
    y = compiled(lambda x: prims.sin(x) * x, (3,))(x).sum()
    expected = (torch.sin(x) * x).sum()
    for _ in range(3):
        (y,) = torch.autograd.grad(y, x, create_graph=True)
        (expected,) = torch.autograd.grad(expected, x, create_graph=True)
        assert_close(y, expected)
        y, expected = y.sum(), expected.sum()


def test_inputs_may_be_leaves_or_computed():
    x, w = leaves((3, 4), (4, 2))
    y = compiled(gated, (3, 4), (4, 2))(x * 2, w.exp()).sum()
    expected = gated_in_torch(x * 2, w.exp()).sum()

    assert_close(torch.autograd.grad(y, (x, w)), torch.autograd.grad(expected, (x, w)))


@pytest.mark.parametrize("used", [0, 1, (0, 1)])
def test_outputs_may_go_unused(used):
    (x,) = leaves((5,))
    outputs, expected = compiled(two, (5,))(x), two_in_torch(x)
    pick = (lambda o: o[used].sum()) if isinstance(used, int) else (lambda o: (o[0] * o[1]).sum())

    assert_close(torch.autograd.grad(pick(outputs), x), torch.autograd.grad(pick(expected), x))


def test_an_unused_output_costs_nothing_in_the_backward_program():
    programs = []

    def watched(trace):
        programs.append(trace)
        return ready(trace)

    trace = trace_of(two, Tensor((5,), "float64", requires_grad=True))
    split = forward_and_backward(trace)
    function = connect_autograd(compile(split.forward), compile(split.backward), split, compile=watched)
    (x,) = leaves((5,))

    function(x)[0].sum().backward()

    (program,) = programs
    assert "exp" not in str(program) and len(program.bound_symbols) < len(split.backward.bound_symbols)


def test_zeros_stand_for_cotangents_where_nothing_else_can_be_made():
    (x,) = leaves((5,))
    outputs = compiled(two, (5,), lazy=False)(x)

    assert_close(torch.autograd.grad(outputs[1].sum(), x), torch.autograd.grad(two_in_torch(x)[1].sum(), x))


def test_outputs_without_derivative_require_no_grad():
    def program(x, y):
        return x * 2.0, prims.sin(y), prims.gt(x, 0.0)

    (x,) = leaves((3,))
    y = torch.ones(3, dtype=torch.float64)
    outputs = compiled(program, (3,), (3,), requires_grad=[True, False])(x, y)

    assert [o.requires_grad for o in outputs] == [True, False, False]
    outputs[0].sum().backward()
    assert_close(x.grad, torch.full((3,), 2.0, dtype=torch.float64))


def test_outputs_keep_their_structure():
    (x,) = leaves((3,))
    output = compiled(lambda x: {"a": prims.sin(x), "b": [x * 2.0, None, 3]}, (3,))(x)

    assert output["b"][1:] == [None, 3]
    output["a"].sum().backward()
    assert_close(x.grad, torch.cos(x.detach()))


@pytest.mark.parametrize("boxed", [False, True])
def test_the_graph_can_be_kept(boxed):
    (x,) = leaves((3,))
    y = compiled(lambda x: prims.sin(x), (3,), boxed=boxed)(x).sum()

    y.backward(retain_graph=True)
    y.backward()

    assert_close(x.grad, 2 * torch.cos(x.detach()))


@pytest.mark.parametrize("boxed", [False, True])
def test_a_second_backward_is_refused_as_by_eager(boxed):
    (x,) = leaves((3,))
    y = compiled(lambda x: prims.sin(x), (3,), boxed=boxed)(x).sum()
    y.backward()

    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()


def test_what_was_saved_is_freed_as_soon_as_it_was_used():
    saved, alive = [], []
    watching = OperatorExecutor("watching", checks=False)

    @watching.implements(prims.mul)
    def mul(a, b):
        alive.append(sum([not storage.expired() for storage in saved]))
        return torch.mul(a, b)

    trace = trace_of(lambda x: prims.sin(prims.exp(prims.exp(x))), Tensor((5,), "float64", requires_grad=True))
    split = forward_and_backward(trace, partition="save-all")
    forward = compile(split.forward)

    def watched_forward(x):
        outputs, kept = forward(x)
        saved[:] = [StorageWeakRef(t.untyped_storage()) for t in kept]
        return outputs, kept

    backward = in_a_box(transform_for_execution(split.backward, [watching, executor])).python_callable()
    (x,) = leaves((5,))
    connect_autograd(watched_forward, backward, split, boxed=True)(x).sum().backward()

    assert_close(x.grad, torch.autograd.grad(torch.sin(torch.exp(torch.exp(x))).sum(), x)[0])
    assert alive == [2, 2, 1]


def test_what_was_saved_is_freed_as_soon_as_it_was_used_by_the_program_for_some_outputs():
    saved, alive = [], []
    watching = OperatorExecutor("watching", checks=False)

    @watching.implements(prims.mul)
    def mul(a, b):
        alive.append(sum([not storage.expired() for storage in saved]))
        return torch.mul(a, b)

    def program(x):
        return prims.sin(prims.exp(prims.exp(x))), prims.cos(x)

    trace = trace_of(program, Tensor((5,), "float64", requires_grad=True))
    split = forward_and_backward(trace, partition="save-all")
    forward = compile(split.forward)

    def watched_forward(x):
        outputs, kept = forward(x)
        saved[:] = [StorageWeakRef(t.untyped_storage()) for t in kept if t.data_ptr() != x.data_ptr()]
        return outputs, kept

    watched = partial(transform_for_execution, executors=[watching, executor])
    function = connect_autograd(watched_forward, compile(split.backward), split, compile=watched)
    (x,) = leaves((5,))
    function(x)[0].sum().backward()

    assert_close(x.grad, torch.autograd.grad(torch.sin(torch.exp(torch.exp(x))).sum(), x)[0])
    assert alive == [2, 2, 1]


def test_an_input_that_was_computed_is_freed_when_its_gradient_is_there():
    alive = []
    first, second = compiled(lambda x: prims.sin(x), (5,)), compiled(lambda x: prims.exp(x), (5,))
    (x,) = leaves((5,))
    between = x * 2.0
    storage = StorageWeakRef(between.untyped_storage())
    between.register_hook(lambda gradient: alive.append(not storage.expired()))
    y = second(first(between)).sum()
    del between
    kept = torch.autograd.grad(y, x, retain_graph=True)

    y.backward()

    assert_close(kept[0], x.grad)
    assert alive == [True, False]
    assert storage.expired()


def test_a_modified_saved_tensor_is_refused_as_by_eager():
    (x,) = leaves((3,))
    value = x * 1
    y = compiled(lambda x: prims.sin(x), (3,))(value).sum()
    with torch.no_grad():
        value.add_(1)

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_a_modified_saved_tensor_is_refused_only_for_results_that_it_is_read_for():
    (x, w) = leaves((3,), (3,))
    value, factor = x * 1, w * 1
    product, own = compiled(lambda a, b: (a * b, prims.tanh(a)), (3,), (3,))(value, factor)
    with torch.no_grad():
        factor.add_(1)

    for keep in (True, True, False):
        x.grad = None
        own.sum().backward(retain_graph=keep)
        assert_close(x.grad, 1 - torch.tanh(x.detach()) ** 2)
        if keep:
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                product.sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="a second time"):
        own.sum().backward()


def test_a_modified_result_is_refused_only_where_it_is_read():
    (x,) = leaves((3,))
    first, second = compiled(lambda a: (prims.exp(a), prims.sin(a)), (3,), partition="save-all")(x * 1)
    with torch.no_grad():
        first.add_(1)

    second.sum().backward(retain_graph=True)
    assert_close(x.grad, torch.cos(x.detach()))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        first.sum().backward()


def test_hooks_on_saved_tensors_of_somebody_else_are_asked_for_all_of_them():
    def unpack(tensor):
        raise RuntimeError("lost")

    (x,) = leaves((3,))
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
        _, own = compiled(lambda a: (prims.sin(a), prims.tanh(a)), (3,))(x)
    with pytest.raises(RuntimeError, match="lost"):
        own.sum().backward()


def test_an_input_that_is_not_saved_may_be_modified():
    (x,) = leaves((3,))
    value = x * 1
    y = compiled(lambda x: x * 2.0, (3,))(value).sum()
    with torch.no_grad():
        value.add_(1)

    y.backward(retain_graph=True)
    assert_close(x.grad, torch.full((3,), 2.0, dtype=torch.float64))
    assert_close(torch.autograd.grad(y, x, create_graph=True)[0], torch.full((3,), 2.0, dtype=torch.float64))


def test_inputs_that_are_several_views_may_be_modified_together():
    (x,) = leaves((2, 3))
    value, double = x * 1, compiled(lambda row: row * 2.0, (3,))
    rows = [double(row) for row in value.unbind()]
    with torch.no_grad():
        value.add_(1)  # from here on, PyTorch has an error for each row that is asked for its node

    sum(rows).sum().backward()
    assert_close(x.grad, torch.full((2, 3), 2.0, dtype=torch.float64))


def test_an_input_that_second_derivatives_read_may_not_be_modified():
    (x,) = leaves((3,))
    value = x * 1
    y = compiled(lambda x: prims.sin(x), (3,))(value).sum()
    with torch.no_grad():
        value.add_(1)

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(y, x, create_graph=True)


def test_second_derivatives_meet_the_random_numbers_of_the_first():
    def program(x):
        first = prims.uniform(x.shape, 0.0, 1.0, x.dtype, x.device)
        return prims.sin(x) * prims.uniform(x.shape, 0.0, 1.0, x.dtype, x.device), first

    (x,) = leaves((3,))
    y, _ = compiled(program, (3,))(x)
    factor = (y / torch.sin(x)).detach()
    before = torch.get_rng_state()
    for expected in (torch.cos(x), -torch.sin(x), -torch.cos(x)):
        (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        assert_close(y, expected * factor)
    assert torch.equal(torch.get_rng_state(), before)


def test_second_derivatives_are_refused_where_something_would_happen_again():
    loud = Symbol(
        "loud", "test", meta=lambda a: a.like(), tags=frozenset({OpTags.DONT_DCE, OpTags.CONSTANT_FOR_DERIVATIVE})
    )
    executor.implements(loud)(lambda a: a)

    (x,) = leaves((3,))
    y = compiled(lambda x: prims.sin(x) * loud(x), (3,))(x).sum()
    with pytest.raises(RuntimeError, match="a second derivative would run test.loud again"):
        torch.autograd.grad(y, x, create_graph=True)


def test_saved_tensors_go_through_hooks():
    packed = []

    def pack(tensor):
        packed.append(tensor.shape)
        return tensor.to(torch.float32)

    (x,) = leaves((3,))
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t.to(torch.float64)):
        y = compiled(lambda x: prims.sin(x), (3,))(x).sum()
    y.backward()

    assert (3,) in packed
    assert_close(x.grad, torch.cos(x.detach()), rtol=1e-5, atol=1e-5)


def test_hooks_on_tensors_and_gradient_accumulation_work():
    seen = []
    (x,) = leaves((3,))
    x.register_hook(lambda g: seen.append(g.clone()))
    function = compiled(lambda x: prims.sin(x), (3,))
    for _ in range(2):
        y = function(x)
        y.register_hook(lambda g: g * 2)
        y.sum().backward()

    assert len(seen) == 2
    assert_close(x.grad, 4 * torch.cos(x.detach()))


def test_works_in_anomaly_mode():
    (x,) = leaves((3,))
    with torch.autograd.detect_anomaly(check_nan=True):
        compiled(lambda x: prims.sin(x), (3,))(x).sum().backward()

    assert_close(x.grad, torch.cos(x.detach()))


def test_under_no_grad_there_is_no_graph():
    (x,) = leaves((3,))
    with torch.no_grad():
        y = compiled(lambda x: prims.sin(x), (3,))(x)

    assert y.grad_fn is None and not y.requires_grad


@pytest.mark.parametrize(
    "cotangent",
    [torch.ones(4, dtype=torch.float64), torch.ones(3, dtype=torch.float64, device="meta")],
    ids=["shape", "device"],
)
def test_a_wrong_cotangent_is_refused_as_by_eager(cotangent):
    (x,) = leaves((3,))
    y = compiled(lambda x: prims.sin(x), (3,))(x)
    with pytest.raises(RuntimeError) as ours:
        y.backward(cotangent)
    with pytest.raises(RuntimeError) as theirs:
        torch.sin(x).backward(cotangent)

    assert str(ours.value).split(" ")[:3] == str(theirs.value).replace("Sin", "Compiled").split(" ")[:3]


def test_the_node_is_named():
    (x,) = leaves((3,))

    assert compiled(lambda x: prims.sin(x), (3,))(x).grad_fn.name() == "CompiledBackward"


def test_inference_tensors_may_be_inputs_that_need_no_gradient():
    (x,) = leaves((3,))
    with torch.inference_mode():
        y = torch.ones(3, dtype=torch.float64)
    compiled(lambda x, y: x + y, (3,), (3,), requires_grad=[True, False])(x, y).sum().backward()

    assert_close(x.grad, torch.ones(3, dtype=torch.float64))


def test_complex_gradients_are_those_of_eager():
    torch.manual_seed(0)
    x, w = (torch.randn(3, 3, dtype=torch.complex128, requires_grad=True) for _ in range(2))
    trace = trace_of(
        lambda x, w: prims.sin(prims.matmul(x, w)) * x, *[Tensor((3, 3), "complex128", requires_grad=True)] * 2
    )
    split = forward_and_backward(trace)
    y = connect_autograd(compile(split.forward), compile(split.backward), split)(x, w)
    expected = torch.sin(x @ w) * x
    dy = torch.randn_like(y)

    assert_close(torch.autograd.grad(y, (x, w), dy), torch.autograd.grad(expected, (x, w), dy))
