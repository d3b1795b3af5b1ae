"""Derivatives go through PyTorch's fused kernels, and keep no more than eager PyTorch keeps."""

import pytest
import torch
import torch.nn.functional as F

from thunder_autograd import forward_and_backward
from thunder_executors import grad_rule, resolve_executors, transform_for_execution
from thunder_executors_torch import executor
from thunder_executors_torch.nn import rows_added
from thunder_ir import TensorProxy, trace_of
from thunder_ir.passes import verifying
from thunder_torch import metadata_of, proxy_of, symbol_of, torch_language
from thunder_torch.inplace import batch_norm_updating

# ruff: noqa: E501  (the table below: one call is one line, however long)


def executed(trace):
    """Return a program that this executor runs, whoever else takes part by default."""
    return transform_for_execution(trace, [executor])


def leaf(*shape, **options):
    return torch.randn(*shape, requires_grad=True, **options)


def split(function, args, kwargs):
    """Return the forward and backward program of one call; gradients reach the tensors that require them."""
    executors = resolve_executors([executor])
    trace = trace_of(
        lambda *tensors: symbol_of(function)(*tensors, **kwargs), *[as_input(a) for a in args], language=torch_language
    )
    return forward_and_backward(trace, rule_of=lambda bound: grad_rule(bound, executors))


def as_input(value):
    return proxy_of(value) if isinstance(value, torch.Tensor) else value


def paths(trace):
    return [b.symbol.path for b in trace.bound_symbols if b.symbol.path]


def kept_by_eager(function, args, kwargs):
    """Return the bytes that eager PyTorch keeps for the backward pass beyond inputs and outputs."""
    kept = {}

    def keep(t):
        kept[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
        return t

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t):
        output = function(*args, **kwargs)
    outputs = output if isinstance(output, tuple) else (output,)
    owned = {t.untyped_storage().data_ptr() for t in (*args, *outputs) if isinstance(t, torch.Tensor)}
    return sum(size for pointer, size in kept.items() if pointer not in owned)


