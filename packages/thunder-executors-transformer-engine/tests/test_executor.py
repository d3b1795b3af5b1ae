"""The executor in compiled functions; its library is a stand-in that rounds to eight bits and checks calls."""

import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from torch.testing import assert_close

import thunder_executors_transformer_engine as package
from thunder_executors import Library, get_executor
from thunder_executors_transformer_engine import InterfaceError, TransformerEngineExecutor, availability, library
from thunder_frontend import jit, last_backward_traces, last_traces
from thunder_testing import StandIn, Table

LARGEST = {"forward": 448.0, "backward": 57344.0}
TYPES = {"forward": torch.float8_e4m3fn, "backward": torch.float8_e5m2}


class Quantizer:
    """Rounds to eight bits, after scaling."""

    def __init__(self, state, column, dtype):
        self.state, self.column, self.dtype = state, column, dtype
        self.usage = None

    def set_usage(self, rowwise, columnwise):
        self.usage = (rowwise, columnwise)

    def __call__(self, tensor):
        assert self.usage is not None and any(self.usage)
        amax = tensor.abs().max().float()
        if isinstance(self.state.recipe, Recipes.DelayedScaling):
            self.state.amax_history[0, self.column] = torch.maximum(self.state.amax_history[0, self.column], amax)
            scale = self.state.scale[self.column]
        else:
            scale = LARGEST[self.state.mode] / amax
        most = LARGEST[self.state.mode]
        return (tensor.float() * scale).clamp(-most, most).to(self.dtype).float() / scale


class State:
    def __init__(self, recipe, mode, count):
        self.recipe, self.mode, self.count = recipe, mode, count
        if recipe.delayed():
            self.scale, self.amax_history = torch.ones(count), torch.zeros(4, count)

    def make_quantizers(self):
        return [Quantizer(self, i, TYPES[self.mode]) for i in range(self.count)]


class Recipes:
    class DelayedScaling:
        def delayed(self):
            return True

    class Float8CurrentScaling:
        def delayed(self):
            return False


TABLE = Table(
    "Transformer Engine",
    "2.20.0.dev0, commit d0067d0d",
    "NVIDIA/TransformerEngine transformer_engine/pytorch/ops/basic/basic_linear.py, pytorch/quantization.py",
    """
def _functional_forward(input: Tensor, weight: Tensor, *, alpha: float = 1.0, bias: Tensor | None = None, device: Any = None, dtype: dtype | None = None, out: Tensor | None = None, beta: float | None = None, accumulate_into_out: bool = False, tensor_parallel_mode: str | None = None, tensor_parallel_group: Any = None, sequence_parallel: bool = False, with_quantized_compute: bool = False, backward_override: str | None = None, input_quantizer: Quantizer | None = None, weight_quantizer: Quantizer | None = None, output_quantizer: Quantizer | None = None, input_requires_grad: bool = True, weight_requires_grad: bool = True) -> tuple[Tensor, Tensor | None, Tensor | None]: ...
def _functional_backward(grad_output: Tensor, input: Tensor | None, weight: Tensor | None, *, grad_input_alpha: float | None = None, input_requires_grad: bool = True, grad_weight_alpha: float | None = None, weight_requires_grad: bool = True, device: Any = None, dtype: dtype | None = None, grad_weight: Tensor | None = None, grad_weight_beta: float | None = None, accumulate_into_grad_weight: bool = False, grad_input: Tensor | None = None, grad_input_beta: float | None = None, accumulate_into_grad_input: bool = False, tensor_parallel_mode: str | None = None, tensor_parallel_group: Any = None, sequence_parallel: bool = False, with_quantized_compute: bool = False, input_quantizer: Quantizer | None = None, weight_quantizer: Quantizer | None = None, grad_output_quantizer: Quantizer | None = None, grad_input_quantizer: Quantizer | None = None) -> tuple[Tensor | None, Tensor | None]: ...
def create(recipe: Any, *, mode: str, num_quantizers: int = 1, device: device | None = None, roles: Any = None) -> State: ...
def _amax_and_scale_update(amax_history: Tensor, scale: Tensor, fp8_max: float, recipe: Any) -> None: ...
def get_fp8_max(recipe: Any, fprop: bool) -> float: ...
""",  # noqa: E501
    {"Tensor": torch.Tensor, "dtype": torch.dtype, "device": torch.device, "Quantizer": Quantizer, "State": State},
)


def forward(x, weight, alpha, bias, device, dtype, *rest):
    input_quantizer, weight_quantizer = rest[8], rest[9]
    y = input_quantizer(x) @ weight_quantizer(weight).T
    return (y if bias is None else y + bias.float()).to(dtype), None, None


