"""Guards on many tensors in native code: what passes is what PyTorch's own check passed, and nothing else."""

import importlib
import os
import subprocess
import sys
from weakref import WeakValueDictionary

import pytest
import torch
from torch import nn

import thunder_native.guards
import thunder_native.layout
from thunder_frontend import cache_misses, jit, last_prologue_traces
from thunder_guards import HeldFacts, shared_row
from thunder_native.runtime import missing, runtime

pytestmark = pytest.mark.skipif(missing() is not None, reason=f"native code cannot run: {missing()}")

GPU = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no CUDA device"),
]


@pytest.fixture
def tensors():
    runtime()
    return (
        torch.ones(3),
        nn.Parameter(torch.ones(2, 3)),
        torch.ones(4, dtype=torch.int64),
        torch.ones(()),
        torch.ones(0, 2),
    )


def test_the_same_tensors_pass_and_others_do_not(tensors):
    same = thunder_native.guards.unchanged(tensors, 1)
    assert same(tensors) is True and same((torch.zeros(5, 5), *tensors[1:])) is True
    for place in range(1, len(tensors)):
        other = tensors[place].detach().clone().requires_grad_(tensors[place].requires_grad)
        assert same((*tensors[:place], other, *tensors[place + 1 :])) is False
    assert same(tensors[:-1]) is False and same((*tensors, tensors[0])) is False


def test_the_first_ones_are_apart_from_each_other_and_from_the_rest(tensors):
    one = thunder_native.guards.unchanged(tensors, 1)
    assert not any(one((t, *tensors[1:])) for t in tensors[1:])
    two = thunder_native.guards.unchanged(tensors, 2)
    assert (
        two(tensors)
        and two((tensors[1], tensors[0], *tensors[2:]))
        and not two((tensors[0], *tensors[::2], tensors[4]))
    )
    assert not two((tensors[0], tensors[0], *tensors[2:])) and not two((tensors[0], tensors[2], *tensors[2:]))


CHANGES = {
    "requires_grad": lambda t: t.requires_grad_(not t.requires_grad),
    "sizes": lambda t: setattr(t, "data", torch.ones(3, 2)),
    "strides": lambda t: setattr(t, "data", torch.ones(3, 2).t()),
    "dtype": lambda t: setattr(t, "data", t.data.double()),
    "class": lambda t: setattr(t, "__class__", type("Sub", (type(t),), {})),
    "conjugate": lambda t: setattr(t, "data", torch._neg_view(t.data)),
    "device": lambda t: torch.utils.swap_tensors(t, torch.ones(2, 3, device="meta")),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_tensor_that_changed_does_not_pass(tensors, change):
    changing = torch.ones(2, 3)
    every = (*tensors, changing)
    same = thunder_native.guards.unchanged(every, 1)
    assert same(every)
    CHANGES[change](changing)
    assert not same(every)


def test_where_native_code_is_not_at_hand_there_is_no_snapshot(tensors, monkeypatch):
    monkeypatch.setattr(thunder_native.guards, "is_at_hand", lambda: False)
    assert thunder_native.guards.unchanged(tensors, 1) is None


def test_native_code_is_made_once_as_much_time_went_into_checks(tensors, monkeypatch):
    monkeypatch.setattr(thunder_native.guards, "is_at_hand", lambda: False)
    often = thunder_native.guards.WORTH // len(tensors)
    assert thunder_native.guards.unchanged(tensors, 1, often - 1) is None
    same = thunder_native.guards.unchanged(tensors, 1, often)
    assert same is not None and same(tensors)


def test_where_native_code_cannot_run_there_is_no_snapshot(tensors, monkeypatch):
    def cannot():
        raise RuntimeError("native code cannot run here")

    monkeypatch.setattr(thunder_native.guards, "runtime", cannot)
    assert thunder_native.guards.unchanged(tensors, 1, thunder_native.guards.WORTH) is None


@pytest.mark.parametrize("device", ["meta", pytest.param("cuda", marks=GPU)])
def test_tensors_may_be_on_any_device(tensors, device):
    elsewhere = torch.ones(2, 3, device=device)
    every = (*tensors, elsewhere)
    same = thunder_native.guards.unchanged(every, 1)
    assert same(every)
    torch.utils.swap_tensors(elsewhere, torch.ones(2, 3))
    assert not same(every)


def network():
    return nn.Sequential(*[nn.Linear(4, 4) for _ in range(12)])


def change_a_shape(module):
    module[3] = nn.Linear(4, 4, bias=False)


def share(module):
    module[3].weight = module[5].weight


def other_numbers(module):
    module[3].weight.data = torch.ones(4, 4, dtype=torch.float64).float().t().contiguous().t()


def freeze(module):
    module[3].weight.requires_grad_(False)


@pytest.mark.parametrize("change", [change_a_shape, share, other_numbers, freeze])
@pytest.mark.parametrize("compilers_loaded", [False, True])
def test_a_program_is_made_again_where_eager_would_notice(change, compilers_loaded, monkeypatch):
    if compilers_loaded:
        importlib.import_module("torch._dynamo.guards")
    made = []
    monkeypatch.setattr("thunder_guards._codegen.tensor_checks._SHARED", WeakValueDictionary())
    monkeypatch.setattr(
        "thunder_guards._codegen.tensor_checks._SNAPSHOTS",
        [lambda *given: made.append(thunder_native.guards.unchanged(*given)) or made[-1]],
    )
    module, x = network(), torch.randn(2, 4)
    compiled = jit(module)
    for _ in range(8):
        compiled(x)
    assert len(made) == 1 and made[0] is not None and cache_misses(compiled) == 1
    change(module)
    for _ in range(8):
        torch.testing.assert_close(compiled(x), module(x))
    found = torch.autograd.grad(compiled(x).sum(), [p for p in module.parameters() if p.requires_grad])
    expected = torch.autograd.grad(module(x).sum(), [p for p in module.parameters() if p.requires_grad])
    for pair in zip(found, expected, strict=True):
        torch.testing.assert_close(*pair)


class Named(nn.Module):
    """Layers with attributes that a program reads."""

    def __init__(self, count):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(count)])
        self.scale = 2.0
        self.extra = {}

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x)) * self.scale
        return x if not self.extra else x + 1


