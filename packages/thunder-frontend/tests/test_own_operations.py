"""Thunder's own operations called in a program: what they are given is guarded, wherever it comes from."""

import collections
import dataclasses
import functools
import threading

import pytest
import torch

import thunder_lang as lang
import thunder_lang.numpy as tnp
import thunder_prims as prims
import thunder_torch as ltorch
from thunder_executors import OperatorExecutor
from thunder_frontend import AcquisitionError, cache_misses
from thunder_frontend import jit as plain_jit


@dataclasses.dataclass
class Config:
    scale: float
    rest: list

    kind = "config"


class Slots:
    __slots__ = ("scale",)

    def __init__(self, scale):
        self.scale = scale


class Sizes(list):
    unit = 1


def total(value):
    """Add up all numbers and tensors that there are in a value."""
    if dataclasses.is_dataclass(value):
        return sum(total(getattr(value, f.name)) for f in dataclasses.fields(value))
    if isinstance(value, Slots):
        return value.scale
    if isinstance(value, dict):
        return total([*value.values()])
    if isinstance(value, (list, tuple, set, frozenset, collections.deque)):
        return sum(map(total, value)) + len(value)
    return value


executor = OperatorExecutor("totals")
scaled = executor.register_operator("scaled", meta=lambda a, rest: a.like(), fn=lambda a, rest: a * total(rest))
jit = functools.partial(plain_jit, executors=[executor])
X = torch.arange(1.0, 17.0).reshape(4, 4)


def test_a_symbol_of_torch_is_compiled_for_the_list_that_it_gets():
    j = jit(lambda a, s: ltorch.reshape(a, s))
    assert [j(X, s).shape for s in ((2, 8), (16,), [4, 4], (2, 8))] == [(2, 8), (16,), (4, 4), (2, 8)]
    assert cache_misses(j) == 3


@pytest.mark.parametrize("reshape", [prims.reshape, lang.reshape, tnp.reshape], ids=["prims", "core", "numpy"])
def test_a_prim_and_a_function_of_a_language_are_compiled_for_the_shape_that_they_get(reshape):
    j = jit(lambda a, s: reshape(a, s))
    for shape in ((2, 8), (16,), (2, 8)):
        assert torch.equal(j(X, shape), X.reshape(shape))


def test_functions_of_numpy_and_of_the_core_language_are_part_of_a_program_and_have_gradients():
    x = X.clone().requires_grad_()

    def program(a):
        return tnp.sum(tnp.multiply(a, lang.sin(a)), axis=0) + a.mean()

    result = jit(program)(x)
    expected = (x * x.sin()).sum(0) + x.mean()
    torch.testing.assert_close(result, expected)
    torch.testing.assert_close(torch.autograd.grad(result.sum(), x), torch.autograd.grad(expected.sum(), x))


def test_functions_of_the_languages_take_dtypes_of_torch_and_follow_the_grad_mode():
    def program(a):
        with torch.no_grad():
            b = tnp.multiply(a, a)
        return tnp.astype(b * a, torch.float64)

    x = X.clone().requires_grad_()
    result = jit(program)(x)
    assert result.dtype is torch.float64
    torch.testing.assert_close(torch.autograd.grad(result.sum(), x)[0], X * X)
    with torch.no_grad():
        assert not jit(program)(x).requires_grad


KINDS = {
    "list": (lambda: [2, 3.0], lambda v: v.append(1)),
    "tuple of lists": (lambda: (2, [3.0]), lambda v: v[1].append(1)),
    "dict": (lambda: {"a": 2, "b": [1]}, lambda v: v["b"].append(5)),
    "keys of a dict": (lambda: {"a": 2}, lambda v: v.update(b=7)),
    "set": (lambda: {2, 5}, lambda v: v.add(9)),
    "deque": (lambda: collections.deque([2, 3]), lambda v: v.popleft()),
    "ordered dict": (lambda: collections.OrderedDict(a=[2]), lambda v: v["a"].append(1)),
    "dataclass": (lambda: Config(2.0, [1]), lambda v: setattr(v, "scale", 7.0)),
    "list in a dataclass": (lambda: Config(2.0, [1]), lambda v: v.rest.append(3)),
    "dataclass in a list": (lambda: [Config(2.0, [{"a": 3}])], lambda v: v[0].rest[0].update(a=4)),
    "object with slots": (lambda: [Slots(3)], lambda v: setattr(v[0], "scale", 4)),
    "list of the user's class": (lambda: Sizes([2, 3]), lambda v: v.append(4)),
    "tensors": (lambda: [torch.ones(()), {"b": torch.full((), 2.0)}], lambda v: v[1].update(b=torch.full((), 5.0))),
    "tensors in a dataclass": (lambda: Config(torch.ones(()), [2]), lambda v: v.rest.append(torch.full((), 5.0))),
}


