"""Fake tensors that lie in memory as the results of PyTorch's kernels do."""

import pytest
import torch
import torch.nn.functional as F

from thunder_torch.fake_modes import IN_FORMAT, QuickMode, fake_outputs

LAYOUTS = {
    "in order": torch.randn(2, 4, 6, 5),
    "channels last": torch.randn(2, 4, 6, 5).to(memory_format=torch.channels_last),
    "turned": torch.randn(2, 5, 6, 4).transpose(1, 3),
    "of three dimensions": torch.randn(2, 6, 4).transpose(1, 2),
}
CALLS = {
    "in training": lambda x: F.batch_norm(x, None, None, training=True),
    "with statistics": lambda x: F.batch_norm(x, torch.zeros(4), torch.ones(4)),
    "updating": lambda x: F.batch_norm(x, torch.zeros(4), torch.ones(4), torch.ones(4), torch.ones(4), training=True),
    "shuffled": lambda x: F.channel_shuffle(x, 2),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_results_have_the_strides_of_the_kernels(call, layout):
    x, function = LAYOUTS[layout], CALLS[call]
    (found,) = fake_outputs(lambda x: (function(x),), [x])
    expected = function(x)
    assert (found.shape, found.stride(), found.dtype) == (expected.shape, expected.stride(), expected.dtype)


def test_the_other_results_are_those_of_pytorchs_mode():
    x = torch.randn(2, 6, 4).transpose(1, 2)
    given = (x, None, None, torch.zeros(4), torch.ones(4), True, 0.1, 1e-5)
    found = fake_outputs(lambda *given: torch.native_batch_norm(*given), given)
    assert [t.shape for t in found] == [t.shape for t in torch.native_batch_norm(*given)]


@pytest.mark.parametrize("operator", IN_FORMAT, ids=str)
def test_an_operator_is_named_only_while_pytorch_itself_lays_it_out_otherwise(operator):
    """Fails where PyTorch has mended its fake tensors: take the operator out when no supported version needs it."""
    call = CALLS["in training" if "batch_norm" in str(operator) else "shuffled"]
    layouts = LAYOUTS.values()
    with torch._subclasses.FakeTensorMode() as mode:
        plain = [call(mode.from_tensor(x)).stride() for x in layouts]
    with QuickMode() as mode:
        mended = [call(mode.from_tensor(x)).stride() for x in layouts]
    assert plain != mended