CALLS = [
    (F.layer_norm, (leaf(4, 8), (8,), leaf(8), leaf(8)), {}, "native_layer_norm_backward"),
    (F.layer_norm, (leaf(4, 8, dtype=torch.bfloat16), (8,)), {}, "native_layer_norm_backward"),
    (F.rms_norm, (leaf(4, 8), (8,), leaf(8)), {"eps": 1e-5}, "rms_norm_backward_by_hand"),
    (F.rms_norm, (leaf(2, 4, 8), (4, 8)), {}, "rms_norm_backward_by_hand"),
    (F.group_norm, (leaf(3, 4, 5, 5), 2, leaf(4), leaf(4)), {}, "native_group_norm_backward"),
    (F.group_norm, (leaf(3, 4, 5, 5).to(memory_format=torch.channels_last).detach().requires_grad_(), 2, leaf(4)), {}, "native_group_norm_backward"),
    (F.group_norm, (leaf(3, 5, 5, 4).permute(0, 3, 1, 2).detach().requires_grad_(), 2), {}, "native_group_norm_backward"),
    (F.batch_norm, (leaf(3, 4, 5), torch.zeros(4), torch.ones(4), leaf(4), leaf(4)), {}, "native_batch_norm_backward"),
    (F.batch_norm, (leaf(3, 4, 5), None, None, leaf(4), leaf(4), True), {}, "native_batch_norm_backward"),
    (batch_norm_updating, (leaf(3, 4, 5, 5), torch.zeros(4), torch.ones(4), leaf(4), leaf(4), True), {}, "batch_norm_backward"),
    (F.instance_norm, (leaf(3, 4, 5, 5), None, None, leaf(4), leaf(4)), {}, "native_batch_norm_backward"),
    (F.softmax, (leaf(4, 8),), {"dim": -1}, "_softmax_backward_data"),
    (torch.softmax, (leaf(4, 8), 0), {"dtype": torch.float64}, "_softmax_backward_data"),
    (F.log_softmax, (leaf(4, 8),), {"dim": 1}, "_log_softmax_backward_data"),
    (F.gelu, (leaf(4, 8),), {}, "gelu_backward"),
    (F.gelu, (leaf(4, 8),), {"approximate": "tanh"}, "gelu_backward"),
    (F.silu, (leaf(4, 8),), {}, "silu_backward"),
    (F.relu, (leaf(4, 8),), {}, "threshold_backward"),
    (torch.tanh, (leaf(4, 8),), {}, "tanh_backward"),
    (torch.sigmoid, (leaf(4, 8),), {}, "sigmoid_backward"),
    (F.leaky_relu, (leaf(4, 8), 0.1), {}, "leaky_relu_backward"),
    (F.elu, (leaf(4, 8),), {"alpha": 0.5}, "elu_backward"),
    (F.softplus, (leaf(4, 8),), {"beta": 2.0}, "softplus_backward"),
    (F.hardtanh, (leaf(4, 8), -0.5, 0.5), {}, "hardtanh_backward"),
    (F.hardswish, (leaf(4, 8),), {}, "hardswish_backward"),
    (F.hardsigmoid, (leaf(4, 8),), {}, "hardsigmoid_backward"),
    (F.mish, (leaf(4, 8),), {}, "mish_backward"),
    (F.glu, (leaf(4, 8), 1), {}, "glu_backward"),
    (F.dropout, (leaf(40, 8), 0.3), {}, "native_dropout_backward"),
    (F.cross_entropy, (leaf(4, 8), torch.tensor([1, 2, 7, -100])), {}, "nll_loss_backward"),
    (F.cross_entropy, (leaf(4, 8, 3, 3), torch.randint(8, (4, 3, 3))), {"reduction": "sum"}, "nll_loss2d_backward"),
    (F.cross_entropy, (leaf(4, 8), torch.tensor([1, 2, 7, 0]), torch.rand(8)), {}, "nll_loss_backward"),
    (F.cross_entropy, (leaf(512, 128), torch.tensor([*range(127), -100] * 4)), {}, "in_one_buffer"),
    (F.cross_entropy, (leaf(512, 128), torch.full((512,), 3), torch.rand(128), None, 3), {"reduction": "sum"}, "in_one_buffer"),
    (F.cross_entropy, (leaf(512, 128), torch.randint(128, (512,), dtype=torch.uint8), torch.rand(128)), {}, "in_one_buffer"),
    (F.cross_entropy, (leaf(8, 16, 32, 16), torch.randint(16, (8, 32, 16)), torch.rand(16), None, 5), {"reduction": "none"}, "in_one_buffer"),
    (F.nll_loss, (leaf(4, 8), torch.tensor([1, 2, 7, 0])), {"reduction": "none"}, "nll_loss_backward"),
    (F.mse_loss, (leaf(4, 8), leaf(4, 8)), {}, "mse_loss_backward"),
    (F.smooth_l1_loss, (leaf(4, 8), torch.randn(4, 8)), {"beta": 0.5, "reduction": "sum"}, "smooth_l1_loss_backward"),
    (F.binary_cross_entropy, (torch.rand(4, 8).requires_grad_(), torch.rand(4, 8)), {}, "binary_cross_entropy_backward"),
    (F.binary_cross_entropy, (torch.rand(4).requires_grad_(), torch.rand(4)), {"reduction": "none"}, "binary_cross_entropy_backward"),
    (F.embedding, (torch.tensor([[0, 1], [2, 1]]), leaf(5, 8), 0), {}, "embedding_dense_backward"),
    (F.embedding, (torch.randint(300, (7, 50)), leaf(300, 256), 5), {}, "rows_added"),
    (F.embedding, (torch.randint(3, (7, 50), dtype=torch.int32), leaf(300, 256)), {}, "rows_added"),
    (F.embedding, (torch.randint(300, (7, 50)), leaf(300, 256), 5), {"scale_grad_by_freq": True}, "embedding_dense_backward"),
    (F.embedding, (torch.randint(300, (7, 50)), leaf(300, 256).detach().bfloat16().requires_grad_()), {}, "embedding_dense_backward"),
    (F.conv2d, (leaf(2, 3, 8, 8), leaf(4, 3, 3, 3), leaf(4)), {"padding": 1}, "convolution_backward"),
    (F.max_pool2d, (leaf(2, 3, 8, 8), 2), {}, "max_pool2d_with_indices_backward"),
    (F.scaled_dot_product_attention, (leaf(2, 4, 8, 16), leaf(2, 4, 8, 16), leaf(2, 4, 8, 16)), {"is_causal": True}, "for_cpu_backward"),
    (F.scaled_dot_product_attention, (leaf(2, 4, 8, 16), leaf(2, 2, 6, 16), leaf(2, 2, 6, 16)), {"enable_gqa": True}, "for_cpu_backward"),
    (F.scaled_dot_product_attention, (*[leaf(2, 4, 8, 16) for _ in range(3)], torch.ones(8, 8, dtype=torch.bool).tril()), {"scale": 0.3}, "for_cpu_backward"),
    (F.scaled_dot_product_attention, (*[leaf(2, 4, 8, 16) for _ in range(3)], torch.randn(2, 1, 8, 8)), {}, "for_cpu_backward"),
]  # fmt: skip
NAMES = [f"{i}-{c[0].__name__}" for i, c in enumerate(CALLS)]


