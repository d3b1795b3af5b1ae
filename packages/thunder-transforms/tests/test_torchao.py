"""Weights in four bits by torchao, multiplied by PyTorch's kernel: beside torchao itself, which runs layer by layer."""

import copy
import importlib.util
import io

import pytest
import torch

from thunder_frontend import cache_misses, compiled_function, jit, last_traces
from thunder_transforms import LORATransform, Quantise, compile, load_original_state_dict, original_state_dict, plugins
from thunder_transforms.quantization import Quantised
from thunder_transforms.weights import TorchAO, format_called, halves, packed, unpacked

library = pytest.importorskip("torchao.prototype.quantization.int4")
KERNEL = "_weight_int4pack_mm_for_cpu"


def network(dtype: torch.dtype = torch.bfloat16) -> torch.nn.Sequential:
    torch.manual_seed(0)
    layers = [torch.nn.Linear(128, 80), torch.nn.GELU(), torch.nn.Linear(80, 64), torch.nn.Linear(64, 48, bias=False)]
    return torch.nn.Sequential(*layers).to(dtype).eval()


def inputs(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.randn(*shape, 128, generator=torch.Generator().manual_seed(1)).to(dtype)


def of_torchao(model: torch.nn.Module) -> torch.nn.Module:
    """Quantise what our plugin does, by torchao."""
    for name, layer in model.named_modules():
        if isinstance(layer, torch.nn.Linear) and layer.in_features % 64 == 0 and name != "lm_head":
            kept = library.Int4OpaqueTensor.from_hp(layer.weight.detach(), [1, 64])
            layer.weight = torch.nn.Parameter(kept, requires_grad=False)
    return model


@pytest.fixture
def without_bitsandbytes(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(plugins, "find_spec", lambda name: None if name == "bitsandbytes" else find(name))


@pytest.mark.parametrize("shape", [(1,), (5,), (2, 3), (0,), ()])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_one_program_gives_what_torchao_gives_layer_by_layer(shape, dtype):
    compiled = jit(network(dtype)[:2], transforms=[Quantise("torchao-int4")], fallback="error")
    expected = of_torchao(network(dtype)[:2])
    x = inputs(*shape, dtype=dtype)
    with torch.no_grad():
        assert torch.equal(compiled(x), expected(x))
    assert KERNEL in str(last_traces(compiled)[-1])


def test_inputs_may_lie_across():
    compiled = jit(network()[:2], transforms=[Quantise("torchao-int4")], fallback="error")
    x = inputs(5).t().contiguous().t()
    with torch.no_grad():
        assert torch.equal(compiled(x), of_torchao(network()[:2])(x))


@pytest.mark.parametrize(("rows", "columns"), [(16, 64), (48, 64), (80, 192), (128, 128), (224, 64)])
def test_weights_are_restored_as_the_kernel_reads_them(rows, columns):
    codes = torch.randint(16, (rows, columns), dtype=torch.int32, generator=torch.Generator().manual_seed(2))
    assert torch.equal(unpacked(packed(codes), columns).reshape(rows, columns), codes.to(torch.uint8))
    assert halves(packed(codes)).numel() == rows * columns
    weight = torch.randn(rows, columns, generator=torch.Generator().manual_seed(3)).bfloat16()
    form = format_called("torchao-int4")
    parts = form.quantised(weight)
    unit = torch.eye(columns, dtype=torch.bfloat16)
    assert torch.equal(
        form.restored(parts, columns, weight.dtype), form.product(unit, parts, None, columns, weight.dtype).T
    )
    assert (form.restored(parts, columns, weight.dtype) - weight).abs().max() < 0.3


def test_the_plugin_uses_torchao_where_its_kernel_fits_and_nf4_elsewhere(without_bitsandbytes):
    compiled = compile(network(), plugins="quantize-int4", fallback="error")
    layers = [layer for layer in compiled.modules() if isinstance(layer, Quantised)]
    assert [layer._thunder_format.name for layer in layers] == ["torchao-int4", "nf4", "torchao-int4"]
    reference = network()
    reference.load_state_dict(original_state_dict(compiled))
    with torch.no_grad():
        torch.testing.assert_close(compiled(inputs(5)), reference(inputs(5)), atol=0.01, rtol=0.02)
    assert str(last_traces(compiled)[-1]).count(KERNEL) == 2
    assert not compiled_function(compiled).split_off()


@pytest.mark.parametrize("model", [network().train(), network(torch.float32)], ids=["training", "float32"])
def test_the_plugin_keeps_nf4_for_training_and_full_precision(without_bitsandbytes, model):
    compiled = compile(model, plugins="quantize-int4")
    layers = [layer for layer in compiled.modules() if isinstance(layer, Quantised)]
    assert {layer._thunder_format.name for layer in layers} == {"nf4"}


def test_the_plugin_prefers_bitsandbytes_and_needs_neither(monkeypatch):
    for there in ({"bitsandbytes", "torchao"}, {"bitsandbytes"}, set()):
        monkeypatch.setattr(plugins, "find_spec", lambda name, there=there: name if name in there else None)
        (transform,) = plugins.QuantizeInt4().setup_transforms()
        assert transform.format.name == "nf4"


def test_gradients_reach_inputs_through_restored_weights():
    compiled = jit(network()[:1], transforms=[Quantise("torchao-int4")], fallback="error")
    reference = network()[:1]
    reference.load_state_dict(original_state_dict(compiled))
    x, y = (inputs(5).requires_grad_() for _ in range(2))
    ours, expected = compiled(x), reference(y)
    torch.testing.assert_close(ours, expected)
    ours.sum().backward()
    expected.sum().backward()
    torch.testing.assert_close(x.grad, y.grad)
    assert KERNEL not in str(last_traces(compiled)[-1])
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), expected, atol=0.01, rtol=0.02)  # it does not round weights
    assert KERNEL in str(last_traces(compiled)[-1])
    with torch.no_grad(), torch.autocast("cpu", torch.float16):
        assert compiled(x).dtype == reference(x).dtype == torch.float16
    with pytest.raises(RuntimeError, match="dtype"):
        compiled(x.float())


