"""Transforms of programs, and recipes and plugins."""

from contextlib import contextmanager

import pytest
import torch

from thunder_frontend import cache_option, jit, last_prologue_traces, last_traces, list_transforms
from thunder_transforms import (
    AroundEach,
    ConstantFolding,
    DebugTransform,
    ITTProfileTransform,
    LORATransform,
    NvtxProfileTransform,
    Plugin,
    PluginPolicy,
    ProfileTransform,
    PrunePrologueChecks,
    Quantise,
    Recipe,
    compile,
    debug_execution_trace,
    plugins,
    recipes,
)


def positions(x):
    places = torch.arange(x.shape[-1])
    return places[:, None] < places


def folded_names(compiled):
    return [b.symbol.name for b in last_traces(compiled)[-1].bound_symbols]


def test_what_depends_on_no_input_is_computed_once():
    def masked(x, w):
        return (x @ w).masked_fill(positions(x), 0.0)

    x, w = torch.randn(4, 4), torch.randn(4, 4, requires_grad=True)
    compiled = jit(masked, transforms=[ConstantFolding()], fallback="error")
    torch.testing.assert_close(compiled(x, w), masked(x, w))
    assert "constant" in folded_names(compiled) and "arange" not in str(last_traces(compiled)[-1])
    found, expected = (torch.autograd.grad(f(x, w).square().sum(), w) for f in (compiled, masked))
    torch.testing.assert_close(found, expected)


class Scale(torch.nn.Module):
    factor = 2.0

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))

    def forward(self, x, power=1):
        return x * self.weight * self.factor**power


def test_guards_on_the_module_are_left_out_and_those_on_arguments_are_not():
    model = Scale()
    compiled = jit(model, transforms=[PrunePrologueChecks()], fallback="error", cache="constant values")
    checked = jit(model, fallback="error", cache="constant values")
    x = torch.randn(3)
    assert torch.equal(compiled(x), checked(x))
    count = [len(str(last_prologue_traces(f)[-1])) for f in (compiled, checked)]
    assert count[0] < count[1]
    model.factor = 3.0
    assert torch.equal(compiled(x), 2 * x)
    assert torch.equal(checked(x), 3 * x)
    assert torch.equal(compiled(x, power=2), 9 * x)
    assert torch.equal(compiled(torch.ones(2, 3)), torch.full((2, 3), 3.0))
    model.weight = torch.nn.Parameter(torch.full((3,), 2.0))
    assert torch.equal(compiled(x), 4 * x)
    model.weight = torch.nn.Parameter(torch.ones(1))
    assert compiled(x).shape == (3,)


def test_all_guards_but_those_on_tensors_can_be_left_out():
    compiled = jit(Scale(), transforms=[PrunePrologueChecks(prune_all_checks=True)], fallback="error")
    x = torch.randn(3)
    assert torch.equal(compiled(x, power=1), 2 * x)
    assert torch.equal(compiled(x, power=2), 2 * x)
    assert compiled(torch.ones(2, 3), power=2).shape == (2, 3)


def test_a_constant_that_is_returned_is_nobodys_to_change():
    compiled = jit(lambda x: (x + 1, positions(x) * 1), transforms=[ConstantFolding()], fallback="error")
    _, first = compiled(torch.ones(3))
    expected = first.clone()
    first.fill_(7)
    _, second = compiled(torch.ones(3))
    torch.testing.assert_close(second, expected)


def test_a_constant_that_is_written_to_begins_anew():
    def counted(x):
        total = torch.zeros(3) * 2
        total += x
        return total

    compiled = jit(counted, transforms=[ConstantFolding()], fallback="error")
    for _ in range(2):
        torch.testing.assert_close(compiled(torch.ones(3)), torch.ones(3))


def test_random_numbers_and_large_results_are_not_folded():
    noisy = jit(lambda x: x + torch.rand(3) * 2, transforms=[ConstantFolding()])
    assert not torch.equal(noisy(torch.zeros(3)), noisy(torch.zeros(3)))
    large = jit(lambda x: positions(x) & (x > 0), transforms=[ConstantFolding(most_bytes=8)])
    large(torch.ones(64))
    assert "constant" not in folded_names(large)


def test_each_operation_runs_inside_of_its_context_and_leaves_it_when_it_raises():
    entered, left = [], []

    @contextmanager
    def noted(name):
        entered.append(name)
        try:
            yield
        finally:
            left.append(name)

    compiled = jit(lambda x, i: (x * 2)[i].sin(), executors=["torch"], transforms=[AroundEach(noted)])
    i = torch.tensor([0])
    torch.testing.assert_close(compiled(torch.ones(2), i), torch.full((1,), 2.0).sin())
    assert entered == left and "mul" in entered and "sin" in entered
    with pytest.raises(IndexError):
        compiled(torch.ones(2), torch.tensor([5]))
    assert entered == left