FACTS = {
    "an attribute": lambda m: setattr(m, "scale", 3.0),
    "an attribute of a layer": lambda m: setattr(m.layers[3], "bias", None),
    "a name in a layer": lambda m: setattr(m.layers[7], "forward", lambda x: x * 2),
    "what was empty": lambda m: m.extra.update(a=1),
    "a hook": lambda m: m.layers[2].register_forward_hook(lambda *args: args[2] * 2),
    "a class": lambda m: setattr(m.layers[5], "__class__", type("Other", (nn.Linear,), {"forward": lambda s, x: -x})),
    "the attributes as a whole": lambda m: setattr(m.layers[1], "__dict__", {**nn.Linear(4, 4).__dict__}),
    "a method of a class": lambda m: setattr(nn.Linear, "extra_repr", lambda self: ""),
}


@pytest.mark.parametrize("change", FACTS)
def test_facts_that_change_are_noticed_when_native_code_tells_them(change):
    runtime()
    torch.manual_seed(0)
    module, x = Named(12), torch.randn(2, 4)
    compiled = jit(module, executors=["+native"])
    before = nn.Linear.extra_repr
    with torch.no_grad():
        for _ in range(10):
            compiled(x)
        (facts,) = told_by(compiled)
        assert told(facts, x) is True
        try:
            FACTS[change](module)
            for _ in range(3):
                assert torch.equal(compiled(x), module(x))
        finally:
            nn.Linear.extra_repr = before


def told(facts, *tensors):
    """Return what is told for a call with these tensors, as far as they are looked at."""
    return facts.hold(*tensors[: len(facts.facts.tensors)])


def told_by(compiled):
    """Return what native code tells of facts in the latest program's prologue."""
    prologue = last_prologue_traces(compiled)[-1]
    return [v for v in prologue.context.globals.values() if type(v).__name__ == "FactsCheck"]


def test_programs_that_rely_on_the_same_share_what_tells_it():
    module, x = Named(12), torch.randn(2, 4)
    compiled = jit(module, executors=["+native"])
    with torch.no_grad():
        compiled(x)
        (first,) = told_by(compiled)
        for _ in range(5):
            compiled(x.clone().requires_grad_())
        (second,) = told_by(compiled)
        assert first is second and told(first, x) and cache_misses(compiled) == 2
        module.scale = 3.0
        assert not told(first, x) and torch.equal(compiled(x), module(x))


def test_kinds_of_facts_of_which_there_are_none_are_told_apart():
    runtime()
    none, objects = shared_row([]), shared_row([3, "a"])
    rows = [none] * 6 + [objects, shared_row([int, str]), *[none] * 9]
    assert thunder_native.guards.as_found(HeldFacts(0, (), *rows[:2], [], *rows[2:]))() is True
    rows[7] = shared_row([int, int])
    assert thunder_native.guards.as_found(HeldFacts(0, (), *rows[:2], [], *rows[2:]))() is False


