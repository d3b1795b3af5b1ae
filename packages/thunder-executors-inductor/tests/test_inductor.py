"""Regions of a program, compiled by Inductor. Compiling takes long, so the tests share what is compiled."""

import subprocess
import sys

import pytest
import torch
from torch._dynamo.convert_frame import compile_lock
from torch.testing import assert_close

import thunder_torch as ltorch
from thunder_autograd import forward_and_backward
from thunder_executors import (
    configure_executors,
    cost_in_regions,
    get_executor,
    grad_rule,
    resolve_executors,
    to_callable,
    transform_for_execution,
)
from thunder_executors_inductor import (
    InductorExecutor,
    availability,
    entry,
    inductor,
    loss,
    torchcompile,
    torchcompile_cat,
)
from thunder_executors_inductor.executor import torchcompile_xentropy
from thunder_executors_inductor.layouts import LaidOut
from thunder_ir import IntegerProxy, Tensor, record, trace_of

PRIORITY = [inductor, "torch"]


def traced(function, *examples):
    return trace_of(function, *examples, language=ltorch.torch_language)


def regions(trace, executor):
    return [b for b in trace.bound_symbols if b.symbol.executor is executor]


def block(x, w):
    return ltorch.call(torch.nn.functional.gelu, (x @ w + 1,), {}) * 2


def test_it_is_found_by_name_and_takes_part_only_if_it_is_named():
    assert get_executor("inductor") is inductor
    assert inductor not in resolve_executors(None)


def test_equal_regions_of_a_program_are_compiled_once_and_compute_what_eager_does():
    def program(x, w):
        return block(block(x, w), w)

    trace = transform_for_execution(traced(program, Tensor((6, 4)), Tensor((4, 4))), PRIORITY)
    first, second = regions(trace, inductor)
    assert first.symbol.implementation is second.symbol.implementation
    x, w = torch.randn(6, 4), torch.randn(4, 4)
    expected = x
    for _ in range(2):
        expected = torch.nn.functional.gelu(expected @ w + 1) * 2
    assert_close(trace.python_callable()(x, w), expected)
    assert first.symbol.implementation.compilations == 1


def test_regions_with_the_same_calls_in_another_order_share_a_kernel():
    def first(x, y):
        a, b = x.exp(), y.sin()
        return a * b

    def second(x, y):
        b, a = y.sin(), x.exp()
        return a * b

    x, y = torch.randn(4, 4), torch.randn(4, 4)
    kernels = []
    for program in (first, second):
        trace = transform_for_execution(traced(program, Tensor((4, 4)), Tensor((4, 4))), PRIORITY)
        kernels += [region.symbol.implementation for region in regions(trace, inductor)]
        assert_close(trace.python_callable()(x, y), x.exp() * y.sin())
    assert kernels[0] is kernels[1] and kernels[0].compilations == 1


def test_regions_that_differ_in_views_of_their_outputs_share_a_kernel():
    def first(x):
        y = (x * 7).exp() + x
        return y, y.reshape(16).sum(), y.reshape(2, 8).t()

    def second(x):
        y = (x * 7).exp() + x
        return y, y.reshape(16).sum()

    x, kernels = torch.randn(4, 4), []
    for program in (first, second):
        trace = transform_for_execution(traced(program, Tensor((4, 4))), PRIORITY)
        (region,) = regions(trace, inductor)
        kernels.append(region.symbol.implementation)
        found, expected = trace.python_callable()(x), program(x)
        assert_close(found, expected)
        assert [t.stride() for t in found] == [t.stride() for t in expected]
    assert kernels[0] is kernels[1] and kernels[0].compilations == 1


def test_a_view_of_what_stays_within_a_region_is_part_of_it():
    trace = transform_for_execution(traced(lambda x: ((x * 7).exp() + x).t(), Tensor((4, 3))), PRIORITY)
    assert [b.symbol.id for b in trace.bound_symbols if b.symbol.executor is not None] == ["inductor.inductor_0"]


def test_other_strides_are_compiled_for_and_not_taken_for_the_first():
    run = to_callable(traced(lambda x: (x * 3).exp() + x, Tensor((4, 4))), PRIORITY)
    x = torch.randn(4, 4)
    for value in (x, x.t(), x):
        found, expected = run(value), (value * 3).exp() + value
        assert_close(found, expected)
        assert found.stride() == expected.stride()


