"""The kernels against PyTorch, values and gradients."""

import pytest
import torch
from torch.testing import assert_close

from thunder_executors_triton import KernelError, functions

DTYPES = [torch.float32, torch.float16, torch.bfloat16]


def leaf(*shape, dtype=torch.float32, device="cpu", stride=1):
    wide = torch.randn(*shape[:-1], shape[-1] * stride, device=device)
    return wide.to(dtype)[..., ::stride].detach().requires_grad_()


def twin(tensor):
    return tensor.detach().double().requires_grad_() if tensor is not None else None


def agree(mine, truth, dtype):
    assert mine.shape == truth.shape
    tolerance = {torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}[dtype]
    assert_close(mine.double(), truth.double(), rtol=tolerance, atol=tolerance)


def compare(mine, truth, inputs, dtype):
    """Compare two functions of ``inputs``, and their gradients for a random cotangent."""
    others = [twin(t) for t in inputs]
    y, expected = mine(*inputs), truth(*others)
    agree(y.detach(), expected.detach(), dtype)
    dy = torch.randn_like(y)
    given = [t for t in inputs if t is not None]
    kept = [t for t in others if t is not None]
    for found, wanted in zip(
        torch.autograd.grad(y, given, dy), torch.autograd.grad(expected, kept, dy.double()), strict=True
    ):
        agree(found, wanted, dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(5, 7), (3, 1), (2, 3, 300), (1, 1000)], ids=str)
@pytest.mark.parametrize("affine", [True, False])
def test_layer_norm_is_pytorchs(shape, dtype, affine, device):
    x = leaf(*shape, dtype=dtype, device=device)
    weight, bias = (leaf(shape[-1], dtype=dtype, device=device) if affine else None for _ in range(2))
    compare(
        lambda x, w, b: functions.layer_norm(x, shape[-1:], w, b),
        lambda x, w, b: torch.nn.functional.layer_norm(x, shape[-1:], w, b),
        (x, weight, bias),
        dtype,
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(5, 7), (2, 3, 300)], ids=str)
def test_rms_norm_is_pytorchs(shape, dtype, device):
    x, weight = leaf(*shape, dtype=dtype, device=device), leaf(shape[-1], dtype=dtype, device=device)
    compare(
        lambda x, w: functions.rms_norm(x, shape[-1:], w, 1e-5),
        lambda x, w: torch.nn.functional.rms_norm(x, shape[-1:], w, 1e-5),
        (x, weight),
        dtype,
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(1,), (5, 7), (2, 3, 257)], ids=str)
def test_softmax_is_pytorchs(shape, dtype, device):
    compare(functions.softmax, lambda x: torch.softmax(x, -1), (leaf(*shape, dtype=dtype, device=device),), dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(1,), (3, 1025)], ids=str)
def test_swiglu_is_silu_times_the_other(shape, dtype, device):
    gate, up = (leaf(*shape, dtype=dtype, device=device) for _ in range(2))
    compare(functions.swiglu, lambda g, u: torch.nn.functional.silu(g) * u, (gate, up), dtype)


def rotated(x, cosine, sine):
    low, high = x.chunk(2, -1)
    return x * cosine.double()[:, None] + torch.cat((-high, low), -1) * sine.double()[:, None]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("tables", [1, 2])
