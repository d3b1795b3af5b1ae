"""What decompositions tell of results is what PyTorch tells: sizes, dtypes, strides, and whether autograd follows."""

import warnings
from functools import partial
from itertools import islice

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

from thunder_ir import OpTags, Tensor, TensorProxy, record
from thunder_torch import find_symbol, metadata, proxy_of, torch_language
from thunder_torch.by_decomposition import KINDS
from thunder_torch.metadata import TensorSpec, map_tensors, spec_of, tensors_of

TOLD = [
    op
    for op in op_db
    if any(d in op.dtypes for d in (torch.float32, torch.int64, torch.bool))
    and (symbol := find_symbol(op.op)) is not None
    and not KINDS.isdisjoint(symbol.tags)
    and OpTags.RANDOM not in symbol.tags
]
DTYPES = (torch.float32, torch.int64, torch.bool)


def described(tree):
    """Return what is to be the same of the results of an operation: proxies, or their specifications."""
    if isinstance(tree, (TensorProxy, TensorSpec)):
        return tuple(tree.shape), tree.dtype, tree.device, tree.requires_grad, tree.strides
    return [described(item) for item in tree] if isinstance(tree, (tuple, list)) else tree


def _told(symbol, args, kwargs, *_tensors):
    metadata._MEMO.clear()  # else PyTorch's own answer is what is told
    return symbol.meta(*args, **kwargs)


@pytest.mark.parametrize("op", TOLD, ids=lambda op: f"{op.name}.{op.variant_test_name}".rstrip("."))
def test_decompositions_tell_what_pytorch_tells(op):
    symbol, compared = find_symbol(op.op), 0
    for dtype in (d for d in DTYPES if d in op.dtypes):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            samples = list(islice(op.sample_inputs("cpu", dtype, requires_grad=dtype is torch.float32), 3))
        for sample in samples:
            args, kwargs = map_tensors(proxy_of, (sample.input, *sample.args)), map_tensors(proxy_of, sample.kwargs)
            try:
                expected = spec_of(op.op, args, kwargs)
            except Exception:  # noqa: S112  (what PyTorch refuses has no metadata to compare)
                continue
            told = partial(_told, symbol, args, kwargs)
            assert described(record(told, tensors_of(args, kwargs), language=torch_language).output) == described(
                expected
            )
            compared += 1
    assert compared


def test_tensors_with_gaps_are_pytorchs_to_lay_out():
    x = proxy_of(torch.ones(2, 3, 4, 4).contiguous(memory_format=torch.channels_last), "x")
    weight = proxy_of(torch.ones(5, 3, 1, 1), "weight")
    trace = record(lambda x, w: find_symbol(torch.conv2d)(x, w), [x, weight], language=torch_language)
    assert trace.output.strides == (80, 1, 20, 5)


@pytest.mark.parametrize("fn", [torch.tanh, torch.add, torch.sum, torch.matmul], ids=lambda f: f.__name__)
def test_pytorch_is_not_asked_where_the_decomposition_tells(fn, monkeypatch):
    monkeypatch.setattr(metadata, "_faked", None)
    tensors = [Tensor((7, 7)), Tensor((7, 7))][: 1 if fn in (torch.tanh, torch.sum) else 2]
    trace = record(lambda *args: find_symbol(fn)(*args), tensors, language=torch_language)
    assert trace.output.shape == (() if fn is torch.sum else (7, 7))