def test_what_inductor_decomposes_into_other_layouts_lies_as_in_eager():
    def program(call, x):
        return call(torch.cat, ([x + 1],)), call(torch.stack, ([x * 2], -1)), call(torch.cat, ([x, x * 3],))

    trace = traced(lambda x: program(lambda f, args: ltorch.call(f, args, {}), x), Tensor((2, 3, 5)))
    run = to_callable(trace, PRIORITY)
    x = torch.randn(2, 5, 3).transpose(1, 2)
    for value in (x, x.contiguous(), x.permute(2, 1, 0).contiguous().permute(2, 1, 0)):
        found, expected = run(value), program(lambda f, args: f(*args), value)
        assert_close(found, expected)
        assert [t.stride() for t in found] == [t.stride() for t in expected]


def test_one_kernel_serves_open_sizes():
    rows = IntegerProxy(6)
    trace = transform_for_execution(traced(lambda x: (x.exp() + 1).sum(0) * x.shape[0], Tensor((rows, 4))), PRIORITY)
    (region,) = regions(trace, inductor)
    run = trace.python_callable()
    for n in (6, 9, 30):
        x = torch.randn(n, 4)
        assert_close(run(n, x), (x.exp() + 1).sum(0) * n)
    assert region.symbol.implementation.compilations == 1


def test_products_may_have_open_sizes():
    between = InductorExecutor("open", products=True)
    rows = IntegerProxy(6)
    program = traced(
        lambda x, w: ltorch.call(torch.nn.functional.linear, (x * 2, w), {}) + 1, Tensor((2, rows, 4)), Tensor((4, 4))
    )
    run, w = to_callable(program, [between, "torch"]), torch.randn(4, 4)
    for n in (6, 9):
        x = torch.randn(2, n, 4)
        assert_close(run(n, x, w), torch.nn.functional.linear(x * 2, w) + 1)


def test_forward_and_backward_programs_are_compiled():
    x, w = (torch.randn(s, dtype=torch.float64, requires_grad=True) for s in ((6, 4), (4, 4)))

    def program(x, w):
        return ltorch.call(torch.nn.functional.layer_norm, (block(x, w), (4,)), {})

    inputs = [ltorch.proxy_of(x, "x"), ltorch.proxy_of(w, "w")]
    executors = resolve_executors(PRIORITY)
    split = forward_and_backward(
        record(program, inputs, language=ltorch.torch_language), rule_of=lambda bound: grad_rule(bound, executors)
    )
    forward, backward = (transform_for_execution(t, PRIORITY) for t in (split.forward, split.backward))
    assert regions(forward, inductor) and regions(backward, inductor)
    eager = torch.nn.functional.layer_norm(torch.nn.functional.gelu(x @ w + 1) * 2, (4,))
    dy = torch.randn_like(eager)
    with torch.no_grad():
        result, saved = forward.python_callable()(x, w)
        gradients = backward.python_callable()(*saved, dy)
    assert_close(result, eager)
    assert_close(tuple(gradients), torch.autograd.grad(eager, (x, w), dy))


def test_what_a_loop_computes_again_is_not_saved():
    x, w = torch.randn(64, 128, requires_grad=True), torch.randn(128, requires_grad=True)

    def normalised(x, w):
        return x * ltorch.call(torch.rsqrt, ((x * x).mean(-1, keepdim=True) + 1e-5,), {}) * w

    inputs = [ltorch.proxy_of(x, "x"), ltorch.proxy_of(w, "w")]
    trace = record(normalised, inputs, language=ltorch.torch_language)
    executors = resolve_executors(PRIORITY)
    split = forward_and_backward(
        trace, rule_of=lambda bound: grad_rule(bound, executors), in_regions=cost_in_regions(executors)
    )
    shapes = sorted([tuple(p.shape) for p in split.saved if p.name not in ("x", "w")])
    assert shapes == [(64, 1)]  # and not the product of the size of x, which its gradient reads, too