@pytest.mark.parametrize(("function", "args", "kwargs", "kernel"), CALLS, ids=NAMES)
def test_values_and_gradients_are_those_of_eager_pytorch(function, args, kwargs, kernel):
    with verifying():
        made = split(function, args, kwargs)
        runnable = [executed(t) for t in (made.forward, made.backward)]
    forward, backward = (t.python_callable() for t in runnable)
    tensors = [a for a in args if isinstance(a, torch.Tensor)]
    torch.manual_seed(0)
    with torch.no_grad():
        output, saved = forward(*tensors)
    torch.manual_seed(0)
    expected = function(*args, **kwargs)
    torch.testing.assert_close(output, expected, check_stride=True)
    y = expected[-1] if isinstance(expected, tuple) else expected
    dy = torch.randn_like(y)
    wanted = [t for t in tensors if t.requires_grad]
    cotangents = [t for t in (expected if isinstance(expected, tuple) else (expected,)) if t.requires_grad]
    with torch.no_grad():
        given = [dy] if len(backward_inputs(made)) == 1 else [*[torch.zeros_like(t) for t in expected[:-1]], dy]
        gradients = [g for g in backward(*saved, *given) if g is not None]

    assert len(cotangents) == 1
    assert any(path.endswith((kernel, f"{kernel}.default")) for path in paths(runnable[1]))
    torch.testing.assert_close(gradients, list(torch.autograd.grad(y, wanted, dy)))


def test_attention_is_laid_out_as_eagers():
    for transposed in ((1, 2), (2, 3)):
        shape = [2, 4, 8, 16]
        shape[transposed[0]], shape[transposed[1]] = shape[transposed[1]], shape[transposed[0]]
        args = [leaf(*shape).transpose(*transposed).detach().requires_grad_() for _ in range(3)]
        run = executed(split(F.scaled_dot_product_attention, args, {}).forward).python_callable()
        with torch.no_grad():
            output, _ = run(*args)
        torch.testing.assert_close(output, F.scaled_dot_product_attention(*args), check_stride=True)


def backward_inputs(made):
    return made.backward.inputs[len(made.saved) :]


@pytest.mark.parametrize(("function", "args", "kwargs", "kernel"), CALLS, ids=NAMES)
def test_no_more_is_kept_than_by_eager_pytorch(function, args, kwargs, kernel):
    tensors = [a for a in args if isinstance(a, torch.Tensor)]
    with torch.no_grad():
        output, saved = executed(split(function, args, kwargs).forward).python_callable()(*tensors)
    owned = {t.untyped_storage().data_ptr() for t in (*tensors, *flat(output))}
    kept = [t for t in saved if isinstance(t, torch.Tensor) and t.untyped_storage().data_ptr() not in owned]

    assert sum(t.nbytes for t in kept) <= kept_by_eager(function, args, kwargs)


