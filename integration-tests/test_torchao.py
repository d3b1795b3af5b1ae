"""Weights in eight bits beside those of torchao itself, and models that it has quantised."""

import pytest
import torch

from thunder_frontend import jit
from thunder_transforms.weights import INT8

library = pytest.importorskip("torchao.quantization")
CONFIGURATIONS = {
    "int8": library.Int8WeightOnlyConfig(),
    "int8 with quantised inputs": library.Int8DynamicActivationInt8WeightConfig(),
    "int4": library.IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=library.PerGroup(64)),
}


def network() -> torch.nn.Sequential:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(128, 64), torch.nn.ReLU(), torch.nn.Linear(64, 32))
    return model.requires_grad_(False)


def test_int8_loses_no_more_than_the_library():
    model = network()
    weight = model[0].weight.clone()
    library.quantize_(model, CONFIGURATIONS["int8"])
    theirs = (model[0].weight.dequantize() - weight).abs().mean()
    ours = (INT8.restored(INT8.quantised(weight), 128, torch.float32) - weight).abs().mean()
    assert 0 < ours < theirs * 1.02


@pytest.mark.parametrize("name", CONFIGURATIONS)
@pytest.mark.filterwarnings("ignore::thunder_frontend.FallbackWarning")
def test_models_that_the_library_quantised_run_as_in_eager(name):
    model = network()
    library.quantize_(model, CONFIGURATIONS[name])
    assert type(model[0].weight) is not torch.nn.Parameter
    compiled = jit(model)
    for rows in (3, 1):
        x = torch.randn(rows, 128, generator=torch.Generator().manual_seed(1))
        torch.testing.assert_close(compiled(x), model(x))
