"""Numbers in containers that code in C iterates over: they change, and one program computes with all of them."""

import collections
import copy

import pytest
import torch

from thunder_frontend import cache_misses, jit

X = torch.arange(12.0).reshape(4, 3)


def in_a_loop(iterate):
    def program(x, weights):
        total = torch.zeros(())
        for part in iterate(weights):
            total = total + x.sum() * (part[1] if isinstance(part, tuple) else part)
        return total

    return program


OF_LISTS = {
    "sum": lambda x, w: x * sum(w),
    "max": lambda x, w: x * max(w),
    "min by key": lambda x, w: x * min(w, key=lambda v: -v),
    "sorted": lambda x, w: x * sorted(w)[1],
    "sorted by key": lambda x, w: x * sorted(w, key=lambda v: -v)[0],
    "any": lambda x, w: x * 2 if any(v > 1e6 for v in w) else x,
    "list": lambda x, w: x * [*list(w), 1.0][0],
    "tuple": lambda x, w: x * tuple(w)[0],
    "map": lambda x, w: x * sum(map(lambda v: v * 2, w)),
    "filter": lambda x, w: x * sum(filter(lambda v: v > 0, w)),
    "next": lambda x, w: x * next(iter(w)),
    "next of a list's": lambda x, w: x * list(iter(w))[1],
    "last first": lambda x, w: x * list(reversed(w))[0],
    "slice": lambda x, w: x * w[1:][0] + len(w[5:]),
    "slice backwards": lambda x, w: x * w[::-1][0],
    "sum of a slice": lambda x, w: x * sum(w[-2:]),
    "zip": lambda x, w: torch.stack([x * a for a, _ in zip(w, "ab", strict=False)]),
    "dict of zip": lambda x, w: x * dict(zip("abc", w, strict=True))["b"],
    "copy": lambda x, w: x * copy.deepcopy(w)[0],
    "in a loop, enumerate": in_a_loop(enumerate),
    "in a loop, reversed": in_a_loop(reversed),
    "in a loop, iter": in_a_loop(iter),
}


@pytest.mark.parametrize("name", OF_LISTS)
@pytest.mark.parametrize("make", [list, tuple], ids=["list", "tuple"])
def test_numbers_in_a_sequence_change(name, make):
    program = OF_LISTS[name]
    compiled = jit(program, fallback="error")
    for step in range(6):
        weights = make([1.5 + step, 2.0 + step, 0.5 - step])
        torch.testing.assert_close(compiled(X, weights), program(X, weights))
    assert cache_misses(compiled) == 2


OF_DICTS = {
    "loop over items": lambda x, d: x * sum([value * len(key) for key, value in d.items()]),
    "loop over values": in_a_loop(lambda d: d.values()),
    "sum of values": lambda x, d: x * sum(d.values()),
    "list of items": lambda x, d: x * list(d.items())[1][1],
    "new dict": lambda x, d: x * {key: value + 1 for key, value in d.items()}["b"],
    "copy": lambda x, d: x * copy.deepcopy(d)["b"],
    "unpacked": lambda x, d: x * [*d.values()][0],
}


@pytest.mark.parametrize("name", OF_DICTS)
def test_numbers_that_views_of_a_dict_show_change(name):
    program = OF_DICTS[name]
    compiled = jit(program, fallback="error")
    for step in range(6):
        weights = {"a": 1.5 + step, "b": 2.0 + step}
        torch.testing.assert_close(compiled(X, weights), program(X, weights))
    assert cache_misses(compiled) == 2


LOOKED_AT = {
    "contained": lambda x, d: x * 2 if ("b", 3.0) in d.items() else x,
    "text": lambda x, d: x * len(str(d.values())),
    "set": lambda x, d: x * len({*d.values()}),
    "equal": lambda x, d: x * 2 if d.items() == {"a": 1.5, "b": 3.0}.items() else x,
    "mapping": lambda x, d: x * d.values().mapping["b"],
    "in a list": lambda x, d: x * len(str([d.values()])),
    "of another class": lambda x, d: x * sum(collections.OrderedDict(d).values()),
}


@pytest.mark.parametrize("name", LOOKED_AT)
def test_what_code_in_c_sees_of_a_view_is_guarded(name):
    program = LOOKED_AT[name]
    compiled = jit(program)
    for value in (1.5, 3.0, 3.25, 4.0, 3.0):
        weights = {"a": 1.5, "b": value}
        torch.testing.assert_close(compiled(X, weights), program(X, weights))


def writing_ahead(x, w):
    for i, value in enumerate(w):
        if i + 1 < len(w):
            w[i + 1] += value
        x = x * value
    return x


def removing(x, w):
    for value in reversed(w):
        if value > 1.75:
            w.remove(value)
        x = x + value
    return x


def adding(x, w):
    for value in zip(w, "abcdef", strict=False):
        if len(w) < 5:
            w.append(value[0] + 1)
        x = x + value[0]
    return x


def writing_to_the_dict(x, w):
    table = dict(enumerate(w))
    for key, value in table.items():
        table[(key + 1) % len(table)] = value + 1
        x = x * value
    return x + sum(table.values())


@pytest.mark.parametrize("program", [writing_ahead, removing, adding, writing_to_the_dict])
def test_what_is_written_during_an_iteration_is_seen(program):
    compiled = jit(program)
    for step in range(5):
        ours, eagers = [1.5, 2.0 + step, 0.5], [1.5, 2.0 + step, 0.5]
        torch.testing.assert_close(compiled(X, ours), program(X, eagers))
        assert ours == eagers


def test_a_tuple_of_a_tuple_is_itself():
    compiled = jit(lambda x, w: (x * w[0], tuple(w) is w), fallback="error")
    for step in range(3):
        assert compiled(X, (1.0 + step, 2.0))[1] is True


def in_python(x):
    return torch.from_numpy(x.numpy() * 2)


@pytest.mark.filterwarnings("ignore::thunder_frontend.FallbackWarning")
@pytest.mark.parametrize("parts", [lambda w: w, dict.values], ids=["dict", "values"])
def test_a_loop_over_an_iterator_in_c_goes_on_behind_a_split(parts):
    weights = {1.0: 1.0, 2.0: 2.0, 3.0: 3.0}

    def program(x):
        total = 0
        for i, (weight, part) in enumerate(zip(parts(weights), (x, x + 1, x + 2), strict=False)):
            total = total + weight * in_python(part) + i
        for weight in parts(weights):
            total = total + weight * in_python(x)
        return total

    compiled = jit(program, fallback="split")
    for step in range(4):
        weights[2.0] = 2.0 + step
        torch.testing.assert_close(compiled(X), program(X))
    assert cache_misses(compiled), "it ends before the call, rather than to run in Python"


def test_many_numbers_are_guarded_as_a_whole():
    compiled = jit(lambda x, w: x * sum(w), fallback="error")
    for last in (1.0, 2.0):
        weights = [*range(1000), last]
        assert torch.equal(compiled(X, weights), X * sum(weights))
    assert cache_misses(compiled) == 2
