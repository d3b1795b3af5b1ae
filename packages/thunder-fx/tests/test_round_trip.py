"""A call of PyTorch as a trace, as a graph, as a trace and as a graph again computes the same."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

import thunder_torch as ltorch
from thunder_executors import to_callable
from thunder_fx import from_fx, to_fx
from thunder_ir import record, tree_map

torch.manual_seed(0)
IMAGE = torch.randn(2, 4, 6, 6)
ROWS = torch.randn(3, 5)
QUERY = torch.randn(2, 2, 4, 8)

CALLS = {
    "conv2d": lambda: (F.conv2d, (IMAGE, torch.randn(6, 2, 3, 3)), {"padding": 1, "groups": 2}),
    "max_pool2d": lambda: (F.max_pool2d, (IMAGE, 2), {"return_indices": True}),
    "layer_norm": lambda: (F.layer_norm, (ROWS, (5,), torch.randn(5)), {}),
    "batch_norm": lambda: (F.batch_norm, (IMAGE, torch.zeros(4), torch.ones(4)), {}),
    "attention": lambda: (F.scaled_dot_product_attention, (QUERY, QUERY, QUERY), {"is_causal": True}),
    "cross_entropy": lambda: (F.cross_entropy, (ROWS, torch.tensor([1, 0, 4])), {"label_smoothing": 0.1}),
    "index": lambda: (torch.Tensor.__getitem__, (ROWS, (torch.tensor([0, 2]), None, slice(1, None, 2))), {}),
    "index_put": lambda: (torch.index_put, (ROWS, (torch.tensor([0, 2]),), torch.ones(2, 5)), {"accumulate": True}),
    "isclose": lambda: (torch.isclose, (ROWS, ROWS + 1e-9), {}),
    "split": lambda: (torch.split, (ROWS, (2, 3), 1), {}),
    "topk": lambda: (torch.topk, (ROWS, 2), {}),
    "einsum": lambda: (torch.einsum, ("ij,kj->ik", ROWS, ROWS), {}),
    "solve": lambda: (torch.linalg.solve, (ROWS @ ROWS.T, ROWS), {}),
    "fft": lambda: (torch.fft.rfft, (ROWS,), {"norm": "ortho"}),
    "arange": lambda: (torch.arange, (0, 10, 3), {"dtype": torch.float64}),
    "to": lambda: (torch.Tensor.to, (ROWS, torch.bfloat16), {}),
    "nonzero": lambda: (torch.nonzero, (ROWS > 0,), {}),
}


@pytest.mark.parametrize("name", CALLS)
def test_there_and_back_and_again(name):
    function, args, kwargs = CALLS[name]()
    expected = function(*args, **kwargs)
    tensors, proxies = [], []

    def stand_in(value):
        if not isinstance(value, torch.Tensor):
            return value
        tensors.append(value)
        proxies.append(ltorch.proxy_of(value, f"a{len(proxies)}"))
        return proxies[-1]

    args, kwargs = tree_map(stand_in, args), tree_map(stand_in, kwargs)
    trace = record(lambda *_: ltorch.call(function, args, kwargs), proxies, language=ltorch.torch_language)
    module = to_fx(trace)
    torch.testing.assert_close(module(*tensors), expected, rtol=1e-5, atol=1e-5)
    again = from_fx(module)
    torch.testing.assert_close(to_callable(again, ["torch"])(*tensors), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(to_fx(again)(*tensors), expected, rtol=1e-5, atol=1e-5)
