"""The modules of torch.nn give what eager gives. tools/modules_sweep.py calls each in many more ways."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

import modules_sweep  # noqa: E402

from thunder import jit  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # PyTorch's own, eager and compiled alike
ALL = modules_sweep.module_db
PARTS = 8


@pytest.mark.parametrize("part", range(PARTS))
def test_a_module_is_eagers(part):
    for info in ALL[part::PARTS]:
        row = modules_sweep.row_of(info, first=1)
        assert not row.wrong, row
        assert row.right or row.eager_fails or not row.cases


def paddings():
    ends = torch.zeros(2, 5, dtype=torch.bool)
    ends[1, 3:] = True
    within = torch.zeros(2, 5, dtype=torch.bool)
    within[1, 1:3] = True
    return {"ends": ends, "as numbers": ends * -1e9, "none": torch.zeros_like(ends), "within": within}


@pytest.mark.parametrize("padding", paddings())
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("grad", [False, True])
def test_encoders_treat_padding_as_eager_does(padding, training, grad):
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    x, mask = torch.randn(2, 5, 8), paddings()[padding]
    for norm in (None, torch.nn.LayerNorm(8)):
        module = torch.nn.TransformerEncoder(layer, 2, norm=norm).train(training)
        with torch.set_grad_enabled(grad):
            torch.testing.assert_close(
                jit(module)(x, src_key_padding_mask=mask), module(x, src_key_padding_mask=mask), rtol=1e-5, atol=1e-5
            )


def test_masks_of_a_transformer_need_no_hint():
    model = torch.nn.Transformer(8, 2, 1, 1, 16, dropout=0.0, batch_first=True)
    x, mask = torch.randn(2, 5, 8), torch.nn.Transformer.generate_square_subsequent_mask(5)
    expected = model(x, x, src_mask=mask, tgt_mask=mask)
    torch.testing.assert_close(jit(model)(x, x, src_mask=mask, tgt_mask=mask), expected)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_ctc_loss_takes_targets_one_after_another_with_lengths_that_are_tensors(reduction):
    log_probs = torch.randn(50, 3, 20).log_softmax(2).requires_grad_()
    lengths = torch.full((3,), 50), torch.tensor([30, 25, 20])
    loss, targets = torch.nn.CTCLoss(reduction=reduction), torch.randint(1, 20, (75,))
    results = [call(log_probs, targets, *lengths) for call in (jit(loss), loss)]
    gradients = [torch.autograd.grad(r.sum(), log_probs)[0] for r in results]
    assert torch.equal(*results) and torch.equal(*gradients)


def test_an_encoder_whose_forward_is_replaced_runs_that(monkeypatch):
    encoder = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 1).eval()
    compiled, x = jit(encoder), torch.randn(2, 5, 8)
    torch.testing.assert_close(compiled(x), encoder(x))
    monkeypatch.setattr(torch.nn.TransformerEncoder, "forward", lambda self, src: src + 1)
    assert torch.equal(compiled(x), x + 1)


def test_packed_sequences_have_as_many_rows_as_their_lengths_say():
    def pack(x, lengths):
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return packed.data * 2, packed.batch_sizes, packed.sorted_indices

    compiled, x = jit(pack), torch.randn(3, 5, 4)
    for lengths in ([5, 3, 2], [1, 4, 4], [5, 5, 5]):
        torch.testing.assert_close(compiled(x, torch.tensor(lengths)), pack(x, torch.tensor(lengths)))