@pytest.mark.parametrize(
    ("executor", "function", "examples"),
    [
        (inductor, torch.matmul, [Tensor((4, 4)), Tensor((4, 4))]),
        (torchcompile, torch.matmul, [Tensor((4, 4)), Tensor((4, 4))]),
        (torchcompile_cat, torch.exp, [Tensor((4,))]),
    ],
    ids=lambda v: getattr(v, "name", getattr(v, "__name__", None)),
)
def test_what_it_costs_to_repeat_what_may_be_no_loop_is_not_known(executor, function, examples):
    (bound,) = traced(lambda *a: ltorch.call(function, a, {}), *examples).bound_symbols
    assert executor.again(bound) is None


def test_products_belong_to_regions_where_the_whole_is_wanted():
    trace = transform_for_execution(
        traced(lambda x, w: block(x, w), Tensor((6, 4)), Tensor((4, 4))), [torchcompile, "torch"]
    )
    (region,) = trace.bound_symbols[:1]
    assert region.symbol.executor is torchcompile
    x, w = torch.randn(6, 4), torch.randn(4, 4)
    assert_close(trace.python_callable()(x, w), torch.nn.functional.gelu(x @ w + 1) * 2)


def test_products_between_loops_belong_to_regions_on_request_and_attention_does_not():
    between = InductorExecutor("between", products=True)
    linear, attention = torch.nn.functional.linear, torch.nn.functional.scaled_dot_product_attention

    def layer(call, x, w):
        y = call(linear, x * 2, w) + 1
        return call(linear, call(attention, y, y, y), w) * 3

    trace = transform_for_execution(
        traced(
            lambda x, w: layer(lambda f, *args: ltorch.call(f, args, {}), x, w), Tensor((2, 3, 5, 4)), Tensor((4, 4))
        ),
        [between, "torch"],
    )
    assert [len(b.subsymbols) for b in regions(trace, between)] == [3, 2]
    x, w = torch.randn(2, 3, 5, 4), torch.randn(4, 4)
    assert_close(trace.python_callable()(x, w), layer(lambda f, *args: f(*args), x, w))
    alone = traced(
        lambda x, w: ltorch.call(linear, (ltorch.call(linear, (x, w), {}), w), {}), Tensor((3, 4)), Tensor((4, 4))
    )
    assert regions(transform_for_execution(alone, [between, "torch"]), between) == []


def test_attention_keeps_the_derivative_that_its_kernel_has():
    q = torch.randn(2, 3, 5, 4, requires_grad=True)

    def program(q):
        return ltorch.call(torch.nn.functional.scaled_dot_product_attention, (q, q, q), {}) * 2 + 1

    executors = resolve_executors([torchcompile, "torch"])
    split = forward_and_backward(
        record(program, [ltorch.proxy_of(q, "q")], language=ltorch.torch_language),
        rule_of=lambda bound: grad_rule(bound, executors),
    )
    called = [b.symbol.id for b in split.backward.bound_symbols]
    assert any(["flash_attention_for_cpu_backward" in name for name in called]), called


def test_one_thread_at_a_time_compiles_as_inductor_needs_it(monkeypatch):
    compile_fx_inner, held = entry.compile_fx_inner, []

    def watched(*args, **kwargs):
        held.append(compile_lock._is_owned())
        return compile_fx_inner(*args, **kwargs)

    monkeypatch.setattr(entry, "compile_fx_inner", watched)
    run = to_callable(traced(lambda x: (x * 5).exp() + x, Tensor((3, 4))), PRIORITY)
    x = torch.randn(3, 4)
    assert_close(run(x), (x * 5).exp() + x)
    assert held == [True]


def test_only_regions_that_join_are_taken_under_the_name_for_them():
    plain = traced(lambda x: (x * 3).exp() + x, Tensor((4, 4)))
    joining = traced(lambda x: ltorch.call(torch.cat, ([x * 3, x.exp()],), {}) + 1, Tensor((4, 4)))
    assert not regions(transform_for_execution(plain, [torchcompile_cat, "torch"]), torchcompile_cat)
    assert regions(transform_for_execution(joining, [torchcompile_cat, "torch"]), torchcompile_cat)


@pytest.mark.parametrize(
    ("function", "examples", "reason"),
    [
        (torch.rand_like, [Tensor((4,))], "draws random numbers"),
        (torch.gather, [Tensor((4,)), 0, Tensor((4,), "int64")], "raises for some values"),
        (torch.matmul, [Tensor((4, 4)), Tensor((4, 4))], "left to the kernels of libraries"),
        (torch.exp, [Tensor((4,), "complex64")], "real tensors"),
    ],
    ids=lambda v: getattr(v, "__name__", None),
)
def test_what_stays_outside_of_regions_says_why(function, examples, reason):
    (bound,) = traced(lambda *a: ltorch.call(function, a, {}), *examples).bound_symbols
    assert reason in inductor.find(bound).reason


