"""Names of Lightning Thunder that mean the same here: what they give, beside PyTorch."""

import pytest
import torch

import thunder
from thunder import clang
from thunder.core import devices, dtypes, pytree, trace

X = torch.randn(4, 6, generator=torch.Generator().manual_seed(0))
INDEX = torch.tensor([[0, 5], [1, 1], [2, 3], [4, 4]])


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (clang.silu, torch.nn.functional.silu),
        (lambda x: clang.mod(x, 0.7), lambda x: x % 0.7),
        (lambda x: clang.slice_in_dim(x, 1, 6, 2, 1), lambda x: x[:, 1:6:2]),
        (lambda x: clang.slice_in_dim(x, 1, 3), lambda x: x[1:3]),
        (lambda x: clang.slice_in_dim(x, 0, 2, dim=-1), lambda x: x[:, :2]),
        (lambda x: clang.maybe_convert_to_dtype(x, dtypes.float64), lambda x: x.double()),
        (lambda x: clang.device_put(x, devices.cpu), lambda x: x),
        (lambda x: clang.add(x, clang.take_along_axis(x, x.argsort(1), 1)), lambda x: x + x.sort(1).values),
    ],
)
def test_operations_of_the_core_language(ours, theirs):
    torch.testing.assert_close(thunder.jit(ours, fallback="error")(X), theirs(X))
    x, y = (X.clone().requires_grad_() for _ in range(2))
    thunder.jit(ours, fallback="error")(x).sum().backward()
    theirs(y).sum().backward()
    torch.testing.assert_close(x.grad, y.grad)


def test_shapes_broadcast():
    assert clang.compute_broadcast_shape((3, 1), (2, 1, 4)) == (2, 3, 4)


@pytest.mark.parametrize(
    "dtype", [torch.bool, torch.uint8, torch.int64, torch.float16, torch.bfloat16, torch.float64, torch.complex64]
)
def test_data_types_are_told_apart(dtype):
    ours = dtypes.to_dtype(dtype)
    assert dtypes.to_torch_dtype(ours) is dtype and dtypes.to_dtype(ours) is ours
    assert dtypes.is_float_dtype(ours) == dtype.is_floating_point
    assert dtypes.is_complex_dtype(ours) == dtype.is_complex
    assert dtypes.is_inexact_dtype(ours) == (dtype.is_floating_point or dtype.is_complex)
    assert dtypes.is_exact_dtype(ours) == dtypes.is_integer_dtype(ours) == (not dtypes.is_inexact_dtype(ours))
    assert dtypes.is_boolean_dtype(ours) == (dtype is torch.bool)
    assert dtypes.is_nonboolean_integer_dtype(ours) == (dtype in (torch.uint8, torch.int64))
    assert not dtypes.is_weak_dtype(ours) and dtypes.is_weak_dtype(dtypes.weak_float)


def test_devices_are_converted():
    assert devices.to_torch_device(devices.to_device("cuda:1")) == torch.device("cuda:1")
    assert devices.to_device(torch.device("cpu")) is devices.to_device(devices.cpu) is devices.cpu


def test_trees_are_taken_apart_and_put_together():
    leaves, structure = pytree.tree_flatten({"b": (1, [2.0]), "a": None})
    assert pytree.tree_unflatten(leaves, structure) == {"b": (1, [2.0]), "a": None}


def test_traces_have_the_name_that_annotations_use():
    compiled = thunder.jit(lambda x: x + 1)
    compiled(X)
    assert isinstance(thunder.last_traces(compiled)[-1], trace.TraceCtx)
    assert isinstance(thunder.last_traces(compiled)[-1].provenance, trace.TraceProvenance)


def test_executors_are_had_by_functions():
    assert thunder.executors.get_torch_executor() is thunder.pytorch_executor
    found = thunder.get_executor("nvfuser")
    there = found is not None and found.missing() is None
    assert thunder.executors.nvfuser_available() == there
    assert thunder.executors.get_nvfuser_executor() is (found if there else None)


def test_regions_of_nvfuser_are_asked_for_by_name():
    compiled = thunder.jit(lambda x: x + 1)
    compiled(X)
    trace = thunder.last_traces(compiled)[-1]
    for ask in (thunder.examine.get_nvfuser_repro, thunder.examine.get_nvfuser_fusion_definition):
        with pytest.raises(KeyError, match="the program calls no fusion 'nvfuser_0'; it calls none"):
            ask(trace, "nvfuser_0")


def test_graphs_are_among_the_transforms():
    assert thunder.transforms.CUDAGraphTransform.__name__ == "CUDAGraphTransform"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = thunder.transforms.nothing
