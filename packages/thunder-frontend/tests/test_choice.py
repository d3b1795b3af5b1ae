"""Many specialisations of one function: a call finds its own without trying the others."""

import contextlib
import enum
import itertools
import os
from unittest import mock

import pytest
import torch

from thunder_frontend import cache_hits, cache_misses, explain_misses, jit
from thunder_frontend._jit import compiled_function

N = 20
Kinds = enum.Enum("Kinds", [f"kind{i}" for i in range(N)])


def proposed(compiled, *args, **kwargs):
    """How many specialisations are tried for a call."""
    return len(compiled_function(compiled)._dispatcher.proposed(args, kwargs))


class Scaled(torch.nn.Module):
    factor = 1
    act = None

    def forward(self, x):
        y = x * self.factor
        return y if self.act is None else self.act(y)


def calls_with_nested_numbers():
    return lambda x, config: x * config["a"]["b"], [(torch.ones(2), {"a": {"b": i}}) for i in range(N)]


def calls_with_lists_of_shapes():
    return lambda xs: sum(x.sum() for x in xs), [([torch.ones(i % 5 + 1), torch.ones(i // 5 + 1)],) for i in range(N)]


def calls_with_lists_of_lengths():
    return lambda xs: torch.cat(xs), [([torch.ones(2)] * (i + 1),) for i in range(N)]


def calls_with_objects():
    modules = [torch.nn.Linear(2, 2) for _ in range(N)]
    return lambda module, x: module(x), [(m, torch.ones(1, 2)) for m in modules]


def calls_with_several_flags():
    return (
        lambda x, flags: [x + i for i, flag in enumerate(flags) if flag],
        [(torch.ones(2), [bool(i & 1 << k) for k in range(5)]) for i in range(N)],
    )


def calls_of_several_types():
    values = [None, 2, True, 1, "a", 1.0, (1, 2), [3], -0.0]
    return lambda x, box: x + len(repr(box["it"])), [(torch.ones(2), {"it": v}) for v in values]


def calls_with_members_of_an_enumeration():
    return lambda x, kind: x + len(kind.name), [(torch.ones(2), kind) for kind in Kinds]


def calls_with_slices():
    return lambda x, part: x[part], [(torch.ones(N + 1), slice(0, i + 1)) for i in range(N)]


def calls_with_integers_as_keys():
    return lambda x, table: x + len(str(next(iter(table)))), [(torch.ones(2), {i: 1}) for i in range(N)]


def calls_with_keys_that_are_there_or_not():
    return (
        lambda x, table: [x + i for i in range(5) if i in table],
        [(torch.ones(2), {k: 1 for k in range(5) if i & 1 << k}) for i in range(N)],
    )


def calls_with_sets():
    return lambda x, names: [x + len(name) for name in names], [(torch.ones(2), {f"a{i}"}) for i in range(N)]


def calls_with_strides():
    tensors = [torch.ones(2, 2, 2, 2).permute(order) for order in list(itertools.permutations(range(4)))[:N]]
    return lambda x: x.contiguous().view(-1), [(t,) for t in tensors]


def calls_with_tensors_whose_values_python_sees():
    return lambda x, t: x + len(str((t * 2).tolist())), [(torch.ones(2), torch.tensor([i, N])) for i in range(N)]


@pytest.mark.parametrize(
    "make",
    [
        calls_with_nested_numbers, calls_with_lists_of_shapes, calls_with_lists_of_lengths, calls_with_objects,
        calls_with_several_flags, calls_of_several_types, calls_with_members_of_an_enumeration, calls_with_slices,
        calls_with_integers_as_keys, calls_with_keys_that_are_there_or_not, calls_with_sets, calls_with_strides,
        calls_with_tensors_whose_values_python_sees,
    ],
)  # fmt: skip
def test_one_specialisation_is_tried_of_many_that_differ_inside_of_arguments(make):
    function, calls = make()
    compiled = jit(function, cache="constant values")
    for _ in range(3):
        for args in calls:
            torch.testing.assert_close(compiled(*args), function(*args))
    assert cache_misses(compiled) == len(calls)
    assert [proposed(compiled, *args) for args in calls] == [1] * len(calls)


def test_one_specialisation_is_tried_of_many_that_differ_in_a_modules_attribute():
    module, x = Scaled(), torch.ones(2)
    compiled = jit(module, cache="constant values")
    with torch.no_grad():
        for _ in range(2):
            for module.factor in range(N):
                assert torch.equal(compiled(x), x * module.factor)
                assert proposed(compiled, x) == 1
    assert (cache_misses(compiled), cache_hits(compiled)) == (N, N)


def in_a_default_dtype(i):
    return default_dtype((torch.float32, torch.float64, torch.bfloat16, torch.float16)[i])


def in_an_autocast(i):
    return torch.autocast("cpu", dtype=(torch.bfloat16, torch.float16)[i % 2], enabled=i < 2)


def with_a_variable_of_the_environment(i):
    return mock.patch.dict(os.environ, {"THUNDER_TEST_LEVEL": str(i)})


@contextlib.contextmanager
def default_dtype(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@pytest.mark.parametrize("around", [in_a_default_dtype, in_an_autocast, with_a_variable_of_the_environment])
def test_one_specialisation_is_tried_of_many_for_states_of_the_process(around):
    compiled, x = jit(lambda x: x + len(os.environ.get("THUNDER_TEST_LEVEL", ""))), torch.ones(2)
    for _ in range(2):
        for i in range(3):
            with around(i):
                compiled(x)
    assert cache_misses(compiled) == 3
    for i in range(3):
        with around(i):
            assert proposed(compiled, x) == 1


@pytest.mark.parametrize("cache", ["symbolic values", "auto"])
def test_one_specialisation_is_tried_of_many_that_fix_what_they_compute_of_open_numbers(cache):
    def chunks(x, n):
        return [x + i for i in range(n // 10)]

    compiled, x = jit(chunks, cache=cache), torch.ones(2)
    for n in (31, 52, 71, 93, 35, 57, 76, 98):
        for found, expected in zip(compiled(x, n), chunks(x, n), strict=True):
            assert torch.equal(found, expected)
    assert cache_misses(compiled) <= 5
    assert [proposed(compiled, x, n) for n in (55, 74, 95)] == [
        1 if cache == "symbolic values" else 2
    ] * 3  # and the first


def test_one_specialisation_is_tried_of_those_that_ask_one_question_after_the_other():
    def first(x, flags):
        return x + next(i for i, flag in enumerate(flags) if flag)

    compiled, x = jit(first, cache="constant values"), torch.ones(2)
    for i in range(60):
        flags = [k == i for k in range(60)]
        assert torch.equal(compiled(x, flags), x + i)
        assert proposed(compiled, x, flags) == 1
    assert cache_misses(compiled) == 60


def calls_written_in_many_ways():
    x = torch.ones(2)
    yield from [((x,), {}), ((x, 1), {}), ((x,), {"a": 1}), ((x,), {"b": 1}), ((x,), {"a": 1, "b": 1})]
    yield from [((x,), {"b": 1, "a": 1}), ((x, x), {}), ((x, None), {}), ((x,), {"a": x}), ((x, 1, 1), {})]
    yield from [((x, *range(k)), {}) for k in (13, 14)]
    yield from [((x, *range(13), 1.0), {}), ((), {"a": 1}), ((), {})]


@pytest.mark.parametrize("first", range(0, 15, 2))
@pytest.mark.parametrize("cache", ["constant values", "symbolic values"])
def test_no_specialisation_serves_calls_that_are_written_differently(first, cache):
    def function(*args, **named):
        kinds = [isinstance(value, torch.Tensor) for value in (*args, *named.values())]
        numbers = [value for value in args if isinstance(value, (int, float))]
        return list(named), kinds, sum(numbers)

    calls = list(calls_written_in_many_ways())
    for call in calls:  # each meets one specialisation only
        compiled = jit(function, cache=cache)
        for args, named in (calls[first], call, call):
            assert repr(compiled(*args, **named)) == repr(function(*args, **named))


def test_a_specialisation_that_relies_on_less_serves_all_that_the_others_do_not():
    def function(x, config):
        return x * config["factor"] if config["scaled"] else x + 1

    compiled, x = jit(function, cache="constant values"), torch.ones(2)
    for factor in (2, 3, 4):
        compiled(x, {"scaled": True, "factor": factor})
    for factor in (2, 3, 4, 5, 6):
        assert torch.equal(compiled(x, {"scaled": False, "factor": factor}), x + 1)
        assert torch.equal(compiled(x, {"scaled": True, "factor": factor}), x * factor)
    assert cache_misses(compiled) == 6


def test_a_call_with_nothing_where_the_others_differ_is_compiled_anew():
    compiled, x = jit(lambda x, options: x * options.get("factor", 1)), torch.ones(2)
    for options in ({"factor": 2}, {"factor": 3}, {}, {"factor": None}, {"factor": 2}, {}):
        if options.get("factor") is None and "factor" in options:
            with pytest.raises(TypeError):
                compiled(x, options)
        else:
            assert torch.equal(compiled(x, options), x * options.get("factor", 1))
    assert cache_misses(compiled) == 3


def test_what_a_miss_is_told_does_not_grow_with_the_specialisations():
    compiled = jit(lambda x, n: x + n, cache="constant values")
    for n in range(40):
        compiled(torch.ones(2), n)
    told = explain_misses(compiled)
    assert len(told) == 39 and told[0] == ["args[1] is 1, compiled for 0"]
    assert max(map(len, told)) < 10 and told[-1][-1] == "args[1] is 39, compiled for 38"
