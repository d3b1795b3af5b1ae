"""Transforms of modules: what they keep, compute, train, save and load."""

import copy
import io
import pickle
import sys

import pytest
import torch

from thunder_frontend import cache_misses, jit, last_traces
from thunder_transforms import (
    AutocastTransform,
    LORATransform,
    MaterializationTransform,
    Quantise,
    load_original_state_dict,
    original_state_dict,
)
from thunder_transforms.weights import FORMATS, NF4


def network() -> torch.nn.Sequential:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(100, 64), torch.nn.GELU(), torch.nn.Linear(64, 10))


def strict(model, *transforms):
    return jit(model, transforms=transforms, fallback="error")


X = torch.randn(5, 100, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(("name", "step"), [("int8", 1 / 254), ("int4", 1 / 14), ("nf4", 0.16)])
@pytest.mark.parametrize("columns", [64, 100, 1])
def test_weights_are_restored_within_half_a_step_of_their_group(name, step, columns):
    weight = torch.randn(7, columns, generator=torch.Generator().manual_seed(2))
    weight[3] = 0
    form = FORMATS[name]
    restored = form.restored(form.quantised(weight), columns, torch.float32)
    assert restored.shape == weight.shape
    largest = weight.abs().amax(1, keepdim=True)
    assert ((restored - weight).abs() <= largest * step + 1e-6).all()
    assert (restored[3] == 0).all()


def test_levels_of_nf4_have_zero_and_both_ends():
    assert (NF4.levels[0], NF4.levels[7], NF4.levels[15]) == (-1.0, 0.0, 1.0)
    assert list(NF4.levels) == sorted(set(NF4.levels))


@pytest.mark.parametrize("name", FORMATS)
def test_a_quantised_model_computes_what_its_restored_weights_do(name):
    model, reference = network(), network()
    compiled = strict(model, Quantise(name))
    reference.load_state_dict(original_state_dict(compiled))
    torch.testing.assert_close(compiled(X), reference(X))
    torch.testing.assert_close(model(X), reference(X))
    x = X.clone().requires_grad_()
    compiled(x).sum().backward()
    y = X.clone().requires_grad_()
    reference(y).sum().backward()
    torch.testing.assert_close(x.grad, y.grad)
    assert cache_misses(compiled) == 2  # with a gradient, and without


def test_quantised_weights_are_read_anew_on_each_call():
    compiled = strict(network(), Quantise("int8"))
    before = compiled(X)
    load_original_state_dict(compiled, {n: t * 2 for n, t in original_state_dict(compiled).items()})
    assert not torch.allclose(compiled(X), before)
    with torch.no_grad():
        compiled[0].weight_scale.zero_()
        expected = compiled[2](torch.nn.functional.gelu(compiled[0].bias.expand(5, -1)))
    torch.testing.assert_close(compiled(X), expected)
    assert cache_misses(compiled) == 1


def test_int8_takes_a_quarter_of_the_memory_and_nf4_an_eighth():
    full = 100 * 64 * 4
    for name, share in (("int8", 4), ("nf4", 8)):
        model = torch.nn.Sequential(torch.nn.Linear(100, 64))
        strict(model, Quantise(name))
        assert model[0].weight_codes.nbytes <= full / share * 1.3


def test_only_the_layers_that_are_meant_are_changed():
    compiled = strict(network(), Quantise("int8", where=lambda name, layer: name == "0"))
    assert [n for n, _ in compiled.named_parameters()] == ["0.bias", "2.weight", "2.bias"]


def test_layers_that_compute_otherwise_are_left_and_computed_weights_refused():
    class Doubled(torch.nn.Linear):
        def forward(self, x):
            return super().forward(x) * 2

    model = torch.nn.Sequential(Doubled(4, 4))
    strict(model, Quantise("int8"))
    assert isinstance(model[0].weight, torch.nn.Parameter)
    parametrized = torch.nn.Sequential(torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(4, 4)))
    with pytest.raises(TypeError, match="the weight of 0 is computed"):
        strict(parametrized, Quantise("int8"))
    with pytest.raises(ValueError, match="none of int8, int4, nf4, torchao-int4"):
        Quantise("int3")


@pytest.mark.parametrize("under", [(), (Quantise("nf4"),)], ids=["lora", "qlora"])
def test_adapted_layers_learn_and_nothing_else_changes(under):
    model = network()
    compiled = strict(model, *under, LORATransform(r=4, lora_alpha=8))
    torch.testing.assert_close(compiled(X), strict(network(), *under)(X))
    before = {n: t.clone() for n, t in compiled.state_dict().items() if "lora" not in n}
    optimizer = torch.optim.SGD([p for p in compiled.parameters() if p.requires_grad], lr=0.5)
    losses = []
    for _ in range(8):
        loss = compiled(X).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert losses == sorted(losses, reverse=True) and losses[-1] < losses[0]
    assert all([torch.equal(compiled.state_dict()[n], t) for n, t in before.items()])
    merged = network()
    merged.load_state_dict(original_state_dict(compiled))
    torch.testing.assert_close(merged(X), compiled(X))


