"""Python functions that code in C runs, and format strings, are seen."""

import collections
import cProfile
import functools
import heapq
import operator
import re
import sys

import pytest

from thunder_interpreter import Callbacks, _observing, interpret, unobserved


class Priority:
    """Compared by C code, by a method that reads a closure and calls a function."""

    def __init__(self, rank):
        self.rank = rank

    def __lt__(self, other):
        return smaller(self, other)


def smaller(a, b):
    return a.rank < b.rank


def test_functions_that_c_code_runs_are_reported_unless_they_are_interpreted():
    seen = []

    class Watch(Callbacks):
        def native_frame(self, frame, call):
            seen.append((frame.f_code.co_name, getattr(call[0], "__name__", None)))

    def program():
        heap = [Priority(2), Priority(1)]
        heapq.heapify(heap)
        keyed = sorted(heap, key=lambda p: p.rank)
        made = collections.defaultdict(lambda: 7)
        return heap[0].rank, [p.rank for p in keyed], made["a"], {"a": 1}["a"], len({Priority, 1})

    assert interpret(program, callbacks=Watch())() == program()
    assert seen == [("__lt__", "heapify"), ("smaller", "heapify"), ("<lambda>", "getitem")]
    assert sys.gettrace() is None


def test_what_functions_that_c_code_runs_call_in_c_is_reported():
    seen = []

    class Watch(Callbacks):
        def native_frame(self, frame, call):
            pass

        def native_call(self, frame, fn):
            seen.append((frame.f_code.co_name, fn.__name__))

    def named(value):
        return value.upper() * len(value)

    def program():
        return collections.defaultdict(lambda: named("ab"))["a"] * len("abc")

    assert interpret(program, callbacks=Watch())() == program()
    assert seen == [("named", "upper"), ("named", "len")]
    assert sys.getprofile() is None


def test_what_a_tracer_does_itself_is_not_reported_and_what_follows_is():
    seen = []

    class Watch(Callbacks):
        def native_frame(self, frame, call):
            seen.append(frame.f_code.co_name)

        def native_call(self, frame, fn):
            seen.append(fn.__name__)

        def is_opaque(self, fn):
            return fn is work

    def work(value):
        return smaller(Priority(1), Priority(2)) and len(str(value))

    class Ours:
        def __lt__(self, other):
            return unobserved(work, other) > 0 and abs(-1) == 1

    def program():
        return sorted([Ours(), Ours()])

    assert len(interpret(program, callbacks=Watch())()) == 2
    assert set(seen) == {"__lt__", "abs"}
    assert sys.gettrace() is None
    assert sys.getprofile() is None


def test_where_a_key_is_looked_for_in_a_dict_its_contents_are_not_looked_through(monkeypatch):
    through, parts_of = [], _observing.parts_of
    monkeypatch.setattr(_observing, "parts_of", lambda value: through.append(value) or parts_of(value))
    held = {index: [index] for index in range(9)}

    def program():
        return 2 in held, 7.5 in held, (1, 2) not in held

    class Watch(Callbacks):
        def native_frame(self, frame, call):
            pass

    assert interpret(program, callbacks=Watch())() == (True, False, True)
    assert not any(value is held for value in through)


def test_what_a_tracer_raises_of_a_native_frame_is_raised_by_the_call_and_others_trace_on():
    class Watch(Callbacks):
        def native_frame(self, frame, call):
            raise ValueError("not this one")

    def trace(frame, event, argument):
        return None

    def program():
        try:
            return collections.defaultdict(lambda: 7)["a"]
        except ValueError as error:
            return str(error)

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        assert interpret(program, callbacks=Watch())() == "not this one"
        assert sys.gettrace() is trace
    finally:
        sys.settrace(before)


def test_a_profiler_goes_on_after_functions_that_c_code_runs():
    class Watch(Callbacks):
        def native_frame(self, frame, call):
            pass

        def native_call(self, frame, fn):
            pass

    def program():
        return collections.defaultdict(lambda: 7)["a"]

    def after():
        return 8

    with cProfile.Profile() as profile:
        assert interpret(program, callbacks=Watch())() == 7
        after()
    assert "after" in [getattr(entry.code, "co_name", None) for entry in profile.getstats()]


@pytest.mark.parametrize(
    "template",
    [
        "{}",
        "{0.rank}",
        "{.rank}{.rank:>{w}}",
        "{p.rank!r:{w}}",
        "{",
        "{3}",
        "{q}",
        "{0}{}",
        "{0.none}",
        "{!z}",
        "{:{:{}}}",
    ],
)
def test_format_strings_are_looked_into(template):
    def program():
        try:
            return template.format(Priority(3), Priority(4), p=Priority(5), w=9)
        except Exception as error:
            return type(error), str(error)

    read = []

    class Watch(Callbacks):
        def load_attribute(self, obj, name, value):
            read.append(name)
            return value

    def text(answer):
        return re.sub("0x[0-9a-f]+", "0x", str(answer))

    assert text(interpret(program, callbacks=Watch())()) == text(program())
    assert ("rank" in read) == (".rank" in template)


def test_callables_in_c_that_c_code_may_call_are_reported():
    seen = []

    class Watch(Callbacks):
        def native_frame(self, frame, call):
            pass

        def native_callables(self, found, given):
            seen.extend([(cls and cls.__name__, name, type(raw).__name__) for cls, name, raw in found])

    class Sized:
        __len__ = [1, 2].__len__
        first = property(operator.itemgetter(0))

        def __getitem__(self, index):
            return index + 7

    def program():
        made = collections.defaultdict(functools.partial(getattr, 3, "real"))
        return made["a"], len(Sized()), Sized().first, list(map([5].__getitem__, [0])), {len: 1}[len]

    assert interpret(program, callbacks=Watch())() == program() == (3, 2, 7, [5], 1)
    assert set(seen) == {
        (None, "", "partial"),
        ("Sized", "__len__", "method-wrapper"),
        ("Sized", "first", "property"),
    }


@pytest.mark.parametrize("base", [list, dict, tuple, int, str, collections.OrderedDict, Exception])
def test_properties_of_classes_derived_from_classes_in_c_are_interpreted(base):
    class Derived(base):
        seven = property(lambda self: seven())

        def __getattr__(self, name):
            return name * seven()

    def seven():
        return 7

    interpreted = []

    class Watch(Callbacks):
        def call(self, fn, args, kwargs):
            interpreted.append(fn)

    def program():
        derived = Derived()
        derived.own = "own"
        return derived.seven, derived.ab, derived.own

    assert interpret(program, callbacks=Watch())() == program()
    assert interpreted.count(seven) == 2


class Attributes(dict):
    """Attributes as items: what is not there is no ``AttributeError``."""

    def __getattr__(self, name):
        return self[name]


def test_objects_that_c_code_gets_are_asked_for_nothing():
    class Watch(Callbacks):
        def native_frame(self, frame, call):
            pass

        def native_callables(self, found, given):
            pass

    def program():
        given = Attributes(a=1)
        return list(given), len(given), str(given), given["a"], given.a, {**given}, [*map(given.get, "a")]

    assert interpret(program, callbacks=Watch())() == program()
