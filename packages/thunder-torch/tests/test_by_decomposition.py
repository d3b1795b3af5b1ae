"""What decompositions tell of results is what PyTorch tells: sizes, dtypes, strides, and whether autograd follows."""

import warnings
from functools import partial
from itertools import islice

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

from thunder_ir import OpTags, Tensor, TensorProxy, record
from thunder_torch import find_symbol, metadata, proxy_of, torch_language
from thunder_torch.by_decomposition import layout_of
from thunder_torch.metadata import spec_of
from thunder_torch.specs import TensorSpec, map_tensors, tensors_of
from thunder_torch.traits import Trait, has_trait


def _is_told(symbol):
    return layout_of(symbol.origin, symbol.tags) is not None and OpTags.RANDOM not in symbol.tags


TOLD = [
    op
    for op in op_db
    if any(d in op.dtypes for d in (torch.float32, torch.int64, torch.bool))
    and (symbol := find_symbol(op.op)) is not None
    and (_is_told(symbol) or has_trait(symbol, Trait.LAYS_OUT) or "attention" in op.name)
]
DTYPES = (torch.float32, torch.int64, torch.bool)


def _reordered(x):
    return x.transpose(0, -1).contiguous().transpose(0, -1) if x.ndim else x


def _channels_last(x):
    if x.ndim == 4:
        return x.contiguous(memory_format=torch.channels_last)
    return x.transpose(-1, -2).contiguous().transpose(-1, -2) if x.ndim > 1 else x


def _each_second(x):
    return x.repeat_interleave(2, x.ndim - 1)[..., ::2] if x.ndim else x


def _repeated(x):
    return x[:1].expand(x.shape) if x.ndim and x.shape[0] else x


class _Alternately:
    """Reorders each second tensor that it is given."""

    def __init__(self):
        self.given = 0

    def __call__(self, x):
        self.given += 1
        return _reordered(x) if self.given % 2 else x


LAYOUTS = {
    "in rows": lambda: lambda x: x,
    "reordered": lambda: _reordered,
    "channels last": lambda: _channels_last,
    "with gaps": lambda: _each_second,
    "repeated": lambda: _repeated,
    "mixed": _Alternately,
}


def described(tree):
    """Return what is to be the same of the results of an operation: proxies, or their specifications."""
    if isinstance(tree, (TensorProxy, TensorSpec)):
        return tuple(tree.shape), tree.dtype, tree.device, tree.requires_grad, tree.strides
    return [described(item) for item in tree] if isinstance(tree, (tuple, list)) else tree


def _told(symbol, args, kwargs, *_tensors):
    metadata._MEMO.clear()  # else PyTorch's own answer is what is told
    return symbol.meta(*args, **kwargs)


def _samples(op):
    for dtype in (d for d in DTYPES if d in op.dtypes):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield from islice(op.sample_inputs("cpu", dtype, requires_grad=dtype is torch.float32), 4)


@pytest.mark.parametrize("op", TOLD, ids=lambda op: f"{op.name}.{op.variant_test_name}".rstrip("."))
def test_decompositions_tell_what_pytorch_tells(op):
    symbol, compared = find_symbol(op.op), 0
    for sample in _samples(op):
        for layout in LAYOUTS.values():
            lay = layout()
            given, named = map_tensors(lay, (sample.input, *sample.args)), map_tensors(lay, sample.kwargs)
            args, kwargs = map_tensors(proxy_of, given), map_tensors(proxy_of, named)
            try:
                asked = described(spec_of(op.op, args, kwargs))
                expected = described(map_tensors(proxy_of, op.op(*given, **named)))
            except Exception:  # noqa: S112  (what PyTorch refuses has no metadata to compare)
                continue
            told = record(partial(_told, symbol, args, kwargs), tensors_of(args, kwargs), language=torch_language)
            found = described(told.output)
            assert found in (asked, expected), (expected, [(t.shape, t.strides) for t in tensors_of(args, kwargs)])
            compared += 1
    assert compared


@pytest.mark.parametrize(
    "op", [op for op in TOLD if op.error_inputs_func is not None], ids=lambda op: f"{op.name}.{op.variant_test_name}"
)
def test_decompositions_refuse_what_pytorch_refuses(op):
    symbol = find_symbol(op.op)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        samples = [error.sample_input for error in op.error_inputs("cpu")]
    for sample in samples:
        if isinstance(sample.input, torch.Tensor) and sample.input.ndim > 64:
            continue  # kernels refuse so many dimensions when they run
        try:
            args = map_tensors(proxy_of, (sample.input, *sample.args))
            kwargs = map_tensors(proxy_of, sample.kwargs)
            metadata._MEMO.clear()
            spec_of(symbol.origin, args, kwargs)
        except Exception:
            with pytest.raises(Exception):  # noqa: B017, PT011  (whatever it is that PyTorch raises)
                record(partial(_told, symbol, args, kwargs), tensors_of(args, kwargs), language=torch_language)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("oi,bihw->bohw", [(3, 3), (2, 3, 4, 5)]), ("bihw,oi->bohw", [(2, 3, 4, 5), (3, 3)]),
        ("ijk,kl->ilj", [(2, 3, 4), (4, 5)]), ("bhid,bhjd->bihj", [(2, 3, 4, 5), (2, 3, 6, 5)]),
        ("ij,jk->ik", [(2, 3), (3, 4)]),
    ],
)  # fmt: skip
def test_products_that_are_permuted_lie_as_pytorchs(equation, shapes):
    operands = [torch.randn(shape) for shape in shapes]
    proxies = [proxy_of(t, f"a{i}") for i, t in enumerate(operands)]

    made = record(lambda *given: find_symbol(torch.einsum)(equation, *given), proxies, language=torch_language)

    assert made.output.strides == torch.einsum(equation, *operands).stride()


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
