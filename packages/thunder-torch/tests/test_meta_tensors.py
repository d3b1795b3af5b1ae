"""Tensors of the meta device tell what PyTorch's operations return on a CPU, and load nothing for that."""

import subprocess
import sys
from itertools import islice

import pytest
import torch
import torch.nn.functional as F
from torch.testing._internal.common_methods_invocations import op_db

from thunder_ir import TensorProxy, devices, dtypes
from thunder_torch.convert import proxy_of
from thunder_torch.fake_modes import fake_outputs
from thunder_torch.meta_tensors import outputs_on_meta, told_on_meta
from thunder_torch.metadata import connected_to
from thunder_torch.specs import TensorSpec, map_tensors, spec_of_result

SAMPLES = 3
ELSEWHERE = {"torch._scaled_mm_v2"}
"""Operations without a kernel for CPUs in some versions of PyTorch."""


def comparable(spec):
    """A specification without the strides that no element depends on."""
    if isinstance(spec, TensorSpec):
        strides = None if 0 in spec.shape else [s for s, size in zip(spec.strides, spec.shape, strict=True) if size > 1]
        return [spec.shape, spec.dtype, spec.requires_grad, strides, spec.argument, spec.viewed]
    return list(map(comparable, spec)) if isinstance(spec, (tuple, list)) else spec


@pytest.mark.parametrize("op", [op for op in op_db if op.dtypes], ids=lambda op: f"{op.name}{op.variant_test_name}")
def test_what_is_told_is_what_eager_returns(op):
    dtype = next(d for d in (torch.float32, torch.int64, torch.complex64, *op.dtypes) if d in op.dtypes)
    for sample in islice(op.sample_inputs("cpu", dtype, requires_grad=dtype is torch.float32), SAMPLES):
        inputs = []

        def proxy(tensor, inputs=inputs):
            inputs.append(tensor)
            return proxy_of(tensor)

        arguments = (sample.input, *sample.args), sample.kwargs
        if any([isinstance(v, torch.Tensor) and v.layout is not torch.strided for v in arguments[0]]):
            continue
        told = told_on_meta(op.op, *map_tensors(proxy, arguments), known=True)
        if told is not None and op.name not in ELSEWHERE:
            eager = op.op(*arguments[0], **arguments[1])
            assert comparable(told) == comparable(spec_of_result(eager, inputs, known=True)), arguments


def test_most_operations_are_told():
    rows = TensorProxy((2, 3, 8, 8), dtypes.float32, devices.cpu, True, (192, 64, 8, 1))
    for function, args in [
        (F.max_pool2d, (2,)),
        (F.adaptive_avg_pool2d, (1,)),
        (F.dropout, (0.5,)),
        (F.batch_norm, (None, None, None, None, True)),
        (F.pad, ((1, 1),)),
        (F.glu, (-1,)),
    ]:
        assert told_on_meta(function, (rows, *args), {}, known=True).requires_grad, function


ROWS = TensorProxy((2, 3, 8, 8), dtypes.float32, devices.cpu, False, (192, 64, 8, 1))


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (torch.neg, (TensorProxy((2,), dtypes.float32, devices.device("cuda:0"), False, (1,)),)),
        (F.pixel_shuffle, (TensorProxy((2, 4, 8, 8), dtypes.float32, devices.cpu, False, (256, 1, 32, 4)), 2)),
        (torch.nonzero, (ROWS,)),
        (torch._VF._pad_packed_sequence, (ROWS, TensorProxy((2,), dtypes.int64), True, 0.0, 2)),
        (torch.Tensor.add_, (ROWS, 1)),
        (lambda x: x + 1, (ROWS,)),
        (torch.neg, (torch.ones(2),)),
    ],
    ids=["elsewhere", "channels last", "values", "reads memory", "writes", "not PyTorch's", "a tensor"],
)
def test_what_they_do_not_tell_is_left_to_fake_tensors(function, args):
    assert told_on_meta(function, args, {}, known=True) is None


def test_which_arguments_have_a_gradient_is_told_of_fake_layouts_alike():
    turned = TensorProxy((4, 4), dtypes.float32, devices.cpu, True, (1, 4))
    assert connected_to(F.multilabel_soft_margin_loss, (turned, turned), {"reduction": "none"})[0] == {0, 1}
    assert connected_to(torch.take, (turned, TensorProxy((3,), dtypes.int64)), {})[0] == {0}


LAYERS = """
import sys
import torch
from thunder_ir import TensorProxy, devices, dtypes
from thunder_torch.metadata import metadata_of

F = torch.nn.functional
x = TensorProxy((2, 4, 8, 8), dtypes.float32, devices.cpu, True, (256, 64, 8, 1))
for function, *args in [(F.max_pool2d, 2), (F.batch_norm, None, None, None, None, True), (F.dropout, 0.1), (F.glu, -1)]:
    metadata_of(function, (x, *args), {})
print(sorted({"sympy", "torch.distributed.tensor", "torch._dynamo"} & set(sys.modules)))
"""


def test_layers_of_usual_models_load_nothing():
    run = subprocess.run([sys.executable, "-c", LAYERS], check=True, capture_output=True, text=True)
    assert run.stdout.strip() == "[]"


PROGRAMS = {
    "elementwise": lambda x, y: (x + y.exp(), (x * 2).relu(), x.tanh().transpose(0, 1) - 1),
    "reduced": lambda x, y: (x.sum(0, keepdim=True) + y, (x - y.amax(-1, keepdim=True)).exp(), x.mean((0, 2))),
    "views": lambda x, y: (x.permute(2, 0, 1, 3) * 2, y.flip(1) + x, x[:, 1:] * y[:, :-1], x.unsqueeze(1) + y),
    "copies": lambda x, y: (x.reshape(-1) * 2, torch.cat([x, y], 1), x.contiguous() + y, torch.where(x > 0, x, y)),
    "pooled": lambda x, y: (F.max_pool2d(x, 2), F.avg_pool2d(x + y, 2)),
}
LAID_OUT = {
    "in rows": lambda: torch.randn(2, 3, 4, 6),
    "channels last": lambda: torch.randn(2, 3, 4, 6).to(memory_format=torch.channels_last),
    "turned": lambda: torch.randn(6, 4, 3, 2).permute(3, 2, 1, 0),
    "spread": lambda: torch.randn(2, 1, 4, 1).expand(2, 3, 4, 6),
    "sliced": lambda: torch.randn(2, 3, 4, 12)[..., ::2],
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("first", LAID_OUT)
@pytest.mark.parametrize("second", LAID_OUT)
def test_outputs_lie_on_the_meta_device_as_on_a_cpu(program, first, second):
    inputs = [LAID_OUT[first](), LAID_OUT[second]()]
    real = PROGRAMS[program](*inputs)
    for outputs in (outputs_on_meta(PROGRAMS[program], inputs), fake_outputs(PROGRAMS[program], inputs)):
        assert [(t.shape, t.stride(), t.dtype) for t in outputs] == [(t.shape, t.stride(), t.dtype) for t in real]


@pytest.mark.parametrize("function", [lambda x: (x * x.sum().item(),), lambda x: (x + torch.ones(2),)])
def test_what_is_not_told_on_the_meta_device_is_left_to_fake_tensors(function):
    assert outputs_on_meta(function, [torch.ones(2)]) is None
    assert outputs_on_meta(torch.atleast_1d, [torch.ones(2).to_sparse()]) is None
    assert outputs_on_meta(torch.atleast_1d, [torch.ones(2, device="meta")]) is None
