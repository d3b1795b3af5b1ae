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
        ("thunder.core.recipe", ["Plugin", "PluginPolicy", "Recipe"]),
        ("thunder.core.transform_common", ["Transform", "cse", "dce"]),
        ("thunder.dev_utils.check_trace", ["check_trace"]),
        ("thunder.dev_utils.debug_transform", ["DebugTransform", "debug_execution_trace"]),
        ("thunder.dev_utils.nvtx_profile_transform", ["NvtxProfileTransform"]),
        ("thunder.dev_utils.profile_transform", ["ProfileTransform"]),
        ("thunder.examine", ["examine", "get_fusions", "get_fusion_symbols"]),
        ("thunder.examine.memory_calculation", ["get_alloc_memory"]),
        ("thunder.executors", ["get_default_executors"]),
        ("thunder.plugins", ["DDP", "FSDP", "FP8", "QuantizeInt4", "ReduceOverhead", "names_to_plugins"]),
        ("thunder.recipes", ["BaseRecipe", "HFTransformers", "get_recipe_class", "register_recipe"]),
        ("thunder.transforms.autocast", ["autocast"]),
        ("thunder.transforms.constant_folding", ["ConstantFolding"]),
        ("thunder.transforms.materialization", ["MaterializationTransform"]),
        ("thunder.transforms.qlora", ["LORATransform"]),
        ("thunder.transforms.quantization", ["Quantise"]),
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
    assert thunder.examine(lambda x: x * 2, torch.ones(2)).operations[0].name == "ltorch.mul"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = thunder.nothing


def test_parallelism_and_the_backend_come_with_their_packages():
    assert thunder.distributed.fsdp.__module__.startswith("thunder_distributed")
    assert thunder.dynamo.thunderfx.__module__.startswith("thunder_fx")


def test_parallelism_is_a_plugin_like_others():
    names = thunder.plugins.get_plugin_names()
    assert {"ddp", "distributed", "fsdp", "quantize-int4", "profile"} <= set(names)
    for name in ("ddp", "fsdp"):
        with pytest.raises((RuntimeError, ValueError), match="process"):  # none is initialised
            thunder.compile(torch.nn.Linear(2, 2), plugins=name)


def test_every_public_name_is_there():
    assert [n for n in thunder.__all__ if not hasattr(thunder, n)] == []
    assert thunder.transforms.grad is thunder.grad and thunder.transforms.LORATransform is not None
