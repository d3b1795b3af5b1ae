"""Hooks that are registered for one call: PyTorch numbers each, and a program is for all that do the same."""

import pytest
import torch
from torch import nn

from thunder_frontend import cache_misses, jit


class Scaled(nn.Module):
    def forward(self, x, *, factor=1.0):
        return x * factor


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.scaled = Scaled()

    def forward(self, x):
        return self.second(self.scaled(self.first(x).relu(), factor=2.0))


class Taken:
    """Keeps what modules return."""

    def __init__(self, name):
        self.name, self.kept = name, {}

    def take(self, module, args, result):
        self.kept[self.name] = result.detach() if self.name == "detached" else result


def by_closure(model, i):
    kept = {}
    handle = model.first.register_forward_hook(lambda module, args, result: kept.__setitem__("a", result + 1))
    return [handle], kept


def by_method(model, i):
    taken = Taken("detached")
    return [model.scaled.register_forward_hook(taken.take)], taken.kept


def before(model, i):
    return [model.second.register_forward_pre_hook(lambda module, args: args[0] * 3)], {}


def before_with_names(model, i):
    def change(module, args, kwargs):
        return (args[0] + 1,), {"factor": kwargs["factor"] * 2}

    return [model.scaled.register_forward_pre_hook(change, with_kwargs=True)], {}


def several(model, i):
    def add(module, args, result):
        return result + 1

    def scale(module, args, kwargs, result):
        return result * kwargs["factor"]

    hooks = model.scaled.register_forward_hook
    return [
        hooks(add),
        hooks(scale, with_kwargs=True),
        hooks(lambda module, args, result: result - 5, prepend=True),
    ], {}


def of_the_whole(model, i):
    return [model.register_forward_hook(lambda module, args, result: (result, args[0]))], {}


def by_a_number(model, i):
    def scale(module, args, result):
        return result * (i + 2)

    return [model.first.register_forward_hook(scale)], {}


def by_defaults(model, i):
    kept, handles = {}, []
    for name in ("first", "second"):

        def keep(module, args, result, name=name, factor=i + 2):
            kept[name] = result * factor

        handles.append(model.get_submodule(name).register_forward_hook(keep))
    return handles, kept


def by_a_default_that_is_kept_to(model, i):
    kept = {}

    def keep(module, args, result, kept=kept, owner=model):
        kept[type(owner).__name__] = result

    return [model.first.register_forward_hook(keep)], kept


def by_some_calls_only(model, i):
    return by_closure(model, i) if i % 2 else ([], {})


def by_other_numbers_of_hooks(model, i):
    return [model.second.register_forward_hook(lambda module, args, result: result + 1) for _ in range(i % 3)], {}


def by_other_forms(model, i):
    def change(module, args, *rest):
        return rest[-1] * len(rest)

    return [model.scaled.register_forward_hook(change, with_kwargs=i % 2 == 0)], {}


PROGRAMS = {
    by_closure: 2, by_method: 2, before: 2, before_with_names: 2, several: 2, of_the_whole: 2, by_a_number: 3, by_defaults: 3,
    by_a_default_that_is_kept_to: 2,
    by_some_calls_only: 3, by_other_numbers_of_hooks: 5, by_other_forms: 4,
}  # fmt: skip


@pytest.mark.parametrize("register", PROGRAMS)
@pytest.mark.parametrize("grad", [False, True])
def test_hooks_of_one_call_take_no_program_each(register, grad):
    model = Model()
    compiled = jit(model)
    for i in range(8):
        x = torch.randn(3, 4)
        found = []
        for callee in (model, compiled):
            handles, kept = register(model, i)
            with torch.set_grad_enabled(grad):
                result = callee(x)
            for handle in handles:
                handle.remove()
            found.append((result, kept))
        (expected, kept_by_eager), (result, kept) = found
        torch.testing.assert_close(result, expected)
        torch.testing.assert_close(kept, kept_by_eager)
    assert cache_misses(compiled) <= PROGRAMS[register]


def test_hooks_of_two_calls_that_do_other_things_are_told_apart():
    model, x = nn.Sequential(nn.Linear(4, 4), nn.ReLU()), torch.randn(3, 4)
    compiled = jit(model)
    hooks = [lambda module, args, result: result + 1, lambda module, args, result: result * 3]
    for hook in hooks * 3:
        handle = model[0].register_forward_hook(hook)
        assert torch.equal(compiled(x), model(x))
        handle.remove()
    assert torch.equal(compiled(x), model(x))


def test_a_hook_that_returns_what_pytorch_refuses_is_an_error_as_in_eager():
    model = Model()
    compiled, x = jit(model), torch.randn(3, 4)
    model.scaled.register_forward_pre_hook(lambda module, args, kwargs: "args", with_kwargs=True)
    with pytest.raises(RuntimeError) as eager:
        model(x)
    with pytest.raises(RuntimeError) as error:
        compiled(x)
    assert str(error.value) == str(eager.value)


def test_hooks_that_a_program_registers_are_called():
    class Registering(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = nn.Linear(4, 4)

        def forward(self, x):
            handle = self.part.register_forward_hook(lambda module, args, result: result * 2)
            once = self.part(x)
            handle.remove()
            return once + self.part(x)

    model, x = Registering(), torch.randn(3, 4)
    compiled = jit(model)
    for _ in range(4):
        torch.testing.assert_close(compiled(x), model(x))
    assert not model.part._forward_hooks


def test_hooks_of_all_modules_and_those_that_run_whatever_happens_are_called():
    model, x, seen = Model(), torch.randn(3, 4), []
    compiled = jit(model)
    compiled(x)
    handle = nn.modules.module.register_module_forward_hook(lambda module, args, result: seen.append(type(module)))
    expected, eager = model(x), list(seen)
    seen.clear()
    assert torch.equal(compiled(x), expected)
    assert seen == eager
    handle.remove()
    model.first.register_forward_hook(lambda module, args, result: result + 1, always_call=True)
    assert torch.equal(compiled(x), model(x))
