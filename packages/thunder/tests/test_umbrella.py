"""The umbrella has the names that users of Lightning Thunder know."""

import importlib

import pytest
import torch

import thunder


def test_the_first_program_runs_and_shows_its_traces():
    compiled = thunder.jit(lambda a, b: a + b * 2)
    a, b = torch.randn(3), torch.randn(3)
    torch.testing.assert_close(compiled(a, b), a + b * 2)
    texts = [str(t) for t in thunder.last_traces(compiled)]
    assert "ltorch.mul" in texts[0]
    assert "torch.mul" in texts[-1]
    assert (thunder.cache_hits(compiled), thunder.cache_misses(compiled)) == (0, 1)


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("thunder", ["jit", "compile", "trace", "Transform", "compile_data", "compile_stats", "last_backward_traces"]),
        ("thunder.extend", ["OperatorExecutor", "FusionExecutor", "register_executor", "get_all_executors"]),
        ("thunder.torch", ["mul", "softmax", "scaled_dot_product_attention", "layer_norm", "linalg_inv"]),
        ("thunder.numpy", ["add", "sum", "reshape"]),
        ("thunder.core.devices", ["DeviceType"]),
        ("thunder.core.dtypes", ["float32", "bool8"]),
        ("thunder.core.prims", ["exp", "matmul"]),
        ("thunder.core.proxies", ["TensorProxy", "NumberProxy"]),
        ("thunder.core.symbol", ["Symbol", "BoundSymbol"]),
        ("thunder.core.trace", ["Trace"]),
        ("thunder.core.transforms", ["grad", "value_and_grad", "get_grad", "put_grad", "put_grads"]),
    ],
)
def test_names_are_where_they_are_expected(module, names):
    found = importlib.import_module(module)
    assert [n for n in names if not hasattr(found, n)] == []


def test_reports_come_with_the_package_that_makes_them():
    found = thunder.report(lambda x: x * 2, torch.ones(2), measure=False)
    assert found.facts.misses == 1
    assert thunder.examine.examine(lambda x: x * 2, torch.ones(2)).problem is None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = thunder.nothing


def test_parallelism_and_the_backend_come_with_their_packages():
    assert thunder.distributed.fsdp.__module__.startswith("thunder_distributed")
    assert thunder.dynamo.thunderfx.__module__.startswith("thunder_fx")
