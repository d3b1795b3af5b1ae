"""Convolutions of single points, which PyTorch asks oneDNN for where they are dilated."""

import pytest
import torch
from torch.nn.functional import conv2d

from thunder_executors_onednn import executor, missing
from thunder_frontend import jit, last_backward_traces, last_traces

pytestmark = pytest.mark.skipif(missing() is not None, reason=f"oneDNN cannot be asked: {missing()}")
PLAIN = {"cache": "auto", "executors": ["onednn"]}


@pytest.fixture(autouse=True)
def one_thread():
    """PyTorch asks oneDNN for these anyway where there are several threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def both(function, *shapes, dilated=True, layout=torch.contiguous_format, **options):
    """Compare results and gradients of a compiled function with float64, and strides with eager's."""
    args = [torch.randn(*s) for s in shapes]
    args = [a.contiguous(memory_format=layout) if a.ndim == 4 else a for a in args]
    found = [a.clone().requires_grad_() for a in args]
    eager = [a.clone().requires_grad_() for a in args]
    exact = [a.double().requires_grad_() for a in args]
    compiled = jit(function, **(PLAIN | options))
    results = [compiled(*found), function(*eager), function(*exact)]
    for result in results:
        result.sin().sum().backward()
    torch.testing.assert_close(results[0], results[2].float(), rtol=1e-4, atol=1e-4)
    assert results[0].stride() == results[1].stride()
    for leaf, other, truth in zip(found, eager, exact, strict=True):
        torch.testing.assert_close(leaf.grad, truth.grad.float(), rtol=1e-3, atol=1e-3)
        assert leaf.grad.stride() == other.grad.stride()
    for traces in (last_traces(compiled), last_backward_traces(compiled)):
        assert ("(2, 2)" in str(traces[-1])) is dilated
    return compiled


@pytest.mark.parametrize("batch", [1, 3, 17])
def test_points_with_their_gradients(batch):
    both(lambda x, w, b: conv2d(x, w, b), (batch, 24, 9, 7), (40, 24, 1, 1), (40,))


def test_channels_last_is_pytorch_s():
    """Gradients of weights would have other strides in dimensions of one element."""
    shapes = (3, 24, 9, 7), (40, 24, 1, 1), (40,)
    both(lambda x, w, b: conv2d(x, w, b), *shapes, layout=torch.channels_last, dilated=False)


def test_without_a_bias_and_by_name():
    both(lambda x, w: conv2d(weight=w, input=x, padding="same"), (3, 24, 9, 7), (40, 24, 1, 1))


def test_padded():
    both(lambda x, w, b: conv2d(x, w, b, padding=2), (2, 24, 9, 7), (40, 24, 1, 1), (40,))


def test_without_a_batch():
    both(lambda x, w, b: conv2d(x, w, b), (24, 30, 40), (40, 24, 1, 1), (40,))


def test_by_its_general_function():
    def function(x, w, b):
        return torch.convolution(x, w, b, (1, 1), (0, 0), (1, 1), False, (0, 0), 1)

    both(function, (3, 24, 9, 7), (40, 24, 1, 1), (40,))


def test_a_module():
    layer = torch.nn.Conv2d(24, 40, 1)
    compiled, x = jit(layer, **PLAIN), torch.randn(3, 24, 9, 7)
    torch.testing.assert_close(compiled(x), layer(x))
    assert "(2, 2)" in str(last_traces(compiled)[-1])


OTHERS = {
    "larger kernels": (lambda x, w: conv2d(x, w), (40, 24, 3, 3)),
    "groups": (lambda x, w: conv2d(x, w, groups=2), (40, 12, 1, 1)),
    "one way": (lambda x, w: conv2d(x, w), (40, 24, 1, 3)),
    "transposed": (lambda x, w: torch.nn.functional.conv_transpose2d(x, w), (24, 40, 1, 1)),
}


@pytest.mark.parametrize("name", OTHERS)
def test_others_are_pytorch_s(name):
    function, weight = OTHERS[name]
    both(function, (3, 24, 9, 7), weight, dilated=False)


def test_by_default_small_ones_are_pytorch_s():
    careful = executor.unasked()
    both(lambda x, w: conv2d(x, w), (3, 24, 9, 7), (40, 24, 1, 1), dilated=False, executors=[careful])
    both(lambda x, w: conv2d(x, w), (3, 64, 32, 32), (64, 64, 1, 1), executors=[careful])