def test_code_of_functions_is_told():
    runtime()
    functions = [eval(f"lambda x: x * {i} + 1") for i in range(80)]

    def program(x):
        for function in functions:
            x = function(x)
        return x

    compiled, x = jit(program, executors=["+native"]), torch.randn(3)
    for _ in range(10):
        compiled(x)
    (facts,) = told_by(compiled)
    assert len(facts.facts.codes) >= 80 and told(facts, x) is True
    functions[40].__code__ = (lambda x: x - 5).__code__
    assert told(facts, x) is False
    assert torch.equal(compiled(x), program(x)) and cache_misses(compiled) == 2


NAMES = {"some", "names"}


def test_a_set_that_lacks_a_name_leaves_the_other_facts_to_native_code():
    runtime()
    module, x = Named(12), torch.randn(2, 4)

    def program(x):
        return module(x) * (2 if "scale" in NAMES else 3)

    compiled = jit(program, executors=["+native"])
    with torch.no_grad():
        for _ in range(10):
            compiled(x)
        (facts,) = told_by(compiled)
        assert told(facts, x) is True
        NAMES.add("scale")
        try:
            assert torch.equal(compiled(x), program(x))
        finally:
            NAMES.remove("scale")


CALLED = """
import sys, torch, thunder
from thunder_native.guards import as_found
model = torch.nn.Sequential(*[torch.nn.Linear(2, 2) for _ in range(12)])
compiled, x = thunder.jit(model, executors=["torch"]), torch.ones(1, 2)
for _ in range(8):
    compiled(x)
found = thunder.last_prologue_traces(compiled)[-1].context.globals.values()
print([v.hold.__name__ for v in found if type(v).__name__ == "FactsCheck"], "llvmlite" in sys.modules)
"""


