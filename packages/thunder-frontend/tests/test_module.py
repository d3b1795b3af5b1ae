"""The compiled module is in all else the module that it was made of."""

import copy
import inspect
import io

import pytest
import torch
from torch import nn

from thunder_frontend import ThunderModule, cache_hits, cache_misses, compile_data, compile_stats, jit
from thunder_ir import ThunderError


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.register_buffer("offset", torch.ones(3))
        self.note = "a note"

    def forward(self, x):
        return self.linear(x) + self.offset

    def helper(self):
        return 42


@pytest.fixture
def pair():
    module = Net()
    return module, jit(module)


def test_parameters_buffers_and_attributes_are_the_originals(pair):
    module, compiled = pair
    assert [n for n, _ in compiled.named_parameters()] == ["linear.weight", "linear.bias"]
    assert all(a is b for a, b in zip(compiled.parameters(), module.parameters(), strict=True))
    assert compiled.offset is module.offset
    assert (compiled.note, compiled.helper()) == ("a note", 42)
    assert isinstance(compiled, nn.Module)
    assert isinstance(compiled, ThunderModule)


def test_state_dicts_have_the_originals_keys_and_load(pair):
    module, compiled = pair
    assert list(compiled.state_dict()) == list(module.state_dict())
    other = jit(Net())
    other.load_state_dict(compiled.state_dict())
    x = torch.randn(2, 3)
    torch.testing.assert_close(other(x), module(x))


def test_modes_dtypes_and_attributes_are_set_on_the_original(pair):
    module, compiled = pair
    assert compiled.eval() is compiled
    assert (module.training, compiled.training) == (False, False)
    compiled.train()
    assert module.training
    compiled.to(torch.float64)
    assert module.linear.weight.dtype == torch.float64
    assert compiled(torch.randn(2, 3, dtype=torch.float64)).dtype == torch.float64
    compiled.note = "another"
    assert module.note == "another"
    compiled.requires_grad_(False)
    assert not module.linear.weight.requires_grad


def test_hooks_registered_on_the_compiled_module_run(pair):
    module, compiled = pair
    handle = compiled.register_forward_hook(lambda m, args, out: out * 0)
    x = torch.randn(2, 3)
    assert not compiled(x).any()
    handle.remove()
    torch.testing.assert_close(compiled(x), module(x))


def test_copies_are_compiled_modules_of_their_own(pair):
    module, compiled = pair
    twin = copy.deepcopy(compiled)
    x = torch.randn(2, 3)
    torch.testing.assert_close(twin(x), compiled(x))
    with torch.no_grad():
        twin.linear.weight.zero_()
    assert module.linear.weight.any()


def test_a_compiled_module_can_be_saved(pair):
    _, compiled = pair
    file = io.BytesIO()
    torch.save(compiled.state_dict(), file)
    torch.save(compiled, file)
    with compiled.no_sync():
        compiled(torch.randn(2, 3))


def test_the_original_stays_usable(pair):
    module, compiled = pair
    x = torch.randn(2, 3)
    compiled(x)
    assert type(module) is Net
    torch.testing.assert_close(module(x), compiled(x))