def backward(dy, x, weight, *rest):
    dtype, (of_input, of_weight, of_gradient) = rest[5], rest[16:19]
    assert x.ndim == dy.ndim == 2
    g = of_gradient(dy)
    return (g @ of_weight(weight)).to(dtype), (g.T @ of_input(x)).to(dtype)


def update(history, scale, largest, recipe):
    amax = history.amax(0)
    scale.copy_(torch.where(amax > 0, largest / amax, scale))
    history.copy_(history.roll(1, 0))
    history[0] = 0


def modules():
    calls = StandIn(
        TABLE,
        {
            "_functional_forward": forward,
            "_functional_backward": backward,
            "create": lambda recipe, mode, count, device, roles: State(recipe, mode, count),
            "_amax_and_scale_update": update,
            "get_fp8_max": lambda recipe, fprop: LARGEST["forward" if fprop else "backward"],
        },
    )
    return calls


@pytest.fixture
def calls(monkeypatch):
    made = modules()
    found = library.Engine(
        made._functional_forward, made._functional_backward, made.create, made._amax_and_scale_update,
        made.get_fp8_max, Recipes,
    )  # fmt: skip
    monkeypatch.setattr(library, "engine", lambda: found)
    return made


ON_A_GPU = pytest.param(
    "device",
    marks=[pytest.mark.gpu, pytest.mark.skipif(package.missing() is not None, reason=f"{package.missing()}")],
)


@pytest.fixture(params=["stand-in", ON_A_GPU])
def devices(request):
    """The types of devices that are taken: the CPU with a stand-in, or a GPU, which is the default device then."""
    if request.param == "stand-in":
        request.getfixturevalue("calls")
    found = ("cpu",) if request.param == "stand-in" else ("cuda",)
    with torch.device(*found):
        yield found