def test_adapted_gradients_are_those_of_eager():
    model = network()
    compiled = strict(model, LORATransform(r=3, lora_alpha=2))
    parameters = [p for p in model.parameters() if p.requires_grad]
    with torch.no_grad():
        for parameter in parameters:
            parameter.normal_()
    found = torch.autograd.grad(compiled(X).square().mean(), parameters)
    expected = torch.autograd.grad(model(X).square().mean(), parameters)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-3)  # they are up to 2,000


def test_what_is_loaded_into_an_adapted_model_is_computed_as_it_stands():
    compiled = strict(network(), LORATransform(r=2))
    with torch.no_grad():
        compiled[0].lora_b.normal_()
    adapted = compiled(X)
    load_original_state_dict(compiled, original_state_dict(compiled))
    torch.testing.assert_close(compiled(X), adapted)
    with pytest.raises(ValueError, match="no rank"):
        LORATransform(r=0)


@pytest.mark.parametrize("transforms", [(Quantise("int8"),), (Quantise("int4"), LORATransform(r=2))])
def test_changed_models_are_copied_pickled_and_saved(transforms):
    model = network()
    compiled = strict(model, *transforms)
    expected = compiled(X)
    for again in (copy.deepcopy(compiled), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        torch.testing.assert_close(again(X), expected)
    saved = io.BytesIO()
    torch.save(compiled.state_dict(), saved)
    saved.seek(0)
    other = strict(network(), *transforms)
    other.load_state_dict(torch.load(saved))
    torch.testing.assert_close(other(X), expected)


def test_a_trained_copy_keeps_what_it_learnt():
    with torch.device("meta"):
        model = network()
    state = network().state_dict()
    start = MaterializationTransform("cpu", init=MaterializationTransform.init_from_original_state_dict(state))
    compiled = strict(model, LORATransform(r=2), start)
    with torch.no_grad():
        compiled[0].lora_b.fill_(1)
    torch.testing.assert_close(copy.deepcopy(compiled)(X), compiled(X))
    assert copy.deepcopy(compiled)[0].lora_a.requires_grad


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(11, 8)
        self.head = torch.nn.Linear(8, 11, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, x):
        return self.head(self.embed(x))


def test_a_model_of_the_meta_device_gets_the_values_of_a_state_dict_and_stays_tied():
    reference = Tied()
    with torch.device("meta"):
        model = Tied()
    init = MaterializationTransform.init_from_original_state_dict(reference.state_dict())
    compiled = strict(model, MaterializationTransform("cpu", init=init))
    x = torch.arange(5)
    torch.testing.assert_close(compiled(x), reference(x))
    assert model.head.weight is model.embed.weight


def test_quantised_layers_are_materialised_quantised():
    with torch.device("meta"):
        model = network()
    reference = network()
    init = MaterializationTransform.init_from_original_state_dict(reference.state_dict())
    compiled = strict(model, Quantise("int8"), MaterializationTransform("cpu", init=init))
    torch.testing.assert_close(compiled(X), strict(reference, Quantise("int8"))(X))
    assert compiled[0].weight_codes.dtype is torch.int8


def test_modules_draw_their_own_values():
    with torch.device("meta"):
        model = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.BatchNorm1d(6))
    init = MaterializationTransform.init_from_original_module_init()
    compiled = strict(model, Quantise("int8"), LORATransform(r=2), MaterializationTransform("cpu", init=init))
    result = compiled(torch.randn(3, 6))
    assert result.isfinite().all() and model[1].num_batches_tracked == 1
    assert model[0].weight.abs().max() > 0


def test_what_would_stay_without_a_value_is_named():
    class Holder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.Parameter(torch.empty(3))
            self.register_buffer("steps", torch.arange(3), persistent=False)

        def forward(self, x):
            return x + self.table + self.steps

    for init in (
        MaterializationTransform.init_from_original_module_init(),
        MaterializationTransform.init_from_original_state_dict({}),
    ):
        with torch.device("meta"):
            model = Holder()
        with pytest.raises(RuntimeError, match="table, steps would be left without a value"):
            strict(model, MaterializationTransform("cpu", init=init))


def test_autocast_of_a_module_is_that_of_torch():
    model, reference = network(), network()
    compiled = strict(model, AutocastTransform(torch.bfloat16))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        expected = reference(X)
    torch.testing.assert_close(compiled(X), expected)
    assert "bfloat16" in str(last_traces(compiled)[0])
    with pytest.raises(TypeError, match="is for modules"):
        jit(lambda x: x @ x, transforms=[AutocastTransform(torch.bfloat16)])(torch.ones(2, 2))


def test_a_format_that_needs_a_library_says_which_and_what_needs_none(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchao.prototype.quantization.int4", None)
    with pytest.raises(RuntimeError, match='needs torchao.*"nf4" needs no library.*bitsandbytes'):
        Quantise("torchao-int4")
