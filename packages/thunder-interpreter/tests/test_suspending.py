"""Frames are suspended at a call, and go on in another interpretation."""

import dis
import functools
import gc
import sys
import weakref

import pytest

from thunder_interpreter import DECLINED, Left, interpret, resume, resume_raising
from thunder_interpreter._displays import unfinished_displays
from thunder_interpreter._liveness import live_variables


def stop(value):
    return value * 100


class Runs:
    """Runs functions up to calls of :func:`stop`."""

    def __init__(self):
        self.states = []
        self.run = None

    def __call__(self, function, *args):
        self.run = interpret(function, lookasides={stop: self._stop})
        return self.run(*args)

    def _stop(self, value):
        state = self.run.suspended()
        return DECLINED if state is None else Left(("stopped", state, value))

    def whole(self, function, *args):
        """Run a function, and go on after each call."""
        result = self(function, *args)
        while type(result) is tuple and result[0] == "stopped":
            _, (places, values), value = result
            self.states.append(values)
            result = self(go_on, (places[1:] if places[0].code is go_on.__code__ else places), values, stop(value))
        return result


def go_on(places, values, result):
    return resume(places, values, result)


def summed(values, scale):
    unused = [scale] * 3
    found = list(unused[:1])
    for index, value in enumerate(values):
        found.append(stop(value) + index)
    return sum(found) + scale


def handled(value):
    try:
        return summed([value], 1)
    except ValueError as error:
        return f"handled {error}"
    finally:
        value = None


def keywords(a, /, b=2, *rest, c, **named):
    before = a + b
    after = stop(before) + c
    return after, rest, named


def test_a_function_is_what_its_parts_are():
    assert Runs().whole(summed, [1, 2, 3], 5) == summed([1, 2, 3], 5)
    assert Runs().whole(handled, 7) == handled(7)
    assert Runs().whole(lambda: keywords(1, 2, 3, c=4, d=5)) == keywords(1, 2, 3, c=4, d=5)


def compared(values, limit):
    before = [v for v in values if v < limit]
    limit = stop(limit) + sum(1 for v in before if v < limit)
    kept = {v: limit for v in values if v < limit}
    unset = stop(len(kept))
    return before, limit, kept, unset, [unset for _ in values]


def closed_over_later(value, step=2):
    value += stop(value)

    def add():
        nonlocal value
        value += step
        return value

    return add(), add(), value


def empty_cell(flag):
    if flag:
        found = stop(1)
    result = stop(2)
    try:
        return (lambda: found)() + result
    except NameError:
        return result


@pytest.mark.parametrize(
    ("function", "args"),
    [(compared, ([1, 2, 3], 2)), (closed_over_later, (3,)), (empty_cell, (True,)), (empty_cell, (False,))],
)
def test_cells_that_no_closure_holds_are_made_anew(function, args):
    runs = Runs()
    assert runs.whole(function, *args) == function(*args)
    assert runs.states, "it stopped"


def test_the_call_may_have_raised():
    _, (places, values), _ = Runs()(handled, 7)
    assert resume_raising(places, values, ValueError("no")) == "handled no"
    with pytest.raises(KeyError):
        resume_raising(places, values, KeyError("other"))


def test_only_what_is_read_later_is_kept():
    runs = Runs()
    runs.whole(summed, [1], 5)
    (values,) = runs.states
    assert [5] * 3 not in values and 5 in values


def in_a_generator(value):
    return sum(stop(v) for v in [value])


def with_a_cell(value):
    def inner():
        return value

    return stop(value) + inner()


def while_handling(value):
    try:
        raise ValueError
    except ValueError:
        return stop(value)


@pytest.mark.parametrize("function", [in_a_generator, with_a_cell, while_handling, lambda v: [*map(stop, [v])]])
def test_what_is_more_than_frames_runs_on(function):
    assert Runs()(function, 3) == function(3)


