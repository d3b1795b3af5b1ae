"""Callbacks, lookasides, opaque functions and the log."""

import collections
import contextlib
import dis
import functools
import operator
import types

import pytest

from thunder_interpreter import DECLINED, Callbacks, Interpreted, interpret, truth_that_raises

SCALE = 3


class Recorder(Callbacks):
    """Keeps what it is told."""

    def __init__(self):
        self.log = []


def recorder(*names):
    """A recorder that overrides the callbacks ``names`` only."""

    def method(name):
        def record(self, *args):
            self.log.append((name, *args))
            return getattr(Callbacks, name)(self, *args)

        return record

    return type("Recorder", (Recorder,), {name: method(name) for name in names})()


class Thing:
    shared = [1, 2]

    def __init__(self):
        self.own = 5

    @property
    def computed(self):
        return self.own + 1

    def method(self, x):
        return x * self.own


def test_loads_are_reported_and_may_be_replaced():
    class Doubling(Callbacks):
        def load_global(self, names, name, value):
            return 100 if name == "SCALE" else value

        def load_attribute(self, obj, name, value):
            return value * 2 if name == "own" else value

        def load_item(self, container, key, value):
            return value + 0.5

        def iterated(self, container, index, value):
            return -value

        def constant(self, value):
            return 9 if value == 7 else value

        def load_closure(self, function, name, value):
            return 1000 if name == "captured" else value

    captured = 1

    def program(thing, xs):
        return SCALE, thing.own, thing.computed, thing.method(1), xs[0], [x for x in xs], 7, captured

    result = interpret(program, callbacks=Doubling())(Thing(), [1, 2])
    assert result == (100, 10, 11, 10, 1.5, [-1, -2], 9, 1000)


def test_python_descriptors_are_not_reported_but_what_they_load_is():
    callbacks = recorder("load_attribute")
    thing = Thing()
    interpret(lambda t: t.computed, callbacks=callbacks)(thing)
    assert callbacks.log == [("load_attribute", thing, "own", 5)]


def test_missing_attributes_are_reported():
    callbacks = recorder("missing_attribute")
    thing = Thing()

    def program(t):
        return hasattr(t, "no"), getattr(t, "nope", 4), hasattr(t, "own")

    assert interpret(program, callbacks=callbacks)(thing) == (False, 4, True)
    assert callbacks.log == [("missing_attribute", thing, "no"), ("missing_attribute", thing, "nope")]


def test_missing_variables_are_reported():
    callbacks = recorder("load_global", "load_closure", "missing_global", "missing_closure")
    free = 1
    del free

    def program():
        for read in (lambda: free, lambda: NOWHERE):  # noqa: F821
            try:
                read()
            except NameError:
                continue
            return False
        return True

    assert interpret(program, callbacks=callbacks)()
    kinds = [entry for entry in callbacks.log if entry[0].startswith("missing")]
    assert [entry[0] for entry in kinds] == ["missing_closure", "missing_global"]
    assert kinds[1][1] is globals() and kinds[1][2] == "NOWHERE" and kinds[0][2] == "free"


def test_effects_are_reported_before_they_happen():
    seen = []

    class Before(Callbacks):
        def store_attribute(self, obj, name, value):
            seen.append((name, getattr(obj, name, None), value))

        def delete_attribute(self, obj, name):
            seen.append((name, getattr(obj, name)))

        def store_item(self, container, key, value):
            seen.append((key, container[key], value))

        def delete_item(self, container, key):
            seen.append((key, container[key]))

        def store_closure(self, cell, name, value):
            seen.append((name, value))

        def store_global(self, names, name, value):
            seen.append((name, name in names, value))

        def delete_global(self, names, name):
            seen.append((name, names[name]))

    def program(thing, xs):
        global NEW
        NEW = 1
        del NEW
        thing.own = 6
        del thing.own
        xs[0] = 7
        del xs[0]
        cell = 8

        def inner():
            nonlocal cell
            cell = 9

        inner()

    interpret(program, callbacks=Before())(Thing(), [0, 1])
    assert seen == [
        ("NEW", False, 1),
        ("NEW", 1),
        ("own", 5, 6),
        ("own", 6),
        (0, 0, 7),
        (0, 7),
        ("cell", 8),
        ("cell", 9),
    ]


