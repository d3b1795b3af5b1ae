"""What the type system does not know is refused: nothing of it is taken for something else."""

import pytest
import torch

from thunder_executors import to_callable
from thunder_executors_torch import executor
from thunder_ir import DTypeError, Tensor, trace_of
from thunder_torch import UnknownMetadataError, call, proxy_of

SCALES, ZEROS = torch.ones(3), torch.zeros(3)


@pytest.mark.parametrize(
    "dtype", ["qint8", "quint8", "qint32", "bits8", "uint4", "int4", "float4_e2m1fn_x2", "float8_e8m0fnu"]
)
def test_tensors_of_dtypes_that_programs_do_not_know_are_refused(dtype):
    unknown = getattr(torch, dtype)
    with pytest.raises(DTypeError, match=dtype):
        trace_of(lambda x: call(torch.Tensor.view, (x, unknown), {}), Tensor((4,), "uint8"))
    if not dtype.startswith("q"):
        with pytest.raises(DTypeError, match=dtype):
            proxy_of(torch.zeros(4, dtype=torch.uint8).view(unknown))


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (torch.quantize_per_tensor, (0.1, 0, torch.qint8)),
        (torch.quantize_per_tensor, (torch.tensor(0.1), torch.tensor(0), torch.quint8)),
        (torch.quantize_per_channel, (SCALES, ZEROS, 0, torch.qint8)),
        (torch.quantize_per_tensor_dynamic, (torch.quint8, False)),
        (torch.Tensor.to, (torch.qint8,)),
    ],
    ids=["tensor", "parameters", "channel", "dynamic", "to"],
)
def test_quantising_is_refused_though_pytorchs_fakes_tell_float32(function, args):
    with pytest.raises(DTypeError, match=r"int8 is not a dtype that programs know"):
        trace_of(lambda x: call(function, (x, *args), {}), Tensor((3, 4)))


def test_a_quantised_tensor_does_not_enter():
    with pytest.raises(DTypeError, match="qint8"):
        proxy_of(torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8))


def test_nested_tensors_neither_enter_nor_come_out():
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    with pytest.raises(UnknownMetadataError, match="nested tensor"):
        proxy_of(nested)
    with pytest.raises(UnknownMetadataError, match="nested tensor"):
        trace_of(lambda x: call(torch._nested_tensor_from_tensor_list, ([x, x],), {}), Tensor((4,)))


@pytest.mark.parametrize("convert", ["to_sparse", "to_sparse_csr", "to_mkldnn"])
def test_tensors_of_other_layouts_neither_enter_nor_come_out(convert):
    with pytest.raises(UnknownMetadataError, match="layout"):
        proxy_of(getattr(torch.ones(2, 2), convert)())
    with pytest.raises(UnknownMetadataError, match="layout"):
        trace_of(lambda x: call(getattr(torch.Tensor, convert), (x,), {}), Tensor((2, 2)))


@pytest.mark.skipif(not hasattr(torch.Tensor, "has_names"), reason="PyTorch has no named dimensions since 2.13")
def test_named_dimensions_neither_enter_nor_come_out():
    with pytest.raises(UnknownMetadataError, match="named dimensions"):
        proxy_of(torch.ones(2, 3).refine_names("A", "B"))
    with pytest.raises(UnknownMetadataError, match="named dimensions"):
        trace_of(lambda x: call(torch.Tensor.refine_names, (x, "A", "B"), {}), Tensor((2, 3)))


@pytest.mark.parametrize("function", [torch.exp, torch.sum, torch.tanh, torch.mean], ids=lambda f: f.__name__)
def test_what_pytorch_has_no_kernel_for_in_complex32_raises_as_there(function):
    x = torch.ones(3, dtype=torch.complex32)
    with pytest.raises(NotImplementedError) as expected:
        function(x)
    program = to_callable(trace_of(lambda p: call(function, (p,), {}), proxy_of(x, "x")), [executor])
    with pytest.raises(NotImplementedError) as found:
        program(x)
    assert str(found.value).splitlines()[0] == str(expected.value).splitlines()[0]