def test_losses_that_may_fail_stay_with_pytorch_on_a_cpu():
    trace = traced(
        lambda x, t: ltorch.call(torch.nn.functional.cross_entropy, (x, t), {}), Tensor((4, 8)), Tensor((4,), "int64")
    )
    assert not regions(transform_for_execution(trace, [torchcompile_xentropy, "torch"]), torchcompile_xentropy)
    assert not regions(transform_for_execution(trace, PRIORITY), inductor)


def loss_of(options):
    return lambda a, t: ltorch.call(torch.nn.functional.cross_entropy, (a, t), options)


def differentiated(function, *examples):
    """Return the forward and the backward part of a function of tensors, as regions and kernels of PyTorch."""
    inputs = [ltorch.proxy_of(x, f"x{i}") for i, x in enumerate(examples)]
    executors = resolve_executors(PRIORITY)
    split = forward_and_backward(
        record(function, inputs, language=ltorch.torch_language), rule_of=lambda bound: grad_rule(bound, executors)
    )
    return tuple([transform_for_execution(t, PRIORITY) for t in (split.forward, split.backward)])


@pytest.mark.parametrize(
    ("shape", "reduction", "dtype"),
    [
        ((6, 40), "none", torch.float32),
        ((6, 40), "mean", torch.float32),
        ((2, 24, 3, 5), "sum", torch.float32),
        ((6, 40), "mean", torch.bfloat16),  # as on CUDA
    ],
    ids=["rows", "mean", "sum", "halves"],
)
def test_a_loss_of_many_logits_is_computed_in_regions_but_for_the_choice_of_targets(
    monkeypatch, shape, reduction, dtype
):
    monkeypatch.setattr(loss, "WORTH_IT", 1)
    monkeypatch.setitem(loss.FLOATS, "cpu", loss.FLOATS["cuda"])
    torch.manual_seed(0)
    a = (100 * torch.randn(shape)).to(dtype).requires_grad_()
    target = torch.randint(shape[1], shape[:1] + shape[2:])
    target[0] = 3  # which does not count
    options = {"reduction": reduction, "ignore_index": 3}
    forward, backward = differentiated(loss_of(options), a, target)
    assert len(regions(forward, inductor)) == len(regions(backward, inductor)) == 1
    wide = a.detach().double().requires_grad_()
    expected = torch.nn.functional.cross_entropy(wide, target, **options)
    dy = torch.randn_like(expected)
    with torch.no_grad():
        result, saved = forward.python_callable()(a, target)
        gradients = backward.python_callable()(*saved, dy.to(dtype))
    assert_close(result, expected.to(dtype))
    assert_close(gradients[0], torch.autograd.grad(expected, wide, dy.to(dtype).double())[0].to(dtype))


def test_a_target_that_is_no_class_raises_as_in_eager(monkeypatch):
    monkeypatch.setattr(loss, "WORTH_IT", 1)
    run = to_callable(traced(loss_of({}), Tensor((6, 40)), Tensor((6,), "int64")), PRIORITY)
    a, target = torch.randn(6, 40), torch.arange(6)
    assert_close(run(a, target), torch.nn.functional.cross_entropy(a, target))
    with pytest.raises(IndexError, match="Target 40 is out of bounds"):
        run(a, target + 35)


@pytest.mark.parametrize(
    ("examples", "options", "reason"),
    [
        ([Tensor((4, 8)), Tensor((4,), "int64")], {}, "fewer than 1048576 logits"),
        ([Tensor((4, 1 << 19)), Tensor((4, 1 << 19))], {}, "a class for each row"),
        ([Tensor((4, 1 << 19)), Tensor((4,), "int64")], {"label_smoothing": 0.1}, "neither weights of classes"),
        ([Tensor((4, 1 << 19), "bfloat16"), Tensor((4,), "int64")], {}, "float32 or float64"),
    ],
    ids=["small", "probabilities", "smoothed", "bfloat16"],
)
def test_losses_that_stay_whole_say_why(examples, options, reason):
    (bound,) = traced(loss_of(options), *examples).bound_symbols
    assert reason in loss.taken(*bound.args, **bound.kwargs).reason