def test_variables_are_live_until_they_are_read_or_set():
    def looped(a, b, c):
        for _ in a:
            d = b
            b = c
            print(d)
        try:
            e = c
        except ValueError:
            e = a
        return e

    code = looped.__code__
    assert live_variables(code, -1) == {"a", "b", "c"}
    end = max(offset for offset, _, line in code.co_lines() if line is not None)
    assert "d" not in live_variables(code, end)


def test_code_that_may_look_at_all_variables_keeps_all():
    def looks(a, b):
        return len(locals())

    assert live_variables(looks.__code__, -1) == {"a", "b"}


def displays(a, b):
    listed = [*a, stop(a), *b, stop(b)]
    mapped = {**{"a": a}, "b": stop(b), **{"c": a}}
    return listed, mapped, {stop(1), *a, 2}, dict(a=[*a], b=stop(a), **{"c": stop(b)}), list.__add__(a, [stop(1)])


def conditional(a):
    return [*a, stop(a) if len(a) > 1 else stop(None), *([*a, *stop([3])] if a else ())]


def comprehended(a):
    return [[stop(n) for n in range(k) if stop(n)] for k in a], {k: stop(k) for k in a}, {stop(k) for k in a}


BUILDING = [(displays, ([1], [2, 3])), (conditional, ([1, 2],)), (comprehended, ([2, 3],))]


@pytest.mark.parametrize("function, args", BUILDING)
def test_containers_that_a_frame_builds_are_told_from_those_that_it_has(function, args):
    seen = []

    class Handing(Runs):
        def whole(self, function, *args):
            result = self(function, *args)
            while type(result) is tuple and result[0] == "stopped":
                _, (places, values), value = result
                flags = [flag for place in places for flag in place.displays]
                assert len(flags) == len(values)
                seen.append([value for value, flag in zip(values, flags, strict=True) if flag])
                values = [type(v)(v) if flag else v for v, flag in zip(values, flags, strict=True)]
                before = [list(found) for found in seen[-1]]
                if places[0].code is go_on.__code__:
                    places, values = places[1:], values[places[0].count :]
                result = self(go_on, places, values, stop(value))
                assert [list(found) for found in seen[-1]] == before
            return result

    assert Handing().whole(function, *args) == function(*args)
    if function is not comprehended or sys.version_info >= (3, 12):  # before, its frames are of functions of their own
        assert any(seen)
    assert all(type(found) in (list, dict, set) and found is not arg for each in seen for found in each for arg in args)


def test_a_display_is_unfinished_until_nothing_is_added_to_it():
    def display(a):
        return [*a, len(a), *a], max(a)

    offsets = [i.offset for i in dis.get_instructions(display.__code__) if i.opname == "CALL"]
    assert [unfinished_displays(display.__code__, offset, 1) for offset in offsets] == [frozenset({0}), frozenset()]


def test_what_c_code_was_given_by_an_abandoned_run_keeps_nothing_of_it_alive():
    class Value:
        pass

    def program(value):
        return functools.lru_cache(lambda: called.append(1) or 2.0)

    called, value = [], Value()
    run, died = interpret(program), weakref.ref(value)
    cached = run(value)
    run.abandon()
    alive = weakref.ref(run)
    del run, value
    gc.collect()
    assert alive() is None and died() is None
    assert [cached(), cached()] == [2.0, 2.0] and called == [1]


def test_generators_of_an_abandoned_run_run_no_more_code():
    ended = []

    def parts(at_its_start):
        try:
            yield 1
        finally:
            ended.append(at_its_start)

    def outer():
        yield from parts(False)

    def program():
        kept = [parts(True), outer()]
        for generator in kept:
            next(generator)
        return kept

    run = interpret(program)
    for close in (lambda kept: [g.close() for g in kept], lambda kept: kept.clear()):
        kept = run()
        run.abandon()
        close(kept)
        gc.collect()
        assert ended == []
    del kept, run
    interpret(program)().clear()
    gc.collect()
    assert sorted(ended) == [False, True]