@pytest.mark.parametrize(
    "program",
    [
        lambda xs: [x for x in xs],
        lambda xs: (lambda a, b: [a, b])(*xs),
        lambda xs: [*xs],
        lambda xs: next(iter([list((a, b)) for a, b in [xs]])),
    ],
    ids=["loop", "call", "list", "unpack"],
)
def test_elements_of_builtin_containers_are_reported(program):
    callbacks = recorder("iterated")
    xs = [4, 5]
    assert interpret(program, callbacks=callbacks)(xs) == [4, 5]
    assert [entry for entry in callbacks.log if entry[1] is xs] == [("iterated", xs, 0, 4), ("iterated", xs, 1, 5)]


@pytest.mark.parametrize(
    "program",
    [
        lambda xs: list(xs),
        lambda xs: [a for a, _ in zip(xs, "ab", strict=True)],
        lambda xs: sorted(xs),
        lambda xs: [*map(int, iter(xs))],
    ],
    ids=["list", "zip", "sorted", "iterator"],
)
def test_elements_that_code_in_c_comes_to_are_reported(program):
    callbacks = recorder("iterated")
    xs = [4, 5]
    assert interpret(program, callbacks=callbacks)(xs) == [4, 5]
    assert [entry for entry in callbacks.log if entry[1] is xs] == [("iterated", xs, 0, 4), ("iterated", xs, 1, 5)]


def test_places_are_indices_from_the_end_and_keys_of_values():
    callbacks = recorder("iterated")
    xs, table = [4, 5], {"a": 4, "b": 5}

    def program():
        return [x for x in reversed(xs)], [x for x in table.values()], sum(table.values())

    assert interpret(program, callbacks=callbacks)() == ([5, 4], [4, 5], 9)
    places = [entry[2:] for entry in callbacks.log if entry[1] not in ((), [])]
    assert places[:4] == [(1, 5), (0, 4), ("a", 4), ("b", 5)]


def test_what_iterators_in_c_come_to_may_be_replaced():
    class Doubling(Callbacks):
        def advanced(self, iterator, value):
            return value * 2

    def program(xs):
        return [pair for pair in zip(xs, xs, strict=True)], [*map(abs, xs)], [*enumerate(xs)]

    assert interpret(program, callbacks=Doubling())([4]) == ([(4, 4) * 2], [8], [(0, 4) * 2])


def test_spread_dictionaries_are_reported_with_their_values():
    class Doubling(Callbacks):
        def load_item(self, container, key, value):
            return value * 2

    assert interpret(lambda d: ({**d}, dict(**d)), callbacks=Doubling())({"a": 1}) == ({"a": 2}, {"a": 2})


def test_opaque_calls_are_reported_with_operators_as_functions():
    callbacks = recorder("opaque_call", "opaque_result")
    assert interpret(lambda a, b: len([a + b, a < b]), callbacks=callbacks)(1, 2) == 2
    called = [entry[1] for entry in callbacks.log if entry[0] == "opaque_call"]
    assert called == [operator.add, operator.lt, len]
    assert [entry[-1] for entry in callbacks.log if entry[0] == "opaque_result"] == [3, True, 2]


def test_truth_may_be_decided():
    class Yes(Callbacks):
        def truth(self, value):
            return True if value == [] else NotImplemented

    def program(x):
        return ("yes" if x else "no"), not x, bool(x), x and 1, [1] if x or 0 else 2

    assert interpret(program, callbacks=Yes())([]) == ("yes", False, True, 1, [1])
    assert interpret(program, callbacks=Yes())([0]) == program([0])


def test_calls_and_returns_are_reported():
    class Renaming(Callbacks):
        def returned(self, fn, value):
            return value + 1 if fn.__name__ == "inner" else value

    def inner(x):
        return x

    assert interpret(lambda: inner(1) * 10, callbacks=Renaming())() == 20


def test_lookasides_replace_functions_methods_types_and_descriptors():
    class Unhashable:
        __hash__ = None

        def __call__(self):
            return "original"

    unhashable = Unhashable()
    appended = []

    def program(xs, thing):
        xs.append(1)
        return len(xs), thing.method(2), Thing(), functools.partial(abs, -3)(), unhashable(), str.upper("x")

    run = interpret(
        program,
        lookasides=[
            {len: lambda x: "len", Thing.method: lambda self, x: ("method", type(self), x), Thing: lambda: "made"},
            {list.append: lambda xs, x: appended.append((xs, x)), abs: lambda x: "abs"},
            (unhashable, lambda: "replaced"),
            lambda fn: (lambda x: "upper") if fn is str.upper else None,
        ],
    )
    assert run([], Thing()) == ("len", ("method", Thing, 2), "made", "abs", "replaced", "upper")
    assert appended == [([], 1)]