def test_a_missing_compiler_is_named(monkeypatch):
    monkeypatch.setattr(availability.shutil, "which", lambda name: None)
    monkeypatch.setattr(availability.torch.cuda, "is_available", lambda: False)
    assert "there is no C++ compiler" in availability.missing.__wrapped__()
    monkeypatch.setattr(availability.torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(availability, "has_triton_package", lambda: True)
    assert "there is no C compiler" in availability.missing.__wrapped__()
    monkeypatch.setattr(availability, "has_triton_package", lambda: False)
    assert "Triton is not installed" in availability.missing.__wrapped__()


def test_where_nobody_names_it_only_tensors_on_gpus_are_taken():
    default = inductor.unasked()
    for device, takes in (("cpu", False), ("cuda", True)):
        (bound,) = traced(lambda a: ltorch.call(torch.exp, (a,), {}), Tensor((4,), device=device)).bound_symbols
        assert default.can_execute(bound) is takes and inductor.can_execute(bound)
    assert configure_executors([default], {"mode": "reduce-overhead"})[1] == {"mode": "reduce-overhead"}


def test_inductor_is_not_imported_before_something_compiles():
    program = "import sys, thunder_executors_inductor; sys.exit('torch._inductor.compile_fx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_an_unknown_mode_is_refused():
    with pytest.raises(ValueError, match="Inductor has no mode 'fast': it has default, reduce-overhead, max-autotune"):
        InductorExecutor("mine", mode="fast")


def test_users_ask_for_whole_programs_and_modes_by_options():
    (whole, torch_executor), rest = configure_executors(["inductor", "torch"], {"whole": True, "mode": "max-autotune"})
    assert not rest and whole.whole and whole.mode == "max-autotune" and torch_executor.name == "torch"
    assert whole.kernels.settings["coordinate_descent_tuning"]
    again, _ = configure_executors(["inductor", "torch"], {"whole": True, "mode": "max-autotune"})
    assert again[0] is whole  # and its kernels are there


def test_the_whole_program_is_one_region_on_request():
    executors, _ = configure_executors(["inductor", "torch"], {"whole": True})
    trace = transform_for_execution(
        traced(lambda x, w: block(block(x, w), w), Tensor((6, 4)), Tensor((4, 4))), executors
    )
    (region,) = regions(trace, executors[0])
    assert [b for b in trace.bound_symbols if b is not region and b.symbol.executor is not None] == []
    x, w = torch.randn(6, 4), torch.randn(4, 4)
    expected = torch.nn.functional.gelu((torch.nn.functional.gelu(x @ w + 1) * 2) @ w + 1) * 2
    assert_close(trace.python_callable()(x, w), expected)


def test_results_of_other_strides_in_spite_of_the_graph_are_copied():
    x = torch.randn(2, 3, 4)
    expected = [torch.empty(2, 3, 4), torch.empty(3), torch.empty(2, 4, 3).transpose(1, 2)]
    run = LaidOut(lambda inputs: (x.transpose(1, 2).contiguous().transpose(1, 2), x[0, :, 0].clone(), x), expected)
    for _ in range(2):
        found = run([])
        assert_close(list(found), [x, x[0, :, 0], x])
        assert [t.stride() for t in found] == [t.stride() for t in expected]


def test_dimensions_of_one_element_have_the_strides_of_eager_without_a_copy():
    x = torch.randn(2, 1, 3)
    run = LaidOut(lambda inputs: [x], [torch.empty_strided((2, 1, 3), (3, 99, 1))])
    for _ in range(2):
        (found,) = run([])
        assert found.stride() == (3, 99, 1) and found.data_ptr() == x.data_ptr() and not found._is_view()


def test_what_only_a_first_run_needs_is_not_asked_again():
    class Wrapper:
        current_callable = staticmethod(lambda inputs: [torch.ones(1)])
        calls = 0

        def __call__(self, inputs):
            self.calls += 1
            return self.current_callable(inputs)

    wrapper = Wrapper()
    run = LaidOut(wrapper, None)
    assert [run([]), run([])] == [[torch.ones(1)]] * 2 and wrapper.calls == 1
