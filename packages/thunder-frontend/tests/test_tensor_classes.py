"""Subclasses of ``torch.Tensor`` as inputs: they work as eager's, or are refused by name."""

import functools

import pytest
import torch
from against_eager import same_as_eager
from torch import nn
from torch.testing import assert_close
from torch.utils._pytree import tree_leaves

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


class OfNamed(Named):
    pass


@pytest.mark.parametrize(
    "program",
    [
        lambda x: (isinstance(x, Named), isinstance(x + 1, Named), type((x + 1).max(0)[0]) is Named),
        lambda x: (x + 1).doubled(),
        lambda x: x.as_subclass(torch.Tensor) * 2,
        lambda x: torch.ones(2).as_subclass(OfNamed) + x,
        lambda x: torch.Tensor._make_subclass(Named, torch.ones(2)).sin(),
        lambda x: torch.zeros(70_000).as_subclass(Named).add(x.sum()).sin().cos(),
    ],
)
@pytest.mark.parametrize("requires_grad", [False, True])
def test_results_are_of_the_classes_of_what_they_are_computed_from(program, requires_grad):
    def given():
        leaf = torch.ones(2, requires_grad=requires_grad)
        return leaf, leaf.as_subclass(Named)

    (eager_leaf, x), (leaf, y) = given(), given()
    expected, found = program(x), jit(program, fallback="error")(y)
    assert type(found) is type(expected)
    if isinstance(expected, tuple):
        assert found == expected
        return
    assert_close(found.as_subclass(torch.Tensor), expected.as_subclass(torch.Tensor))
    assert found.requires_grad == expected.requires_grad
    if found.requires_grad:
        found.sum().backward()
        expected.sum().backward()
        assert_close(leaf.grad, eager_leaf.grad)


def test_classes_that_change_operations_are_not_made_in_programs():
    for program in (lambda x: x.as_subclass(Scaled) * 2, lambda x: torch.Tensor._make_subclass(Scaled, x) * 2):
        with pytest.raises(AcquisitionError, match="what the program makes is a Scaled"):
            jit(program)(torch.ones(2))


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


class Pair:
    """No tensor: one that says what functions make of it, as collections of tensors do."""

    def __init__(self, first):
        self.first = first

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.neg:
            return NotImplemented
        found = [leaf.first if isinstance(leaf, Pair) else leaf for leaf in tree_leaves((args, kwargs))]
        return func.__name__, [t.__name__ for t in types], [leaf for leaf in found if leaf is not None]


class Later(Pair):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented if func is torch.cat else super().__torch_function__(func, types, args, kwargs)


@pytest.mark.parametrize("call", [
    lambda x: torch.stack([Pair(x), Pair(x + 1)]), lambda x: torch.stack((x, Pair(x)), dim=0),
    lambda x: torch.add(x, other=Pair(x)), lambda x: torch.cat([Pair(x), Later(x)]),
    lambda x: torch.hstack([Pair(x), Later(x)]), lambda x: torch.neg(Pair(x)),
], ids=["list", "tuple", "keyword", "next", "derived", "nobody"])  # fmt: skip
def test_objects_in_lists_and_keywords_say_what_functions_make_of_them(call):
    same_as_eager(call, torch.ones(3))
    same_as_eager(lambda x, kept: kept.append(x * 2) or call(kept[0]), torch.ones(3), [])