def test_predicates_are_asked_once_for_each_callable():
    asked = []

    def predicate(fn):
        asked.append(fn)

    def program():
        for _ in range(5):
            len([])
            "x".upper()

    interpret(program, lookasides=predicate)()
    assert asked.count(len) == asked.count(str.upper) == 1


def test_a_replacement_may_be_interpreted():
    entered = recorder("call")

    def replacement(x):
        return x + 1

    assert (
        interpret(lambda: len([]), lookasides={len: Interpreted(replacement)}, callbacks=entered)() if False else True
    )
    run = interpret(lambda: abs(-4), lookasides={abs: Interpreted(replacement)}, callbacks=entered)
    assert run() == -3
    assert [entry[1].__name__ for entry in entered.log] == ["<lambda>", "replacement"]


def test_opaque_functions_run_natively_with_their_operators():
    class Proxy:
        def __add__(self, other):
            return ("native", other)

        def __bool__(self):
            return False

        def __getattr__(self, name):
            return name

    proxied = {f.__code__ for f in vars(Proxy).values() if isinstance(f, types.FunctionType)}
    callbacks = recorder("call")
    run = interpret(
        lambda p: (p + 1, "yes" if p else "no", p.anything),
        opaque=lambda fn: fn.__code__ in proxied,
        callbacks=callbacks,
    )
    assert run(Proxy()) == (("native", 1), "no", "anything")
    assert len(callbacks.log) == 1


def test_the_log_tells_what_was_interpreted_and_what_was_not():
    def inner(x):
        return len(x)

    def program():
        return inner([1])

    run = interpret(program, log=True)
    run()
    kinds = [(kind, what.rpartition(".")[2]) for _, kind, what, _, _ in run.log.entries]
    assert kinds == [("interpreted", "program"), ("interpreted", "inner"), ("opaque", "len")]
    assert "return len(x)" in str(run.log)


def test_the_log_has_each_instruction_as_often_as_it_was_run():
    def program(items):
        total = 0
        for item in items:
            total += item
        return total

    run = interpret(program, log=True)
    assert run([3, 4, 5]) == 12
    names = [instruction.opname for instruction in run.log.instructions]
    assert names.count("FOR_ITER") == 4 and names.count("BINARY_OP") == 3
    assert names[-1].startswith("RETURN")
    own = {(i.offset, i.opname) for i in dis.get_instructions(program)}
    assert {(i.offset, i.opname) for i in run.log.instructions} <= own


def test_the_log_follows_generators_and_exceptions():
    def numbers():
        yield from (1, 2)

    def program():
        try:
            return sum(numbers()) / 0
        except ZeroDivisionError:
            return [*numbers()]

    run = interpret(program, log=True)
    assert run() == [1, 2]
    names = {instruction.opname for instruction in run.log.instructions}
    assert {"YIELD_VALUE", "SEND", "CHECK_EXC_MATCH", "POP_EXCEPT"} <= names
    assert interpret(program)() == [1, 2]  # what is decoded for the log serves no other run


def test_items_that_are_not_there_are_reported():
    watcher = recorder("missing_item")

    def program(names, numbers):
        for container, key in ((names, "b"), (numbers, 5), (names, "a")):
            try:
                container[key]
            except LookupError:
                pass

    names, numbers = {"a": 1}, [1]
    interpret(program, callbacks=watcher)(names, numbers)
    assert watcher.log == [("missing_item", names, "b"), ("missing_item", numbers, 5)]


def test_keys_of_dicts_may_be_replaced():
    class Lowering(Callbacks):
        def key(self, container, key):
            return key.lower() if isinstance(key, str) else key

    def program(table, found):
        table["B"] = table["A"] + found["A"] + found.get("A") + table.setdefault("A", 0)
        del table["A"]
        return "B" in table, "A" in table, table.pop("C")

    table = {"a": 1, "c": 7}
    result = interpret(program, callbacks=Lowering())(table, collections.OrderedDict(a=10))

    assert result == (True, False, 7)
    assert table == {"b": 22}


@pytest.mark.parametrize(
    "program", [lambda number: f"a{number}b", lambda number: "a{x[0]}b".format_map({"x": [number]})]
)
def test_text_may_be_made_of_what_stands_in_for_a_format(program):
    class Later:
        def __init__(self, *parts):
            self.parts = parts

        def __add__(self, other):
            return Later(*self.parts, other)

        def __radd__(self, other):
            return Later(other, *self.parts)

    later = interpret(program, lookasides={format: lambda value, *spec: Later(value)})(3)
    assert isinstance(later, Later)
    assert interpret(program)(3) == program(3)


