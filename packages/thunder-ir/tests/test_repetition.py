"""Parts that a program repeats: found, and written once in what runs."""

import random

import ir_toys as toys
import pytest

from thunder_ir import Tensor, record, trace_of
from thunder_ir.repetition import SHORTEST, TIMES, find_repetition

X = Tensor((2,))


def block(x, weight, shared=None, factor=2.0, times=SHORTEST // 4):
    """A part of a program that reads what came before it, what is its own, and what all blocks share."""
    kept = x
    for _ in range(times):
        summed = toys.add(x, weight)
        made = toys.mul(summed, shared if shared is not None else factor)
        toys.free(summed, *([x] if x is not kept else []))
        x = toys.tanh(made)
        toys.free(made)
    made = toys.add(x, kept)
    toys.free(x, kept)
    return made


def chain(count, change=lambda number: {}):
    def program(x, shared, *weights):
        x = toys.exp(x)
        for number, weight in enumerate(weights):
            x = block(x, weight, **{"shared": shared, **change(number)})
        return toys.exp(x)

    return trace_of(program, X, X, *[X] * count)


def runs_as_printed(trace):
    """Whether what is compiled makes the calls that are printed, under whatever names."""
    return str(record(trace.python_callable(), trace.inputs)) == str(record(trace.source().compile(), trace.inputs))


def test_blocks_are_written_once_and_run_as_they_are_printed():
    trace = chain(8)
    found = find_repetition(trace.bound_symbols)
    assert len(found.given) >= 7
    assert [len(names) for names in found.made] == [1] * len(found.given)
    text = trace.executable().text
    assert text.count("\n") < str(trace).count("\n") / 3
    assert text.count("= program_part(values)") == len(found.given)
    assert runs_as_printed(trace)


def test_what_a_block_frees_its_caller_holds_no_more():
    trace = chain(6)
    found = find_repetition(trace.bound_symbols)
    assert all(set(taken) <= set(given) for taken, given in zip(found.taken, found.given, strict=True))
    assert all(taken and not {"shared"}.intersection(taken) for taken in found.taken)
    assert f"    del {', '.join(found.taken[1])}\n" in trace.executable().text


def test_few_or_short_blocks_are_written_out():
    for trace in (chain(TIMES - 1), trace_of(lambda x: [toys.exp(x) for _ in range(100)], X)):
        assert find_repetition(trace.bound_symbols) is None
        assert trace.executable().text == trace.source().text


@pytest.mark.parametrize("change", [{"factor": 3.0, "shared": None}, {"times": 5}])
def test_a_block_that_differs_is_written_out(change):
    trace = chain(12, lambda number: change if number == 5 else {})
    found = find_repetition(trace.bound_symbols)
    assert 5 <= len(found.given) <= 6
    assert runs_as_printed(trace)


def test_a_value_that_two_places_of_one_block_share_is_told_from_two_values():
    def program(*weights):
        x = weights[0]
        for number in range(8):
            other = weights[number] if number != 4 else x
            for _ in range(SHORTEST):
                x, y = toys.add(x, other), toys.mul(x, x)
        return x, y

    assert runs_as_printed(trace_of(program, *[X] * 8))


def test_names_of_the_programs_values_are_kept():
    def program(values, program_part, *rest):
        x = toys.add(values, program_part)
        for weight in rest:
            x = block(x, weight, values)
        return toys.add(x, program_part)

    trace = trace_of(program, *[X] * 8)
    assert "values_" in trace.executable().text
    assert runs_as_printed(trace)


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_run_as_they_are_printed(seed):
    choice = random.Random(seed)
    steps = [(choice.choice("amst"), choice.randrange(3), choice.randrange(3)) for _ in range(choice.randint(8, 40))]
    changed = {n: choice.randrange(len(steps)) for n in range(12) if choice.random() < 0.1}

    def program(*weights):
        live = [weights[0], toys.exp(weights[0]), toys.tanh(weights[0])]
        for number, weight in enumerate(weights):
            for place, (kind, a, b) in enumerate(steps):
                if changed.get(number) == place:
                    continue
                first, second = live[a], weight if b == 0 else live[b]
                if kind == "s":
                    live[a], live[b] = toys.split(second)
                elif kind == "t":
                    live[a] = toys.describe(first, [second, {"scale": 0.5}], key=(None, -0.0))
                else:
                    live[b] = (toys.add if kind == "a" else toys.mul)(first, second)
        return tuple(live)

    assert runs_as_printed(trace_of(program, *[X] * 12))