def test_rotary_embedding_rotates_halves(tables, dtype, device):
    x = leaf(2, 5, 3, 12, dtype=dtype, device=device)
    cosine, sine = (torch.randn(tables, 5, 12, device=device, dtype=dtype) for _ in range(2))
    compare(
        lambda x: functions.rotary(x.transpose(1, 2), cosine, sine),
        lambda x: rotated(x.transpose(1, 2), cosine, sine),
        (x,),
        dtype,
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("classes", [3, 8200])
def test_cross_entropy_is_pytorchs(classes, smoothing, reduction, dtype, device):
    target = torch.randint(classes, (4,), device=device)
    target[1] = -100
    compare(
        lambda x: functions.cross_entropy(x, target, -100, smoothing, reduction),
        lambda x: torch.nn.functional.cross_entropy(x, target, label_smoothing=smoothing, reduction=reduction),
        (leaf(4, classes, dtype=dtype, device=device),),
        dtype,
    )


def test_cross_entropy_takes_infinite_logits(device):
    x = torch.randn(2, 5, device=device)
    x[0, 1] = -float("inf")
    target = torch.tensor([0, 2], device=device)
    assert_close(functions.cross_entropy(x, target), torch.nn.functional.cross_entropy(x, target))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_linear_cross_entropy_is_pytorchs(bias, reduction, device):
    x, weight = leaf(9, 6, device=device), leaf(17, 6, device=device)
    offset = leaf(17, device=device) if bias else None
    target = torch.randint(17, (9,), device=device)
    target[4] = -100
    compare(
        lambda x, w, b: functions.linear_cross_entropy(x, w, target, b, reduction=reduction),
        lambda x, w, b: torch.nn.functional.cross_entropy(
            torch.nn.functional.linear(x, w, b), target, reduction=reduction
        ),
        (x, weight, offset),
        torch.float32,
    )
    with torch.no_grad():
        assert_close(
            functions.linear_cross_entropy(x, weight, target, offset, reduction=reduction),
            torch.nn.functional.cross_entropy(
                torch.nn.functional.linear(x, weight, offset), target, reduction=reduction
            ),
        )


def test_memory_for_logits_does_not_grow_with_the_vocabulary():
    from thunder_executors_triton.kernels.linear_cross_entropy import rows_of_chunk

    for classes in (1_000, 32_000, 128_000, 256_000):
        assert rows_of_chunk(4096, 2048, classes) * classes <= 4096 * 2048
    assert rows_of_chunk(2, 8, 1_000_000) == 1


@pytest.mark.parametrize("centred", [True, False])
def test_without_dropout_it_is_the_norm_of_a_sum(centred, device):
    x, residual = leaf(4, 3, 20, device=device), leaf(4, 3, 20, device=device)
    weight, bias = leaf(20, device=device), leaf(20, device=device) if centred else None

    def truth(x, residual, w, b):
        if centred:
            return torch.nn.functional.layer_norm(x + residual, (20,), w, b)
        return torch.nn.functional.rms_norm(x + residual, (20,), w, 1e-5)

    compare(
        lambda x, r, w, b: functions.dropout_add_norm(x, r, w, b, centred=centred)[0],
        truth,
        (x, residual, weight, bias),
        torch.float32,
    )


def test_dropout_drops_its_share_and_the_gradient_uses_the_same_mask(device):
    x, residual = leaf(40, 50, device=device), torch.zeros(40, 50, device=device)
    weight = torch.ones(50, device=device)
    _, total = functions.dropout_add_norm(x, residual, weight, p=0.25, seed=7)
    kept = total.detach() != 0
    assert 0.2 < 1 - kept.double().mean() < 0.3
    assert_close(total.detach()[kept], x.detach()[kept] / 0.75)
    (dx,) = torch.autograd.grad(total, x, torch.ones_like(total))
    assert torch.equal(dx != 0, kept)
    assert torch.equal(functions.dropout_add_norm(x, residual, weight, p=0.25, seed=7)[1], total)
    assert not torch.equal(functions.dropout_add_norm(x, residual, weight, p=0.25, seed=8)[1], total)


def test_adamw_makes_the_steps_of_pytorch(device):
    shapes = [(3, 4), (0,), (1,), (1500,), (2, 2, 2)]
    mine = [torch.randn(s, device=device) for s in shapes]
    truth = [p.clone().requires_grad_() for p in mine]
    averages, squares = ([torch.zeros_like(p) for p in mine] for _ in range(2))
    optimizer = torch.optim.AdamW(truth, lr=1e-2, weight_decay=0.1)
    for step in range(1, 4):
        gradients = [torch.randn_like(p) for p in mine]
        for p, g in zip(truth, gradients, strict=True):
            p.grad = g.clone()
        optimizer.step()
        functions.adamw_step(mine, gradients, averages, squares, step, 1e-2, decay=0.1)
    assert_close(mine, [p.detach() for p in truth], rtol=1e-5, atol=1e-6)


def test_empty_tensors_are_answered_without_a_launch(device):
    assert functions.softmax(torch.empty(0, 5, device=device)).shape == (0, 5)
    assert functions.layer_norm(torch.empty(0, 5, device=device), (5,)).shape == (0, 5)
    assert functions.swiglu(torch.empty(0, device=device), torch.empty(0, device=device)).shape == (0,)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: functions.layer_norm(torch.ones(2, 3), (4,)), r"a norm over \(4,\) needs a tensor that ends in it"),
        (lambda: functions.swiglu(torch.ones(2), torch.ones(3)), "one shape and dtype"),
        (lambda: functions.cross_entropy(torch.ones(2, 3), torch.ones(3).long()), "needs logits"),
        (lambda: functions.rotary(torch.ones(1, 1, 2, 3), torch.ones(1, 2, 3), torch.ones(1, 2, 3)), "even width"),
        (lambda: functions.dropout_add_norm(torch.ones(2), torch.ones(2), torch.ones(2), p=1.0), "probability"),
        (lambda: functions.adamw_step([torch.ones(2)], [], [], [], 1), "as many gradients"),
        (lambda: functions.softmax(torch.ones(1, 70_000)), "at most 16384"),
    ],
)
def test_what_does_not_fit_is_refused(call, words):
    with pytest.raises(KernelError, match=words):
        call()