def test_exceptions_are_reported_where_they_reach_interpreted_code_handled_or_not():
    raised = []

    class Watch(Callbacks):
        def raised(self, error):
            raised.append(error)

    def program():
        try:
            int("x")
        except ValueError:
            pass
        with contextlib.suppress(KeyError):
            {}["key"]
        raise TypeError("at last")

    with pytest.raises(TypeError) as last:
        interpret(program, callbacks=Watch())()
    assert [type(e) for e in dict.fromkeys(raised)] == [ValueError, KeyError, TypeError]
    assert raised[-1] is last.value


def test_branches_tell_for_which_truth_nothing_but_a_raise_follows():
    told = []

    class Watch(Callbacks):
        def branch(self, value, code, offset):
            told.append(truth_that_raises(code, offset))
            return NotImplemented

    def program(x, y):
        if x:
            raise ValueError("x" if y else "y")
        if not y:
            return "other"
        while x:
            pass
        if x or not y:
            raise KeyError
        try:
            if y:
                print(end="")
            else:
                raise TypeError(str(y))
        finally:
            x = y
        return "end"

    assert interpret(program, callbacks=Watch())([], [1]) == program([], [1])
    assert told == [True, None, None, True, False, False]


def test_branches_go_the_way_that_is_answered():
    class Watch(Callbacks):
        def branch(self, value, code, offset):
            return True if value == [] else NotImplemented

    assert interpret(lambda x: "yes" if x else "no", callbacks=Watch())([]) == "yes"
    assert interpret(lambda x: "yes" if x else "no", callbacks=Watch())({}) == "no"


def test_a_lookaside_that_declines_leaves_what_it_replaces_to_be_done():
    callbacks = recorder("opaque_call")

    class Long:
        def __len__(self):
            return 7

    replaced = interpret(
        lambda *values: [len(v) for v in values],
        lookasides={len: lambda value: 3 if value == "three" else DECLINED},
        callbacks=callbacks,
    )
    assert replaced("three", [1, 2], Long()) == [3, 2, 7]
    assert [entry[2] for entry in callbacks.log if entry[1] is len] == [[[1, 2]]]


def test_whether_two_values_are_one_object_can_be_answered():
    class Equal(Callbacks):
        def identical(self, a, b):
            return a == b

    def program(a, b):
        return a is b, a is not b

    assert interpret(program)([1], [1]) == (False, True)
    assert interpret(program, callbacks=Equal())([1], [1]) == (True, False)


def test_what_a_generator_hands_on_of_a_container_is_reported():
    class Doubling(Callbacks):
        def iterated(self, container, index, value):
            return value * 2

    def inner(items):
        yield from items

    def program(items):
        return list(inner(items)), [item for item in inner(iter(items))]

    assert interpret(program, callbacks=Doubling())([1, 2]) == ([2, 4], [2, 4])


def test_comparisons_may_be_answered():
    class Answers(Callbacks):
        def compare(self, fn, a, b):
            return f"{fn.__name__} {a} {b}" if b == 7 else NotImplemented

    class Number:
        def __eq__(self, other):
            return other == 7

        __hash__ = None

    def program(n):
        return n == 7, n < 7, n != 3, 1 < n, Number() == 7

    assert interpret(program, callbacks=Answers())(5) == ("eq 5 7", "lt 5 7", True, True, "eq 7 7")


def test_arithmetic_may_be_answered():
    class Answers(Callbacks):
        def arithmetic(self, fn, a, b):
            return f"{fn.__name__} {a} {b}" if b == 7 else NotImplemented

    class Number:
        def __add__(self, other):
            return other + 7

    def program(n):
        total = n
        total += 7
        return n + 7, n - 7, n * 3, total, Number() + 2, n < 7

    expected = ("add 5 7", "sub 5 7", 15, "iadd 5 7", "add 2 7", True)
    assert interpret(program, callbacks=Answers())(5) == expected


def test_getitem_of_what_has_no_iter_is_interpreted():
    class Squares:
        def __getitem__(self, index):
            if index > 3:
                raise IndexError(index)
            return square(index)

    def square(n):
        return n * n

    interpreted = []

    class Watch(Callbacks):
        def call(self, fn, args, kwargs):
            interpreted.append(fn)
            return super().call(fn, args, kwargs)

    def program(squares):
        first, *rest = squares
        return (
            [n for n in squares],
            first,
            rest,
            list(zip(squares, "ab", strict=False)),
            operator.length_hint(squares, 7),
        )

    squares = Squares()
    assert interpret(program, callbacks=Watch())(squares) == program(squares)
    assert interpreted.count(square) == 4 + 4 + 3
