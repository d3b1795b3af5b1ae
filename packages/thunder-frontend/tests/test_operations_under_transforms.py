"""Operations under transforms inside of programs; ``tools/functions_sweep.py`` compares many more."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch.func import grad, jvp, vmap
from torch.testing import assert_close

from thunder_frontend import jit

OPERATIONS = {
    "matmul": lambda t: (t @ t.mT, t[0] @ t[1], torch.einsum("ij,kj->ik", t, t)),
    "reductions": lambda t: (t.var(0), t.norm(), t.logsumexp(1), t.amax(1), t.prod(), t.cumsum(0)),
    "shapes": lambda t: (t.flip(0), t.roll(1, 1), F.pad(t, (1, 2)), t.unfold(1, 2, 1), t[0].unfold(0, 2, 2)),
    "joins": lambda t: (torch.cat([t, t]), torch.stack([t, t], -1), torch.tril(t), torch.outer(t[0], t[1])),
    "splits": lambda t: (*t.split([1, 1]), *t.unbind(1), *t.chunk(2, 1)),
    "sorting": lambda t: (t.sort(1).values, t.topk(2).values, t.kthvalue(2).values, t.median(1).values),
    "indexing": lambda t: (t[:, [2, 0]], t.gather(1, torch.tensor([[0, 2], [1, 1]])), t.index_select(1, torch.arange(2))),
    "scattering": lambda t: t.scatter_add(1, torch.tensor([[0, 0], [1, 2]]), t[:, :2]),
    "choices": lambda t: (torch.where(t > 0, t, t * 2), t.clamp(-0.5, 0.5), t.masked_fill(t > 0, 1.0), t.maximum(t.flip(0))),
    "activations": lambda t: (F.gelu(t), F.silu(t), F.softmax(t, 1), F.log_softmax(t, 0), F.softplus(t)),
    "norms": lambda t: (F.layer_norm(t, (3,)), F.normalize(t, dim=1), F.rms_norm(t, (3,))),
    "losses": lambda t: (F.cross_entropy(t, torch.tensor([0, 2])), F.mse_loss(t, t.flip(0)), F.l1_loss(t, t.flip(1))),
    "convolutions": lambda t: F.conv1d(t[None], torch.ones(2, 2, 2) / 3),
    "pooling": lambda t: (F.max_pool1d(t[None], 2), F.avg_pool1d(t[None], 2), F.adaptive_avg_pool1d(t[None], 2)),
    "solving": lambda t: (torch.linalg.inv(t[:, :2] + 3 * torch.eye(2)), torch.linalg.qr(t)[1].abs()),
    "transforms": lambda t: (torch.fft.rfft(t).abs(), torch.fft.irfft(torch.fft.rfft(t), n=3)),
    "without dimensions": lambda t: t[0, 0].unfold(0, 1, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_are_batched_and_differentiated(name):
    operation = OPERATIONS[name]

    def results(t):
        found = operation(t)
        return found if isinstance(found, tuple) else (found,)

    def total(t):
        return sum([(r * r.detach().cos()).sum() for r in results(t)])

    def program(batch):
        pushed = jvp(grad(total), (batch[0],), (batch[1],))
        return vmap(results)(batch), vmap(grad(total))(batch), jvp(results, (batch[0],), (batch[1],)), pushed

    torch.manual_seed(0)
    batch = torch.randn(4, 2, 3)
    assert_close(jit(program)(batch), program(batch), rtol=1e-4, atol=1e-5)


REFUSED = {
    "fractions as places": (lambda x, i: x.gather(0, i), (4, 5), torch.rand(3, 2, 5)),
    "short integers as places": (lambda x, i: x.gather(0, i), (4, 5), torch.ones(3, 2, 5, dtype=torch.int16)),
    "fractions as places that are added to": (lambda x, i: x.scatter_add(0, i, x), (4, 5), torch.rand(3, 4, 5)),
    "fractions as rows": (lambda x, i: F.embedding(i, x), (4, 5), torch.rand(3, 2)),
    "short integers as rows": (lambda x, i: F.embedding(i, x), (4, 5), torch.ones(3, 2, dtype=torch.int16)),
    "fractions as classes": (F.nll_loss, (4, 5), torch.rand(3, 4)),
    "places before the first": (lambda x, i: x[i], (4, 5), torch.full((3, 2), -5)),
    "rows before the first": (lambda x, i: x.index_select(0, i), (4, 5), torch.full((3, 2), -1)),
    "a norm over other sizes": (lambda x, w: F.layer_norm(x, (5,), w), (4, 6), torch.ones(3, 6)),
    "a norm with one scale for all": (lambda x, w: F.layer_norm(x, (5,), w), (4, 5), torch.ones(3, 1)),
    "integers that open": (lambda x, w: F.glu(w) + x, (4,), torch.ones(3, 8, dtype=torch.int64)),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize(
    "derive", [lambda operation: operation, lambda operation: grad(lambda *a: operation(*a).sum())]
)
def test_what_an_operation_does_not_take_is_refused_under_transforms(name, derive):
    operation, shape, other = REFUSED[name]

    def program(x, other):
        return vmap(derive(operation))(x, other)

    x = torch.randn(3, *shape)
    with pytest.raises((RuntimeError, IndexError)):
        program(x, other)
    with pytest.raises((RuntimeError, IndexError)):
        jit(program)(x, other)


@pytest.mark.parametrize(
    ("operation", "shape", "fitting", "other"),
    [
        (lambda x, w: F.layer_norm(x * 2, (8, 64), w).relu(), (256, 8, 64), torch.ones(8, 64), torch.ones(64)),
        (lambda x, w: F.rms_norm(x * 2, (8, 64), w).relu(), (256, 8, 64), torch.ones(8, 64), torch.ones(64)),
        (lambda x, w: F.group_norm(x * 2, 8, w).relu(), (256, 64, 4), torch.ones(64), torch.ones(64, 1)),
    ],
    ids=["layer_norm", "rms_norm", "group_norm"],
)
@pytest.mark.parametrize("requires_grad", [False, True])
def test_what_an_operation_does_not_take_is_refused_after_calls_with_what_it_takes(
    operation, shape, fitting, other, requires_grad
):
    compiled = jit(operation)
    for _ in range(3):
        x = torch.randn(shape, requires_grad=requires_grad)
        assert_close(compiled(x, fitting), operation(x, fitting))
    with pytest.raises(RuntimeError) as expected:
        operation(x, other)
    with pytest.raises(RuntimeError) as raised:
        compiled(x, other)
    assert str(raised.value) == str(expected.value)


@pytest.mark.parametrize("operation", [F.softmax, F.softmin, F.log_softmax, torch.softmax, torch.log_softmax])
@pytest.mark.parametrize("requires_grad", [False, True])
def test_softmaxes_name_the_dimension_that_is_not_there(operation, requires_grad):
    compiled = jit(lambda x: operation(x * 2, 1))
    x = torch.randn(8, 8, requires_grad=requires_grad)
    assert_close(compiled(x), operation(x * 2, 1))
    with pytest.raises(IndexError, match="Dimension out of range .*but got 1"):
        compiled(x[0])


def test_attention_takes_no_masks_of_other_dtypes():
    def operation(x, mask):
        return F.scaled_dot_product_attention(x * 2, x, x, attn_mask=mask)

    compiled = jit(operation)
    for length in (64, 48, 32):
        x, mask = torch.randn(2, 2, length, 32, requires_grad=True), torch.zeros(length, length)
        assert_close(compiled(x, mask), operation(x, mask))
    with pytest.raises(RuntimeError) as expected:
        operation(x, mask.long())
    with pytest.raises(RuntimeError) as raised:
        compiled(x, mask.long())
    assert str(raised.value) == str(expected.value)