@pytest.mark.parametrize("recipe", ["DelayedScaling", "Float8CurrentScaling"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_model_is_nearly_what_eager_gives_and_so_are_its_gradients(recipe, dtype, devices):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(32, 48), torch.nn.GELU(), torch.nn.Linear(48, 16, bias=False)).to(dtype)
    executor = TransformerEngineExecutor("te_test", recipe, devices)
    run = jit(model, executors=[executor, "torch"])
    x = torch.randn(2, 8, 32).to(dtype)
    for _ in range(3):  # a delayed recipe finds its scales
        model.zero_grad()
        y = run(x)
        y.float().square().sum().backward()
    found = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    expected = model(x)
    expected.float().square().sum().backward()
    assert y.dtype is dtype and not torch.equal(y, expected)
    for mine, truth in zip(
        [y.detach(), *found], [expected.detach(), *[p.grad for p in model.parameters()]], strict=True
    ):
        error = (mine.double() - truth.double()).norm() / truth.double().norm()
        assert error < 0.12, error
    assert "linear_0" in str(last_traces(run)[-1]) and "linear_gradient_1" in str(last_backward_traces(run)[-1])


@pytest.mark.parametrize("recipe", ["DelayedScaling", "Float8CurrentScaling"])
def test_each_layer_has_scales_of_its_own_and_delayed_ones_are_brought_up_to_date(recipe, calls):
    model = torch.nn.Sequential(torch.nn.Linear(32, 48), torch.nn.GELU(), torch.nn.Linear(48, 16))
    run = jit(model, executors=[TransformerEngineExecutor("te_test", recipe, devices=("cpu",)), "torch"])
    for _ in range(3):
        run(torch.randn(8, 32)).sum().backward()
    names = [call.name for call in calls.calls]
    assert names.count("_functional_forward") == 6 and names.count("create") == 4
    assert ("_amax_and_scale_update" in names) is (recipe == "DelayedScaling")


def test_what_a_recipe_keeps_belongs_to_the_weights_and_not_to_a_program(calls):
    model = torch.nn.Sequential(torch.nn.Linear(32, 48), torch.nn.GELU(), torch.nn.Linear(48, 16))
    executor = TransformerEngineExecutor("te_test", devices=("cpu",))
    run = jit(model, executors=[executor, "torch"], cache="constant values")
    for rows in (8, 16):  # two programs
        run(torch.randn(rows, 32)).sum().backward()
    with torch.no_grad():  # and a third
        run(torch.randn(8, 32))
    assert [call.name for call in calls.calls].count("create") == 4
    jit(model, executors=[executor, "torch"])(torch.full((8, 32), 7.0))
    kept = package.scales(model)
    assert sorted(kept) == ["0.weight", "2.weight"]
    assert sorted(kept["0.weight"]) == [
        "backward.amax_history", "backward.scale", "forward.amax_history", "forward.scale"
    ]  # fmt: skip
    assert 7.0 in kept["0.weight"]["forward.amax_history"][:, 0]


def test_what_a_recipe_keeps_can_be_saved_and_loaded(calls):
    first, second = torch.nn.Linear(32, 48), torch.nn.Linear(32, 48)
    second.load_state_dict(first.state_dict())
    runs = [
        jit(m, executors=[TransformerEngineExecutor("te_test", devices=("cpu",)), "torch"]) for m in (first, second)
    ]
    for _ in range(3):
        runs[0](torch.randn(8, 32)).sum().backward()
    saved = package.scales(first)
    package.load_scales(second, saved)
    assert_close(package.scales(second), saved)
    x = torch.randn(8, 32) * 9
    assert torch.equal(runs[0](x), runs[1](x))
    assert not torch.equal(saved["weight"]["forward.scale"], package.scales(first)["weight"]["forward.scale"])
    with pytest.raises(KeyError, match="and the recipe keeps nothing"):
        package.load_scales(second, saved, "Float8CurrentScaling")


def test_weights_that_are_computed_have_what_is_kept_at_their_place(calls):
    model = torch.nn.Linear(32, 48)
    run = jit(
        lambda x: torch.nn.functional.linear(x, model.weight * 2),
        executors=[TransformerEngineExecutor("te_test", devices=("cpu",)), "torch"],
    )
    for _ in range(2):
        run(torch.randn(8, 32)).sum().backward()
    assert [call.name for call in calls.calls].count("create") == 2 and package.scales(model) == {}


def test_the_recipe_is_an_option_by_name_or_as_an_instance(calls):
    executor, x = TransformerEngineExecutor("te_test", devices=("cpu",)), torch.randn(8, 32)
    recipe = Recipes.DelayedScaling()
    for given, delayed in ((recipe, True), ("Float8CurrentScaling", False), ("DelayedScaling", True)):
        before = len(calls.calls)
        jit(torch.nn.Linear(32, 16), executors=[executor, "torch"], fp8_recipe=given)(x)
        made = calls.calls[before:]
        assert ("_amax_and_scale_update" in [call.name for call in made]) is delayed
        assert (made[0].arguments["recipe"] is recipe) is (given is recipe)
    assert executor.configured(fp8_recipe=recipe) is executor.configured(fp8_recipe=recipe)
    assert executor.configured(fp8_recipe="DelayedScaling") is executor
    with pytest.raises(ValueError, match="there is no recipe 'Other'"):
        jit(torch.nn.Linear(32, 16), executors=[executor, "torch"], fp8_recipe="Other")


@pytest.mark.parametrize(
    "shape, weight, words",
    [
        ((7, 32), (16, 32), "rows of the input are 7"),
        ((8, 24), (16, 24), "features are 24"),
        ((8, 32), (9, 32), "outputs are 9"),
        ((32,), (16, 32), "at least two dimensions"),
    ],
)
def test_what_it_declines_has_its_reason_and_runs_as_before(shape, weight, words, calls):
    from thunder_ir import Tensor

    executor = TransformerEngineExecutor("te_test", devices=("cpu",))
    assert words in executor.takes(Tensor(shape), Tensor(weight)).reason
    x, w = torch.randn(shape), torch.randn(weight)
    run = jit(torch.nn.functional.linear, executors=[executor, "torch"])
    assert_close(run(x, w), torch.nn.functional.linear(x, w))
    assert not calls.calls


def test_a_version_that_lacks_something_is_named():
    def older(input, weight, *, bias=None, dtype=None):
        return None

    linear = SimpleNamespace(_functional_forward=older, _functional_backward=older)
    part = SimpleNamespace(ops=SimpleNamespace(BasicLinear=linear))
    states = SimpleNamespace(RecipeState=SimpleNamespace(create=older), _amax_and_scale_update=older, get_fp8_max=older)
    with pytest.raises(InterfaceError, match="older of Transformer Engine takes no input_quantizer, weight_quantizer"):
        library.of_modules(part, states, Recipes)
    with pytest.raises(InterfaceError, match="lacks what is called of it: .*RecipeState"):
        library.of_modules(part, SimpleNamespace(), Recipes)
    whole = library.Engine(older, older, older, older, older, Recipes)
    with pytest.raises(InterfaceError, match="no recipe MXFP8BlockScaling"):
        whole.recipe("MXFP8BlockScaling")


def test_it_is_found_by_its_entry_point_and_says_why_it_cannot_run(monkeypatch):
    assert get_executor("transformer_engine") is package.executor
    monkeypatch.setattr(availability, "ENGINE", Library("torch", "Transformer Engine"))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert package.missing() == "PyTorch sees no CUDA device"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (8, 0))
    assert package.missing() == "the device is of compute capability 8.0, and at least 8.9 is needed"
    monkeypatch.setattr(availability, "ENGINE", Library("no_engine", "Transformer Engine"))
    assert package.missing() == "Transformer Engine is not installed"


def test_importing_it_imports_no_library():
    program = "import sys, thunder_executors_transformer_engine; sys.exit('transformer_engine' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