def test_native_code_for_guards_is_read_from_disk_and_not_compiled(tmp_path):
    def told(folder):
        run = [sys.executable, "-c", CALLED]
        environment = {**os.environ, "THUNDER_LLVM_CACHE": folder}
        return subprocess.run(run, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()[-1]

    assert told(str(tmp_path)) == told("") == "['_unknown'] False"
    subprocess.run(
        [sys.executable, "-c", "from thunder_native.runtime import runtime; runtime()"],
        env={**os.environ, "THUNDER_LLVM_CACHE": str(tmp_path)}, check=True,
    )  # fmt: skip
    assert told(str(tmp_path)) == "['native'] False"


def test_what_only_looks_like_a_function_is_left_to_python():
    runtime()
    like = type("Like", (), {"__code__": (lambda: 0).__code__})()
    none = shared_row([])
    for function, is_told in ((test_code_of_functions_is_told, True), (like, False)):
        code = shared_row([function]), shared_row([function.__code__])
        facts = HeldFacts(0, (), none, none, [], *[none] * 8, *code, *[none] * 5)
        made = thunder_native.guards.as_found(facts)
        assert (made is not None) is is_told and (not is_told or made())


def test_an_equal_value_in_the_place_of_another_one_is_taken():
    module, x = Named(12), torch.randn(2, 4)
    compiled = jit(module, executors=["+native"])
    with torch.no_grad():
        for _ in range(10):
            compiled(x)
        (facts,) = told_by(compiled)
        module.scale = float("2.0")  # another object
        assert told(facts, x) is False
        compiled(x)
        assert told(facts, x) is True and cache_misses(compiled) == 1


def test_what_changes_at_each_call_is_left_to_python():
    module, x = Named(12), torch.randn(2, 4)
    compiled = jit(module, executors=["+native"])
    with torch.no_grad():
        for _ in range(40):
            module.scale = float("2.0")
            compiled(x)
    (facts,) = told_by(compiled)
    assert not hasattr(facts.hold, "__self__") and told(facts, x) is False and cache_misses(compiled) == 1


class Scaling:
    """Has a method that programs call."""

    def scaled(self, x):
        return x * 2


SCALING = Scaling()


def few_facts(a, b):
    return SCALING.scaled(a + b) * a


def double_levels(compiled, a, b):
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(a, torch.ones_like(a))
        return torch.autograd.forward_ad.unpack_dual(compiled(dual, b)).tangent


class Doubling(torch.overrides.TorchFunctionMode):
    """Sees each function."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        return result * 2 if function is torch.Tensor.add else result


def under_a_mode(compiled, a, b):
    with Doubling():
        return compiled(a, b)


OTHERWISE = {
    "a method": lambda f, a, b: patched(Scaling, "scaled", lambda self, x: x * 3, f, a, b),
    "a method of tensors": lambda f, a, b: patched(torch.Tensor, "__mul__", torch.Tensor.__add__, f, a, b),
    "code": lambda f, a, b: patched(Scaling.scaled, "__code__", (lambda self, x: x - 1).__code__, f, a, b),
    "forward mode": double_levels,
    "a mode of functions": under_a_mode,
    "a transform": lambda f, a, b: torch.func.vmap(f)(a, b),
    "a nested tensor": lambda f, a, b: f(nested(a), nested(b)).to_padded_tensor(0.0),
    "a conjugate view": lambda f, a, b: f(torch._neg_view(a), b),
    "a subclass": lambda f, a, b: f(a.as_subclass(type("Sub", (torch.Tensor,), {})), b),
    "another shape": lambda f, a, b: f(a[:1], b),
}


def patched(owner, name, value, function, *args):
    before = owner.__dict__.get(name) if isinstance(owner, type) else getattr(owner, name)
    setattr(owner, name, value)
    try:
        return function(*args)
    finally:
        if before is None:
            delattr(owner, name)
        else:
            setattr(owner, name, before)


def nested(tensor):
    return torch.nested.nested_tensor([row[: i + 1] for i, row in enumerate(tensor)])


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors", "ignore:.*runs in Python")
@pytest.mark.parametrize("otherwise", OTHERWISE)
def test_few_facts_and_what_tensors_are_is_told_and_what_changes_is_noticed(otherwise):
    runtime()
    compiled, a, b = jit(few_facts), torch.randn(2, 3), torch.randn(2, 3)
    for _ in range(6):
        torch.testing.assert_close(compiled(a, b), few_facts(a, b))
    (facts,) = told_by(compiled)
    assert facts.facts.tensors and len(facts.facts) < 20 and facts.hold(a, b) is True and facts.hold(a) is False
    ours, eagers = OTHERWISE[otherwise](compiled, a, b), OTHERWISE[otherwise](few_facts, a, b)
    assert type(ours).__name__ == type(eagers).__name__
    torch.testing.assert_close(ours.as_subclass(torch.Tensor), eagers.as_subclass(torch.Tensor))
    torch.testing.assert_close(compiled(a, b), few_facts(a, b))


def test_under_a_default_device_facts_are_told():
    runtime()
    compiled, x = jit(few_facts), torch.randn(2, 3)
    with torch.device("cpu"):
        for _ in range(6):
            compiled(x, x.clone())
        (facts,) = told_by(compiled)
        assert facts.facts.modes == 1 and facts.hold(x, x) is True
    assert facts.hold(x, x) is False
    torch.testing.assert_close(compiled(x, x + 1), few_facts(x, x + 1))


def test_a_class_whose_own_class_is_the_users_is_asked_in_python():
    runtime()

    class Meta(type):
        """May come to have a say in what its classes are asked for."""

    class Odd(metaclass=Meta):
        """Has a method."""

        def scaled(self, x):
            return x * 2

    odd = Odd()

    def program(x):
        return odd.scaled(x) + x

    compiled, x = jit(program), torch.randn(3)
    for _ in range(6):
        compiled(x)
    (facts,) = told_by(compiled)
    assert Odd not in facts.facts.classes and facts.hold(x) is True


def test_the_order_of_classes_is_told():
    runtime()
    module, x = Named(12), torch.randn(2, 4)
    compiled = jit(module)
    with torch.no_grad():
        for _ in range(8):
            compiled(x)
        (facts,) = told_by(compiled)
        assert nn.Linear in facts.facts.ordered and told(facts, x) is True
    assert thunder_native.layout.offset_of_order() is not None


def test_storages_are_told_apart():
    runtime()
    tensors = [torch.ones(3), nn.Parameter(torch.ones(2)), torch.ones(()), *[torch.ones(1) for _ in range(300)]]
    apart = thunder_native.guards.apart
    assert apart(*tensors) and apart() and apart(tensors[0])
    assert not apart(*tensors, tensors[0][1:]) and not apart(*tensors, tensors[7])
    assert not apart(tensors[0], tensors[0].detach()) and not apart(
        torch.ones(2).as_subclass(type("S", (torch.Tensor,), {}))
    )
