"""Subclasses of ``torch.Tensor`` as inputs: they work as eager's, or are refused by name."""

import functools

import pytest
import torch
from against_eager import same_as_eager
from torch import nn
from torch.testing import assert_close

from thunder_frontend import AcquisitionError, cache_misses, interpreted_in_place_of, jit


class Named(torch.Tensor):
    def doubled(self):
        return self * 2


class Scaled(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})


class Wrapping(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return Wrapping(func(*[a.inner if isinstance(a, Wrapping) else a for a in args], **(kwargs or {})))


class Weight(nn.Parameter):
    def scaled(self, factor):
        return self * factor


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.shift = Weight(torch.ones(3)), nn.Buffer(torch.ones(3))

    def forward(self, x):
        return self.weight.scaled(2) * x + self.shift, hasattr(self.weight, "scaled"), hasattr(x, "scaled")


def test_plain_subclasses_keep_their_class_and_methods():
    same_as_eager(lambda x: (x.doubled(), x + 1), torch.ones(3).as_subclass(Named))


def test_subclasses_of_parameters_have_their_methods():
    same_as_eager(lambda layer, x: layer(x), Layer(), torch.ones(3))


@pytest.mark.parametrize(("make", "name"), [(lambda t: t.as_subclass(Scaled), "function"), (Wrapping, "dispatch")])
def test_subclasses_that_change_operations_are_refused(make, name):
    with pytest.raises(AcquisitionError, match=rf"args\[0\] is a .* says in __torch_{name}__"):
        jit(torch.sin)(make(torch.ones(3)))


NESTED = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])


class Keeps:
    held = torch.ones(3)


@pytest.mark.parametrize(
    ("program", "argument", "then"),
    [
        (lambda x: x * 2, torch.ones(3), NESTED),
        (lambda x: x[0] * 2, [torch.ones(3)], [NESTED]),
        (lambda x: x["a"].sum() * 2, {"a": nn.Parameter(torch.ones(3))}, {"a": nn.Parameter(NESTED)}),
    ],
)
@pytest.mark.parametrize("cache", ["constant values", "symbolic values"])
def test_nested_tensors_among_the_arguments_are_refused(program, argument, then, cache):
    compiled = jit(program, cache=cache)
    for _ in range(2):
        compiled(argument)
        with pytest.raises(AcquisitionError, match=r"args\[0\].* is a nested tensor"):
            compiled(then)


def test_nested_tensors_that_take_the_place_of_others_are_refused():
    kept = Keeps()
    compiled = jit(lambda x: x * kept.held)
    for _ in range(2):
        kept.held = torch.ones(3)
        assert compiled(torch.ones(3)).sum() == 3
        kept.held = NESTED
        with pytest.raises(AcquisitionError, match="is a nested tensor"):
            compiled(torch.ones(3))


@pytest.mark.parametrize("layers", [1, 8])
@pytest.mark.parametrize("name", ["weight", "running_mean"])
def test_nested_tensors_that_take_the_place_of_parameters_and_buffers_are_refused(layers, name):
    module = nn.Sequential(*[nn.BatchNorm1d(3) for _ in range(layers)]).eval().requires_grad_(False)
    compiled, last = jit(module), module[-1]
    for _ in range(2):
        before = getattr(last, name)
        compiled(torch.ones(2, 3))
        setattr(last, name, nn.Parameter(NESTED, False) if name == "weight" else NESTED)
        with pytest.raises(AcquisitionError, match="is a nested tensor"):
            compiled(torch.ones(2, 3))
        setattr(last, name, before)


@pytest.mark.parametrize("layers", [1, 8])
def test_parameters_that_become_nested_tensors_in_place_are_refused(layers):
    module = nn.Sequential(*[nn.Linear(3, 3) for _ in range(layers)]).requires_grad_(False)
    compiled, x = jit(module), torch.ones(2, 3)
    expected = module(x)
    for _ in range(3):
        for _ in range(3):
            assert_close(compiled(x), expected)
        nested = nn.Parameter(NESTED.clone(), False)
        torch.utils.swap_tensors(module[-1].weight, nested)
        with pytest.raises(AcquisitionError, match="is a nested tensor"):
            compiled(x)
        torch.utils.swap_tensors(module[-1].weight, nested)
    assert cache_misses(compiled) == 1


@pytest.mark.parametrize("layers", [2, 8])
def test_parameters_that_become_one_are_seen(layers):
    module = nn.Sequential(*[nn.Linear(3, 3) for _ in range(layers)])
    compiled, x = jit(module), torch.ones(2, 3)
    for _ in range(3):
        compiled(x)
    module[1].weight = module[0].weight
    result = compiled(x)
    assert_close(result, module(x))
    assert cache_misses(compiled) == 2


def test_objects_whose_special_methods_are_partial_objects_may_be_compared_inside_of_tuples():
    def equal(*objects, name):
        return type(objects[-1]) is Placed and name == "__hash__"

    class Placed:
        __eq__ = functools.partial(equal, name="__hash__")  # which modules have, too
        __hash__ = None

    first, second = Placed(), Placed()

    def program(x):
        return x + int((first,) == (second,))

    same_as_eager(program, torch.ones(2))


def test_another_function_is_interpreted_in_place_of_one_of_a_library_once():
    def given(x):
        raise NotImplementedError

    def written_out(x):
        return x * 2 if x.ndim == 1 else x

    interpreted_in_place_of(given)(written_out)
    with pytest.raises(ValueError, match="given is replaced already, by <function"):
        interpreted_in_place_of(given)(written_out)
    assert jit(lambda x: given(x), fallback="error")(torch.ones(2)).tolist() == [2.0, 2.0]
