"""A sample of PyTorch's own database of operations, whole and decomposed, against eager execution and autograd."""

import warnings
from itertools import islice

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

from thunder_autograd import grad_transform_on_trace
from thunder_executors import to_callable
from thunder_executors_torch import executor
from thunder_ir import dtypes, record
from thunder_ir.passes import expand
from thunder_torch import SYMBOLS, call, find_symbol, from_torch_dtype, proxy_of, torch_language
from thunder_torch.names import tensors_by_position
from thunder_torch.specs import map_tensors, tensors_of

# What is in unwritten memory is anything; running statistics are written to, which the tests of mutation are about.
SKIPPED = ("empty", "new_empty", "nn.functional.instance_norm", "nn.functional.batch_norm")
COMPOSED = [
    op
    for op in op_db
    if find_symbol(op.op) is not None and torch.float32 in op.dtypes and not op.name.startswith(SKIPPED)
]
SAMPLED = COMPOSED[::4]


def name_of(op):
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def traced(function, args, kwargs):
    tensors = []

    def stand_in(tensor):
        tensors.append(tensor)
        return proxy_of(tensor, f"a{len(tensors)}")

    args, kwargs = map_tensors(stand_in, args), map_tensors(stand_in, kwargs)
    proxies = tensors_of(args, kwargs)
    return record(lambda *_: call(function, args, kwargs), proxies, language=torch_language), tensors


def samples(op, dtype, count, requires_grad=False):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        for sample in islice(op.sample_inputs("cpu", dtype, requires_grad=requires_grad), count):
            if op.name != "repeat_interleave" or not tensors_of(sample.args, sample.kwargs):  # else shaped by values
                yield (sample.input, *sample.args), sample.kwargs


def agree(expected, actual):
    for e, a in zip(tensors_of((expected,), {}), tensors_of((actual,), {}), strict=True):
        tolerance = {"rtol": 1e-3, "atol": 1e-3} if e.dtype.is_floating_point else {}
        torch.testing.assert_close(a, e, equal_nan=True, check_stride=False, **tolerance)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64], ids=["float32", "int64"])
@pytest.mark.parametrize("op", SAMPLED, ids=name_of)
def test_decomposition_computes_what_eager_does(op, dtype):
    if dtype not in op.dtypes:
        dtype = torch.float64
    for args, kwargs in samples(op, dtype, 4):
        torch.manual_seed(0)
        expected = op.op(*args, **kwargs)
        trace, tensors = traced(op.op, args, kwargs)
        torch.manual_seed(0)
        agree(expected, to_callable(expand(trace), [executor])(*tensors))


@pytest.mark.parametrize("op", SAMPLED, ids=name_of)
def test_metadata_are_what_comes_out(op):
    for args, kwargs in samples(op, torch.float32, 4):
        expected = op.op(*args, **kwargs)
        trace, _ = traced(op.op, args, kwargs)
        for e, proxy in zip(tensors_of((expected,), {}), tensors_of((trace.output,), {}), strict=True):
            assert (tuple(proxy.shape), proxy.dtype) == (tuple(e.shape), from_torch_dtype(e.dtype))
            assert e.numel() < 2 or tuple(proxy.strides) == e.stride()


@pytest.mark.parametrize("op", [op for op in COMPOSED[::5] if op.supports_autograd], ids=name_of)
def test_gradients_through_prims_are_those_of_autograd(op):
    dtype = torch.float64 if torch.float64 in op.dtypes else torch.float32
    for tracked in samples(op, dtype, 2, requires_grad=True):
        torch.manual_seed(0)
        outputs = [t for t in tensors_of((op.op(*tracked[0], **tracked[1]),), {}) if t.requires_grad]
        inputs = [t for t in tensors_of(*tracked) if t.requires_grad]
        if not outputs or not inputs:
            continue
        seeds = [torch.ones_like(t) for t in outputs]
        wanted = torch.autograd.grad(outputs, inputs, seeds, allow_unused=True, materialize_grads=True)
        trace, tensors = traced(op.op, *tracked)
        flat = tuple([p for p in tensors_of((trace.output,), {}) if p.dtype.is_inexact and p.requires_grad])
        joint = grad_transform_on_trace(expand(trace.replace(output=flat)))
        if len(joint.inputs) == len(tensors):
            assert not any(w.any() for w in wanted)
            continue
        torch.manual_seed(0)
        with torch.no_grad():
            _, gradients = to_callable(joint, [executor])(*[t.detach() for t in tensors], *seeds)
        found = [g for g, t in zip(gradients, tensors, strict=True) if t.requires_grad]
        agree(wanted, [torch.zeros_like(w) if g is None else g for g, w in zip(found, wanted, strict=True)])


def test_every_symbol_says_what_it_stands_for():
    for function, symbol in SYMBOLS.items():
        assert symbol.origin is not None and symbol.doc, function
        assert symbol.decomposition is not None, function


def test_half_precision_is_computed_as_pytorch_does():
    a = torch.randn(4, 8).to(torch.bfloat16)
    for function in (torch.nn.functional.gelu, torch.nn.functional.silu, torch.nn.functional.softmax):
        kwargs = {"dim": -1} if function is torch.nn.functional.softmax else {}
        trace, tensors = traced(function, (a,), kwargs)
        assert trace.output.dtype is dtypes.bfloat16
        result = to_callable(expand(trace), [executor])(*tensors)
        torch.testing.assert_close(result, function(a, **kwargs), rtol=1e-2, atol=1e-2)


ALIASES = [
    pytest.param(variant, op, id=f"{name_of(op)}: {variant.__name__}")
    for op in COMPOSED
    for variant in (op.op, *[alias.op for alias in op.aliases])
    if hasattr(torch, variant.__name__) and find_symbol(variant) is not None
]


def by_name(function, args, kwargs):
    """Return all ways to give arguments by name that a schema of PyTorch allows."""
    name = f"aten::{function.__name__}"
    for overload in torch._C._jit_get_operation(name)[1] or ():
        schema = torch._C._get_schema(name, overload)
        names = ["input" if a.name == "self" else a.name for a in schema.arguments]
        if len(names) >= len(args):
            yield dict(zip(names, args, strict=False)) | kwargs


@pytest.mark.parametrize(("function", "op"), ALIASES[::6])
def test_arguments_may_be_named(function, op):
    for args, kwargs in samples(op, torch.float32, 2):
        for named in by_name(function, args, kwargs):
            torch.manual_seed(0)
            try:
                expected = function(**named)
            except (TypeError, RuntimeError):
                continue  # that overload takes other arguments, or is no function of Python
            trace, tensors = traced(function, *tensors_by_position(function, (), named))
            torch.manual_seed(0)
            agree(expected, to_callable(expand(trace), [executor])(*tensors))


def test_what_was_called_axes_may_be_named():
    a = torch.randn(2, 3)
    for function, named in ((torch.swapaxes, {"axis0": 0, "axis1": -1}), (torch.swapdims, {"dim0": 0, "dim1": -1})):
        trace, tensors = traced(function, (a,), named)
        agree(function(a, **named), to_callable(expand(trace), [executor])(*tensors))