def test_adapters_are_added_to_what_the_kernel_gives():
    model = network()[:1]
    compiled = jit(model, transforms=[Quantise("torchao-int4"), LORATransform(r=4)], fallback="error")
    with torch.no_grad():
        compiled[0].lora_b.normal_()
        ours = compiled(inputs(5))
    reference = network()[:1]
    reference.load_state_dict(original_state_dict(compiled))
    torch.testing.assert_close(ours, reference(inputs(5)), atol=0.1, rtol=0.02)
    assert KERNEL in str(last_traces(compiled)[-1])


def test_models_are_copied_saved_and_loaded_on_the_same_kind_of_processor():
    model = network()[:1]
    compiled = jit(model, transforms=[Quantise("torchao-int4")])
    with torch.no_grad():
        expected = compiled(inputs(5))
        assert torch.equal(copy.deepcopy(model)(inputs(5)), expected)
        saved = io.BytesIO()
        torch.save(model, saved)
        saved.seek(0)
        assert torch.equal(torch.load(saved, weights_only=False)(inputs(5)), expected)
        state = compiled.state_dict()
        compiled.load_state_dict(state)
        load_original_state_dict(compiled, {n: t * 2 for n, t in original_state_dict(compiled).items()})
        assert not torch.equal(compiled(inputs(5)), expected)
    assert cache_misses(compiled) == 1
    state["0.weight_layout"] = state["0.weight_layout"].flip(0)
    with pytest.raises(RuntimeError, match="packed for another processor"):
        compiled.load_state_dict(state)
    model[0].weight_layout.zero_()
    with pytest.raises(RuntimeError, match="packed for another processor"):
        copy.deepcopy(model)


@pytest.mark.parametrize(
    "layer", [torch.nn.Linear(64, 16), torch.nn.Linear(64, 10).bfloat16(), torch.nn.Linear(32, 16).half()]
)
def test_weights_that_do_not_fit_are_refused(layer):
    with pytest.raises(ValueError, match="does not take a weight of torch.*leave the layer out by where="):
        jit(torch.nn.Sequential(layer), transforms=[Quantise("torchao-int4")])
    assert isinstance(layer.weight, torch.nn.Parameter)


def test_the_format_is_told_apart_by_name():
    assert isinstance(format_called("torchao-int4"), TorchAO)