def test_operations_show_in_the_profiler_forward_and_backward():
    profile = ProfileTransform()
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh())
    compiled = jit(model, executors=["torch"], transforms=[profile])
    with torch.profiler.profile() as seen:
        compiled(torch.ones(2, 4)).sum().backward()
    names = {event.key for event in seen.key_averages()}
    assert set(profile.calls) <= names and {"linear", "tanh"} <= names
    assert all([seconds > 0 for seconds in profile.seconds.values()])
    assert sum(profile.calls.values()) > 2  # those of the backward program, too


def test_ranges_of_hardware_profilers_need_a_build_that_has_them():
    if torch.profiler.itt.is_available():
        compiled = jit(lambda x: x * 2, executors=["torch"], transforms=[ITTProfileTransform()])
        torch.testing.assert_close(compiled(torch.ones(2)), torch.full((2,), 2.0))
    else:
        with pytest.raises(RuntimeError, match="built with ITT"):
            ITTProfileTransform()
    if torch.version.cuda is None:
        with pytest.raises(RuntimeError, match="built with CUDA"):
            NvtxProfileTransform()


def test_a_callback_sees_what_each_operation_is_given():
    seen = []
    compiled = debug_execution_trace(
        lambda x: (x * 2).sin(), lambda bound, *args, **kwargs: seen.append((bound.symbol.name, args[0].clone())),
        executors=["torch"],
    )  # fmt: skip
    compiled(torch.ones(2))
    assert [name for name, _ in seen] == ["mul", "sin"]
    torch.testing.assert_close(seen[1][1], torch.full((2,), 2.0))
    debug = DebugTransform(lambda bound, *args: float(args[0].sum()))
    jit(lambda x: x * 2, executors=["torch"], transforms=[debug])(torch.ones(2))
    assert list(debug.said.values()) == [2.0]


def test_a_recipe_is_found_for_a_model_and_plugins_by_name():
    model = compile(torch.nn.Sequential(torch.nn.Linear(8, 8)), plugins=["quantize-int8", "profile"])
    assert [type(t) for t in list_transforms(model)] == [Quantise, ProfileTransform]
    assert str(cache_option(model)).endswith("auto")

    class PreTrainedModel(torch.nn.Linear):
        pass

    generating = compile(PreTrainedModel(2, 2), plugins="quantize_int8")
    assert str(cache_option(generating)).endswith("auto")
    with pytest.raises(ValueError, match="the recipe HFTransformers is not meant for Linear"):
        compile(torch.nn.Linear(2, 2), recipe="hf-transformers")
    assert recipes.get_recipes()[:2] == ["base", "hf-transformers"]


def test_options_go_before_plugins_and_plugins_before_the_recipe():
    class Symbolic(Plugin):
        policy = PluginPolicy.POST

        def setup_config(self):
            return {"cache": "symbolic values"}

        def setup_transforms(self):
            return [LORATransform(r=1)]

        def setup_executors(self):
            return ["torch"]

    class Mine(Recipe):
        def setup_config(self):
            return {"cache": "auto", "fallback": "error"}

        def setup_transforms(self):
            return [Quantise("int8")]

    compiled = compile(torch.nn.Sequential(torch.nn.Linear(4, 4)), recipe=Mine, plugins=Symbolic())
    assert str(cache_option(compiled)).endswith("symbolic values")
    assert [type(t) for t in list_transforms(compiled)] == [Quantise, LORATransform]
    recipe = Mine()
    told = compile(lambda x: x, recipe=recipe, plugins=Symbolic(), cache="no caching")
    assert str(cache_option(told)).endswith("no caching")
    assert recipe.plugins == [] and recipe.options == {}


def test_what_is_not_there_is_named():
    with pytest.raises(ValueError, match="there is no plugin 'nothing'; there are quantize-int8"):
        compile(torch.nn.Linear(2, 2), plugins="nothing")
    with pytest.raises(ValueError, match="there is no recipe 'nothing'"):
        compile(torch.nn.Linear(2, 2), recipe="nothing")
    for name, executor in (("reduce-overhead", "CUDA graphs"), ("fp8", "transformer_engine")):
        with pytest.raises(RuntimeError, match=executor):
            compile(torch.nn.Linear(2, 2), plugins=name)
    with pytest.raises(TypeError, match="neither"):
        compile(torch.nn.Linear(2, 2), plugins=[3])
    with pytest.raises(ValueError, match="there is a plugin 'profile' already"):
        plugins.register_plugin("profile", Plugin)