def test_optimizers_train_it(pair):
    module, compiled = pair
    optimizer = torch.optim.SGD(compiled.parameters(), lr=0.1)
    x = torch.randn(8, 3)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = compiled(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses == sorted(losses, reverse=True)


def test_a_compiled_container_is_a_container():
    layers = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    compiled = jit(layers)
    assert isinstance(compiled, ThunderModule)
    assert len(compiled) == 2 and list(compiled) == list(layers) and compiled[0] is layers[0]
    compiled[1] = nn.Tanh()
    x = torch.ones(2, 3)
    assert torch.equal(compiled(x), torch.tanh(layers[0](x)))
    assert len(copy.deepcopy(compiled)) == 2
    with pytest.raises(TypeError, match="no len"):
        len(jit(nn.Linear(3, 3)))


def test_forward_has_the_originals_signature_and_runs_compiled(pair):
    original, compiled = pair
    assert inspect.signature(compiled.forward) == inspect.signature(original.forward)
    x = torch.ones(2, 3)
    assert torch.equal(compiled.forward(x), original(x)) and cache_misses(compiled) == 1


def test_calls_are_counted():
    def function(x, fails):
        if fails:
            raise ValueError
        return x + 1

    for cache, hits, misses in (("constant values", 2, 1), ("same input", 2, 1), ("no caching", 0, 3)):
        compiled = jit(function, cache=cache)
        for _ in range(3):
            compiled(torch.ones(1), False)
        stats = compile_stats(compiled)
        assert (stats.calls, stats.cache_hits, stats.cache_misses) == (3, hits, misses)
        assert len(compile_data(compiled).compiled) == 1
    compiled = jit(function)
    with pytest.raises(ValueError):
        compiled(torch.ones(1), True)
    assert (cache_hits(compiled), cache_misses(compiled)) == (0, 0)


@pytest.mark.parametrize("layers", [1, 3])
def test_lazy_modules_that_a_function_uses_get_their_parameters_once(layers):
    torch.manual_seed(0)
    lazy = nn.Sequential(*[nn.Sequential(nn.LazyLinear(3), nn.LazyBatchNorm1d()) for _ in range(layers)])
    compiled = jit(lambda x: lazy(x) + 1)
    x = torch.randn(4, 5)
    result = compiled(x)
    kinds = {type(m) for m in lazy.modules()}
    assert kinds == {nn.Sequential, nn.Linear, nn.BatchNorm1d}
    for norm in lazy.modules():
        if isinstance(norm, nn.BatchNorm1d):
            assert norm.num_batches_tracked == 1
            norm.reset_running_stats()
    torch.testing.assert_close(result, lazy(x) + 1)
    compiled(x)
    assert cache_misses(compiled) == 1


def test_a_lazy_module_draws_eagers_parameters():
    def parameters(transform):
        lazy = nn.LazyLinear(3)
        torch.manual_seed(0)
        transform(lambda x: lazy(x))(torch.ones(2, 4))
        return lazy.weight

    torch.testing.assert_close(parameters(jit), parameters(lambda f: f))


def test_a_lazy_module_that_the_program_makes_is_refused():
    with pytest.raises(ThunderError, match="a lazy module gets its parameters when it is called; make it outside"):
        jit(lambda x: nn.LazyLinear(3)(x))(torch.ones(2, 4))


class Base(nn.Module):
    registered: list = []

    def __init_subclass__(cls, required=None, **kwargs):
        super().__init_subclass__(**kwargs)
        Base.registered.append(cls)

    def loss(self, x):
        return self(x).square().sum()


class Derived(Base):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.scale = 2.0

    def forward(self, x):
        return self.linear(x) * self.scale

    def loss(self, x):
        return super().loss(x) + self.penalty()

    def penalty(self):
        return type(self).weight_of(self) * self.scale

    def weight_of(self):
        return self.linear.weight.abs().sum()

    def by_forward(self, x):
        return self.forward(x) + 1

    def itself(self):
        return self


def test_methods_run_on_the_compiled_module():
    module = Derived()
    compiled = jit(module)
    x = torch.randn(2, 3)
    torch.testing.assert_close(compiled.loss(x), module.loss(x))
    torch.testing.assert_close(compiled.by_forward(x), module.by_forward(x))
    assert (cache_misses(compiled), cache_hits(compiled)) == (1, 1)
    assert compiled.itself() is compiled
    assert isinstance(compiled, Derived) and type(compiled).__name__ == "Derived" and Base.registered == [Derived]
    assert inspect.signature(type(compiled).forward) == inspect.signature(Derived.forward)


def test_a_forward_that_is_set_is_the_originals_and_runs_compiled(pair):
    module, compiled = pair
    x = torch.randn(2, 3)
    compiled(x)
    compiled.forward = lambda x: x * 3
    assert torch.equal(module(x), x * 3) and torch.equal(compiled(x), x * 3) and torch.equal(compiled.forward(x), x * 3)
    del compiled.forward
    torch.testing.assert_close(compiled(x), module.linear(x) + 1)
    assert cache_misses(compiled) == 2


def test_what_programs_read_of_a_compiled_module_is_guarded():
    module = jit(Derived())
    x = torch.randn(2, 3)
    program, method = jit(lambda x: module.loss(x) + x * module.scale), jit(module.loss)
    for scale in (2.0, 5.0):
        module.scale = scale
        torch.testing.assert_close(program(x), module.loss(x) + x * scale)
        torch.testing.assert_close(method(x), module.loss(x))


def test_its_class_makes_modules_as_the_originals_does(pair):
    module, compiled = pair
    made = type(compiled)()
    assert type(made) is Net and not isinstance(made, ThunderModule)
    sequence = jit(nn.Sequential(nn.Linear(3, 3), nn.ReLU()))
    assert type(sequence[:1]) is nn.Sequential


def test_classes_are_derived_from_the_originals(pair):
    _, compiled = pair
    with pytest.raises(TypeError, match="Further cannot be derived from that of compiled modules; derive it from Net"):
        type("Further", (type(compiled),), {})
    with pytest.raises(TypeError, match="derive it from Module, and compile its instances with thunder.jit"):
        type("Further", (ThunderModule,), {})


def test_a_module_of_lazy_ones_is_run_once():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.lazy, self.calls, self.kept = nn.LazyLinear(2), 0, []

        def forward(self, x):
            self.calls += 1
            self.kept.append(x.sum())
            return self.lazy(x)

    module = Counts()
    jit(module)(torch.ones(2, 3))
    assert module.calls == len(module.kept) == 1
    assert module.lazy.weight.shape == (2, 3)