class Holder(torch.nn.Module):
    def __init__(self, value):
        super().__init__()
        self.value = value

    def forward(self, x):
        return scaled(x, self.value)


def sources(value):
    """Yield calls that give the operator a value which comes from different places."""
    held = {"key": value}

    def default(x, v=value):
        return scaled(x, v)

    compiled = jit(lambda x, v: scaled(x, v))
    yield lambda: compiled(X, value)
    compiled_by_name = jit(lambda x, v: scaled(x, rest=v))
    yield lambda: compiled_by_name(X, v=value)
    yield functools.partial(jit(lambda x: scaled(x, value)), X)
    yield functools.partial(jit(lambda x: scaled(x, (held["key"],)[0])), X)
    yield functools.partial(jit(default), X)
    yield functools.partial(jit(Holder(value)), X)
    yield functools.partial(jit(lambda x: scaled(*[x], **{"rest": value})), X)


@pytest.mark.parametrize("kind", KINDS)
def test_what_an_operator_gets_is_guarded_wherever_it_comes_from(kind):
    make, change = KINDS[kind]
    for index in range(7):
        value = make()
        call = list(sources(value))[index]
        before = call()
        torch.testing.assert_close(before, X * total(value))
        change(value)
        torch.testing.assert_close(call(), X * total(value))
        assert not torch.equal(before, call())


def test_an_operator_gets_what_a_container_held_when_it_was_called():
    def program(x, config):
        rest = [1, {2}]
        a = scaled(x, rest)
        rest.append(100)
        rest[1].add(50)
        b = scaled(x, config)
        config.scale = 9.0
        config.rest.append(4)
        return a, b, scaled(x, [config, rest])

    ours, eagers = Config(2.0, [1]), Config(2.0, [1])
    j = jit(program)
    for _ in range(3):
        results = j(X, ours)
        a, b = X * total([1, {2}]), X * total(eagers)
        eagers.scale = 9.0
        eagers.rest.append(4)
        for result, expected in zip(results, (a, b, X * total([eagers, [1, {2, 50}, 100]])), strict=True):
            torch.testing.assert_close(result, expected)
        assert ours == eagers


def test_values_of_prims_keep_what_they_are_when_the_program_writes_to_what_they_were_made_of():
    def program(x):
        a, b = prims.transpose(x, (1, 0)), lang.reshape(x, x.shape)
        x.add_(1)
        a.add_(10)
        return a, b

    x = X.clone()
    a, b = jit(program)(x)
    assert torch.equal(a, X.T + 10)
    assert torch.equal(b, X)
    assert torch.equal(x, X + 1)


@pytest.mark.parametrize(
    "transposed",
    [
        lambda x: prims.transpose(x, (1, 0)),
        lambda x: lang.permute(x, (1, 0)),
        lambda x: tnp.permute_dims(x, (1, 0)),
    ],
    ids=["prims", "lang", "numpy"],
)
def test_values_made_of_views_are_laid_out_as_the_program_is_told(transposed):
    result, strides = jit(lambda x: (transposed(x), transposed(x).stride()))(torch.ones(2, 3))
    assert result.stride() == strides == (2, 1)


def test_symbols_of_torch_view_as_torch_does():
    def program(x):
        view = ltorch.reshape(x, (16,))
        view.mul_(2)
        return view

    x = X.clone()
    assert torch.equal(jit(program)(x), x.reshape(16))
    assert torch.equal(x, X * 2)


def test_what_runs_in_python_around_own_operations_calls_programs_of_them():
    held = threading.Lock()

    def program(x):
        y = tnp.multiply(x, scaled(x, [2]))
        with held:  # which no program can hold
            held.locked()
        return prims.transpose(y, (1, 0))

    torch.testing.assert_close(plain_jit(program, executors=[executor], fallback="split")(X), (X * X * total([2])).T)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (torch.nn.Linear(2, 2), "a module"),
        ([iter([1])], "list_iterator"),
        ({Slots(2): 1}, "as a member or a key"),
        (collections.deque([torch.ones(2)]), "that holds tensors"),
        (collections.UserList([torch.ones(2)]), "that holds tensors"),
        (bytearray(b"ab"), "bytearray"),
    ],
    ids=["module", "iterator", "key", "deque of tensors", "object with tensors", "buffer"],
)
def test_what_an_operator_cannot_be_given_is_refused_with_the_reason(value, message):
    with pytest.raises(AcquisitionError, match=message):
        jit(lambda x, v: scaled(x, v))(X, value)
