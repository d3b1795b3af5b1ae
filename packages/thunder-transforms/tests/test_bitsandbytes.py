"""Weights in NF4 beside those of bitsandbytes itself: what is kept, what is computed, and who computes it."""

import copy
import io

import pytest
import torch

from thunder_frontend import compiled_function, jit, last_traces
from thunder_transforms import LORATransform, Quantise, compile, load_original_state_dict, original_state_dict
from thunder_transforms.weights import NF4, BitsAndBytes, format_called

library = pytest.importorskip("bitsandbytes")
KERNEL = "dequantize_4bit"


def network(columns: int = 128, dtype: torch.dtype = torch.float32) -> torch.nn.Sequential:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(columns, 64), torch.nn.GELU(), torch.nn.Linear(64, 10)).to(dtype)


def inputs(columns: int = 128, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(5, columns, generator=torch.Generator().manual_seed(1)).to(dtype)


@pytest.mark.parametrize("spread", [1e-6, 1.0, 300.0])
def test_what_is_kept_is_what_the_library_keeps(spread):
    weight = torch.randn(96, 192, generator=torch.Generator().manual_seed(2)) * spread
    weight[3] = 0
    codes, state = library.functional.quantize_4bit(weight, quant_type="nf4", blocksize=64)
    ours = NF4.quantised(weight)
    assert (ours["codes"].reshape(-1) != codes.reshape(-1)).sum() == 0
    nonzero = state.absmax != 0
    assert torch.equal(ours["scale"].reshape(-1)[nonzero], state.absmax[nonzero])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_the_librarys_kernel_restores_what_ours_does(dtype):
    weight = torch.randn(7, 128, generator=torch.Generator().manual_seed(3))
    weight[3] = 0
    parts = NF4.quantised(weight)
    found = format_called("nf4")
    assert isinstance(found, BitsAndBytes)
    torch.testing.assert_close(found.restored(parts, 128, dtype), NF4.restored(parts, 128, dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_layer_computes_what_one_of_the_library_does(dtype):
    plain = network(dtype=dtype)[0]
    theirs = library.nn.Linear4bit(128, 64, compute_dtype=dtype, quant_type="nf4", compress_statistics=False)
    theirs.load_state_dict(plain.state_dict())
    theirs = theirs.to("cpu")
    compiled = jit(torch.nn.Sequential(plain), transforms=[Quantise("nf4")], fallback="error")
    x, y = (inputs(dtype=dtype).requires_grad_() for _ in range(2))
    ours, expected = compiled(x), theirs(y)
    torch.testing.assert_close(ours, expected)
    ours.square().sum().backward()
    expected.square().sum().backward()
    torch.testing.assert_close(x.grad, y.grad)
    assert KERNEL in str(last_traces(compiled)[-1])


@pytest.mark.parametrize(("columns", "dtype"), [(100, torch.float32), (128, torch.float64)])
def test_what_the_kernel_does_not_know_is_computed_without_it(columns, dtype):
    model, reference = network(columns, dtype), network(columns, dtype)
    compiled = jit(torch.nn.Sequential(model[0]), transforms=[Quantise("nf4")], fallback="error")
    weight = NF4.restored(NF4.quantised(reference[0].weight.detach()), columns, dtype)
    x = inputs(columns, dtype)
    torch.testing.assert_close(compiled(x), torch.nn.functional.linear(x, weight, reference[0].bias))
    assert KERNEL not in str(last_traces(compiled)[-1])


def test_the_plugin_makes_one_program_with_the_kernel():
    compiled = compile(network(), plugins="quantize-int4")
    reference = network()
    reference.load_state_dict(original_state_dict(compiled))
    torch.testing.assert_close(compiled(inputs()), reference(inputs()))
    assert str(last_traces(compiled)[-1]).count(KERNEL) == 2
    assert not compiled_function(compiled).split_off()


def test_adapters_learn_on_weights_that_the_kernel_restores():
    compiled = jit(network(), transforms=[Quantise("nf4"), LORATransform(r=4, lora_alpha=8)], fallback="error")
    optimizer = torch.optim.SGD([p for p in compiled.parameters() if p.requires_grad], lr=0.5)
    losses = []
    for _ in range(6):
        loss = compiled(inputs()).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    merged = network()
    merged.load_state_dict(original_state_dict(compiled))
    torch.testing.assert_close(merged(inputs()), compiled(inputs()))
    assert KERNEL in str(last_traces(compiled)[-1])


def test_models_are_copied_saved_and_loaded_as_elsewhere():
    model = network()
    compiled = jit(model, transforms=[Quantise("nf4")])
    expected = compiled(inputs())
    torch.testing.assert_close(copy.deepcopy(model)(inputs()), expected)
    saved = io.BytesIO()
    torch.save(model, saved)
    saved.seek(0)
    assert KERNEL.encode() not in saved.getvalue()
    torch.testing.assert_close(torch.load(saved, weights_only=False)(inputs()), expected)
    load_original_state_dict(compiled, {n: t * 2 for n, t in original_state_dict(compiled).items()})
    assert not torch.allclose(compiled(inputs()), expected)


@pytest.mark.parametrize("kind", ["nf4", "fp4"])
@pytest.mark.filterwarnings("ignore::thunder_frontend.FallbackWarning")
def test_models_that_the_library_quantised_run_as_in_eager(kind):
    layer = library.nn.Linear4bit(64, 32, quant_type=kind, compute_dtype=torch.float32)
    model = torch.nn.Sequential(layer, torch.nn.ReLU(), torch.nn.Linear(32, 8)).to("cpu")
    compiled = jit(model)
    for rows in (3, 1):
        x, y = (torch.randn(rows, 64, generator=torch.Generator().manual_seed(4)).requires_grad_() for _ in range(2))
        ours, expected = compiled(x), model(y)
        torch.testing.assert_close(ours, expected)
        ours.sum().backward()
        expected.sum().backward()
        torch.testing.assert_close(x.grad, y.grad)