@pytest.mark.parametrize(("function", "args", "kwargs", "kernel"), CALLS, ids=NAMES)
def test_metadata_of_kernels_are_those_that_pytorch_tells(function, args, kwargs, kernel):
    made = split(function, args, kwargs)
    for bound in (*made.forward.bound_symbols, *made.backward.bound_symbols):
        if bound.symbol.executor is not executor or not bound.symbol.path.startswith("torch."):
            continue
        told = metadata_of(bound.symbol.implementation, bound.args, bound.kwargs)
        for ours, theirs in zip(flat(bound.output), flat(told), strict=True):
            if isinstance(ours, TensorProxy) and isinstance(theirs, TensorProxy):
                assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype), bound.symbol.path


def flat(output):
    return list(output) if isinstance(output, (tuple, list)) else [output]


def last(value):
    return value[-1] if isinstance(value, tuple) else value


def _double(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


SECOND = [
    (F.gelu, (_double(3, 4),), {}),
    (F.silu, (_double(3, 4),), {}),
    (F.mish, (_double(3, 4),), {}),
    (torch.tanh, (_double(3, 4),), {}),
    (F.softmax, (_double(3, 4),), {"dim": 1}),
    (F.layer_norm, (_double(3, 4), (4,), _double(4), _double(4)), {}),
    (F.group_norm, (_double(3, 4, 5), 2, _double(4)), {}),
    (F.rms_norm, (_double(3, 4), (4,), _double(4)), {}),
    (F.batch_norm, (_double(3, 4), None, None, _double(4), _double(4), True), {}),
    (F.cross_entropy, (_double(3, 4), torch.tensor([0, 3, 1])), {}),
    (F.cross_entropy, (_double(256, 256), torch.randint(256, (256,))), {}),
    (
        F.scaled_dot_product_attention,
        (_double(1, 2, 4, 8), _double(1, 2, 4, 8), _double(1, 2, 4, 8)),
        {"is_causal": True},
    ),
]


@pytest.mark.parametrize(("function", "args", "kwargs"), SECOND, ids=[c[0].__name__ for c in SECOND])
def test_second_derivatives_go_through_the_kernels(function, args, kwargs):
    """Differentiate the joint program, kernels and all, once more: the gradient of a sum of squares of gradients."""
    made = split(function, args, kwargs)
    outputs, gradients = made.joint.output
    asked = [g for g in gradients if g is not None]
    joint = made.joint.replace(output=(outputs, tuple(asked)))
    tensors = [a for a in args if isinstance(a, torch.Tensor)]
    names = [p.name for p, t in zip(joint.inputs, tensors, strict=False) if t.requires_grad]
    again = forward_and_backward(joint, wanted=names)
    y = last(function(*args, **kwargs))
    dy = torch.randn_like(y)
    wanted = [t for t in tensors if t.requires_grad]
    directions = [torch.randn_like(t) for t in wanted]
    math = torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH)
    with math:
        first = torch.autograd.grad(last(function(*args, **kwargs)), wanted, dy, create_graph=True)
        useful = [(g, d) for g, d in zip(first, directions, strict=True) if g.requires_grad]
        grads, seeds = zip(*useful, strict=True)
        expected = torch.autograd.grad(grads, wanted, seeds, allow_unused=True, materialize_grads=True)
    with torch.no_grad():
        (_, found), saved = executed(again.forward).python_callable()(*tensors, dy)
        torch.testing.assert_close(list(found), [g.detach() for g in first])
        cotangents = [torch.zeros_like(y), *directions][-len(again.backward.inputs) + len(again.saved) :]
        got = executed(again.backward).python_callable()(*saved, *cotangents)
    got = [g if g is not None else torch.zeros_like(t) for g, t in zip(got, [*tensors, dy], strict=True)]
    got = [g for g, t in zip(got, tensors, strict=False) if t.requires_grad]

    torch.testing.assert_close(got, list(expected))


def test_a_call_that_no_kernel_is_for_uses_its_decomposition():
    made = split(F.cross_entropy, (leaf(4, 8), torch.tensor([1, 2, 7, 0])), {"label_smoothing": 0.1})
    assert not any("nll_loss_backward" in path for path in paths(made.backward))


