"""What models of well-known libraries do around their tensors."""

import abc
import functools
import logging

import pytest
import torch
from against_eager import same_as_eager

from thunder_frontend import DataDependentError, cache_misses, jit


def looks_at_its_code(function):
    @functools.wraps(function)
    def wrapper(x):
        return function(x) * function.__code__.co_argcount

    return wrapper


class Holder:
    pass


def test_decorators_look_at_the_code_of_what_they_call():
    holder = Holder()
    holder.first = looks_at_its_code(lambda x: x + 1)
    holder.second = looks_at_its_code(lambda x: x * 2)

    def program(holder, x):
        return holder.first(x) + holder.second(x)

    same_as_eager(program, holder, torch.randn(3))


class Counted:
    made = 0


def test_programs_write_attributes_of_classes():
    def program(x):
        Counted.made += 1
        Counted.last = "seen"
        return x * Counted.made

    try:
        compiled = jit(program)
        x = torch.ones(2)
        assert [compiled(x)[0].item() for _ in range(3)] == [1.0, 2.0, 3.0]
        assert (Counted.made, Counted.last) == (3, "seen")
    finally:
        Counted.made = 0
        del Counted.last


def test_a_program_that_fails_leaves_classes_as_they_were():
    def program(x):
        Counted.made += 1
        Counted.last = "seen"
        return x if x.sum() > 0 else -x

    with pytest.raises(DataDependentError):
        jit(program, outcomes=0)(torch.ones(2))
    assert Counted.made == 0
    assert not hasattr(Counted, "last")


class InstallsHooks(torch.nn.Module):
    """Puts hooks on its parts when it is first called, as models that capture hidden states do."""

    def __init__(self):
        super().__init__()
        self.parts = torch.nn.ModuleList(torch.nn.Linear(3, 3) for _ in range(2))
        self.installed = False

    def forward(self, x):
        if not self.installed:
            for index, part in enumerate(self.parts):
                part.register_forward_hook(lambda m, args, out, index=index: out + index)
            self.installed = True
        for part in self.parts:
            x = part(x)
        return x


def test_modules_install_hooks_on_their_first_call():
    eager, ours = InstallsHooks(), InstallsHooks()
    ours.load_state_dict(eager.state_dict())
    compiled, x = jit(ours), torch.randn(2, 3)
    for _ in range(3):
        torch.testing.assert_close(compiled(x), eager(x))
    assert [len(part._forward_hooks) for part in ours.parts] == [1, 1]
    assert cache_misses(compiled) == 2


def test_a_hook_that_is_there_for_one_call_is_gone_after_it():
    module = torch.nn.Linear(3, 3)

    def program(x):
        seen = []
        handle = module.register_forward_hook(lambda m, args, out: seen.append(out * 2))
        module(x)
        handle.remove()
        return seen[0], module(x)

    x = torch.randn(2, 3)
    expected = program(x)
    compiled = jit(program)
    for _ in range(3):
        torch.testing.assert_close(compiled(x), expected)
    assert not module._forward_hooks
    assert cache_misses(compiled) == 1


def test_programs_read_the_keys_of_dicts_that_they_write_to():
    def program(x, d):
        d["new"] = x + 1
        first = list(d)
        del d["old"]
        d["last"] = x * 2
        return first, list(d), "old" in d, "new" in d, [v * 1 for v in d.values()]

    same_as_eager(program, torch.randn(2), {"old": torch.randn(2), "kept": torch.randn(2)})


def test_programs_empty_dicts_and_fill_them_again():
    def program(x, d):
        del d["a"]
        empty = not d
        d["a"] = x
        return empty, len(d), d["a"] + 1

    same_as_eager(program, torch.randn(2), {"a": torch.randn(2)})


class Layer(abc.ABC):
    @abc.abstractmethod
    def update(self, x): ...


class Summed(Layer):
    def __init__(self, start):
        self.total = start

    def update(self, x):
        self.total = self.total + x
        return self.total


def test_one_program_serves_all_objects_of_an_abstract_class():
    def program(layer, x):
        return layer.update(x) if isinstance(layer, Layer) else x

    compiled, x = jit(program), torch.randn(3)
    for start in (1.0, 2.0):
        layer = Summed(torch.full((3,), start))
        assert torch.equal(compiled(layer, x), start + x)
        assert torch.equal(layer.total, start + x)
    assert cache_misses(compiled) == 1


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_contiguous_lays_out_anew_what_was_made_a_leaf(memory_format):
    def program(x):
        y = torch.zeros_like(x).requires_grad_()
        z = y[..., :2].permute(0, 2, 1, 3).contiguous(memory_format=memory_format)
        return z + 0, z.permute(0, 3, 2, 1).contiguous().view(2, -1) + 0

    with torch.no_grad():
        same_as_eager(program, torch.randn(2, 3, 4, 6))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("columns", [8, 5])
def test_products_of_experts_are_told_for_all_types_that_pytorch_computes(dtype, columns, caplog, monkeypatch):
    def program(x, weight, ends):
        y = torch.nn.functional.grouped_mm(x, weight.transpose(1, 2), offs=ends)
        y = y.mul_(2)  # asks how it is laid out
        return y, y.reshape(-1)

    x, weight = torch.randn(6, 8, dtype=dtype), torch.randn(3, columns, 8, dtype=dtype)
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    monkeypatch.setattr(logger, "handlers", [*logger.handlers, caplog.handler])
    same_as_eager(program, x, weight, torch.tensor([2, 4, 6], dtype=torch.int32))
    assert not caplog.records, "PyTorch complains of what its metadata does not know"


class Parts(tuple):
    """A tuple that does not tell its length, as those of e3nn do."""

    def __len__(self):
        raise NotImplementedError


class OfParts(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = Parts(((2, 3), (4, 5)))

    def forward(self, x):
        for parts in (self.parts, Parts(((1, 2),))):
            for factor, term in parts:
                x = x * factor + term
        return max(Parts((x, x)), key=lambda v: 1)


def test_tuples_may_hide_their_length():
    module, x = OfParts(), torch.randn(2)
    compiled = jit(module)
    for parts in (Parts(((2, 3), (4, 5))), Parts(((2, 3), (4, 5), (6, 7)))):
        module.parts = parts
        assert torch.equal(compiled(x), module(x)) and torch.equal(compiled(x), module(x))
    assert cache_misses(compiled) == 2