def _lstm(x, h, c, *weights):
    return torch.lstm(x, (h, c), list(weights), True, 1, 0.0, True, False, True)[0]


RECORDED = [
    (F.cosine_similarity, (leaf(3, 4), leaf(3, 4)), {}),
    (F.adaptive_max_pool2d, (leaf(1, 2, 5, 5), 2), {}),
    (F.pdist, (leaf(4, 3),), {}),
    (F.fold, (leaf(1, 8, 4),), {"output_size": (3, 3), "kernel_size": (2, 2)}),
    (F.grid_sample, (leaf(1, 2, 4, 4), leaf(1, 3, 3, 2)), {"align_corners": False}),
    (F.alpha_dropout, (leaf(5, 6), 0.4, True), {}),
    (_lstm, (leaf(2, 3, 4), leaf(1, 2, 5), leaf(1, 2, 5), leaf(20, 4), leaf(20, 5), leaf(20), leaf(20)), {}),
]


@pytest.mark.parametrize(("function", "args", "kwargs"), RECORDED, ids=[c[0].__name__ for c in RECORDED])
def test_what_only_pytorch_knows_is_differentiated_by_its_own_graph(function, args, kwargs):
    made = split(function, args, kwargs)
    forward, backward = (executed(t).python_callable() for t in (made.forward, made.backward))
    tensors = [a for a in args if isinstance(a, torch.Tensor)]
    torch.manual_seed(0)
    with torch.no_grad():
        output, saved = forward(*tensors)
    torch.manual_seed(0)
    expected = function(*args, **kwargs)
    dy = torch.randn_like(expected)
    with torch.no_grad():
        gradients = [g for g in backward(*saved, dy) if g is not None]
        again = [g for g in backward(*saved, dy) if g is not None]

    torch.testing.assert_close(output, expected.detach())
    torch.testing.assert_close(gradients, list(torch.autograd.grad(expected, tensors, dy)))
    torch.testing.assert_close(again, gradients)
    assert "thunder_executors_torch.recorded.pull" in paths(made.backward)


def test_a_disabled_flash_kernel_is_not_used():
    q = leaf(2, 4, 8, 16)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        made = split(F.scaled_dot_product_attention, (q, leaf(2, 4, 8, 16), leaf(2, 4, 8, 16)), {})
    assert not any("flash" in path for path in paths(made.forward))


def test_the_gradients_of_a_convolution_come_from_one_call():
    made = split(F.conv2d, (leaf(2, 3, 8, 8), leaf(4, 3, 3, 3), leaf(4)), {})
    backward = executed(made.backward)

    assert len([path for path in paths(made.backward) if "convolution" in path]) == 0
    assert len([path for path in paths(backward) if "convolution_backward" in path]) == 1


def test_the_gradient_that_nobody_wants_is_not_computed():
    made = split(F.conv2d, (torch.randn(2, 3, 8, 8), leaf(4, 3, 3, 3)), {})
    (call,) = [b for b in executed(made.backward).bound_symbols if "convolution" in b.symbol.path]

    assert call.args[-1] == (False, True, False)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(("rows", "width", "padding"), [(300, 256, 5), (70000, 1, -1), (3, 30000, 0)])
def test_gradients_of_large_embeddings_have_the_bits_of_pytorchs_kernel(dtype, rows, width, padding):
    dy = torch.randn(3, 200, width).to(dtype)
    dy[0, 0, 0], dy[1, 1, 0] = torch.inf, torch.nan
    indices = torch.randint(rows, (3, 200))
    indices[0, 0] = max(padding, 0)

    for values in (dy, dy.transpose(0, 1).contiguous().transpose(0, 1), dy[:1, :1].expand(3, 200, width)):
        got = rows_added(values, indices, rows, padding)
        expected = torch.ops.aten.embedding_dense_backward(values, indices, rows, padding, False)
        assert torch.equal(got.nan_to_num(7.0), expected.nan_to_num(7.0)) and torch.equal(got.isnan(), expected.isnan())
