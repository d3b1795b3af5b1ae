"""The language: interpreted programs do what CPython does."""

import abc
import contextvars
import dis
import importlib.util
import sys
import threading
import types
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thunder_interpreter import Callbacks, UnsupportedOpcode, UnsupportedPython, interpret
from thunder_interpreter._registry import registry

specification = importlib.util.spec_from_file_location("interpreter_programs", Path(__file__).with_name("programs.py"))
programs = importlib.util.module_from_spec(specification)
sys.modules[specification.name] = programs
specification.loader.exec_module(programs)


with_threads = pytest.mark.skipif(sys.platform == "emscripten", reason="WebAssembly has no threads to start here")


class Everything(Callbacks):
    """Hears everything and changes nothing."""


for name in [name for name in vars(Callbacks) if not name.startswith("_")]:
    setattr(Everything, name, lambda self, *args, _name=name: getattr(Callbacks, _name)(self, *args))


def outcome(fn, *args):
    """The result, or the exception with its words."""
    try:
        return "returned", fn(*args)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("program", programs.PROGRAMS, ids=lambda f: f.__name__)
def test_a_program_does_what_cpython_does(program):
    assert outcome(interpret(program)) == outcome(program)


@pytest.mark.parametrize("program", programs.PROGRAMS, ids=lambda f: f.__name__)
def test_callbacks_change_nothing(program):
    assert outcome(interpret(program, callbacks=Everything())) == outcome(program)
    assert outcome(interpret(program, callbacks=Everything(), log=True)) == outcome(program)


def test_every_opcode_of_this_python_has_a_handler():
    specialised = {name for name, number in dis.opmap.items() if number >= 256 or name.startswith("INSTRUMENTED_")}
    assert set(dis.opmap) - specialised - registry.names() == set()


numbers = st.integers(-5, 5) | st.floats(allow_nan=False) | st.booleans() | st.text(max_size=3) | st.none()


@given(numbers, numbers)
def test_arithmetic_is_that_of_cpython(a, b):
    def f(a, b):
        return [a == b, a is b, a + b, a * b, a - b, a < b, a / b, a**2, -a, not b]

    assert repr(outcome(interpret(f), a, b)) == repr(outcome(f, a, b))


@given(st.lists(st.integers(0, 3)), st.integers(0, 4))
def test_unpacking_is_that_of_cpython(values, count):
    def two(values):
        a, b = values
        return a, b

    def starred(values):
        a, *rest, b = iter(values)
        return a, rest, b

    for f in (two, starred):
        assert outcome(interpret(f), values) == outcome(f, values)


def test_generators_look_like_generators():
    def numbers():
        yield 1

    async def later():
        return 2

    async def many():
        yield 3

    def make():
        return numbers(), later(), many()

    generator, coroutine, asynchronous = interpret(make)()
    assert type(generator) is types.GeneratorType and type(coroutine) is types.CoroutineType
    assert type(asynchronous) is types.AsyncGeneratorType
    assert generator.__name__ == "numbers" and list(generator) == [1]
    with pytest.raises(StopIteration) as stopped:
        coroutine.send(None)
    assert stopped.value.value == 2


def test_a_generator_outlives_the_run_that_made_it_and_cleans_up():
    log = []

    def numbers():
        try:
            yield 1
            yield 2
        finally:
            log.append("closed")

    generator = interpret(lambda: numbers())()
    assert next(generator) == 1
    del generator
    assert log == ["closed"]


@pytest.mark.parametrize("callbacks", [None, Everything()], ids=["alone", "watched"])
def test_a_generator_that_nobody_keeps_is_closed_once_it_has_answered(monkeypatch, callbacks):
    unraisable = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)

    def program():
        log = []

        def inner():
            try:
                yield from (1, 2)
            finally:
                log.append("inner closed")

        def numbers():
            try:
                for number in inner():
                    yield number + 0
            finally:
                log.append("closed")

        log.append(next(numbers()))
        log.append(numbers().send(None))
        log.append(any(number == 1 for number in numbers()))
        return log

    assert interpret(program, callbacks=callbacks)() == program()
    assert unraisable == []


def test_deep_recursion_needs_no_deep_native_stack():
    def down(n):
        return n if n == 0 else down(n - 1)

    def native_depth():
        depth, frame = 0, sys._getframe()
        while frame is not None:
            depth, frame = depth + 1, frame.f_back
        return depth

    depths = []
    run = interpret(lambda n: bottom(n), lookasides=[(native_depth, lambda: depths.append(native_depth_here()))])

    def bottom(n):
        return native_depth() if n == 0 else bottom(n - 1)

    def native_depth_here():
        return native_depth()

    run(1)
    run(300)
    assert depths[0] == depths[1]
    assert interpret(down)(500) == 0


def test_the_users_recursion_limit_holds():
    def forever(n):
        return forever(n + 1)

    with pytest.raises(RecursionError, match="maximum recursion depth exceeded"):
        interpret(forever)(0)


def test_callables_handed_to_c_are_interpreted():
    entered = []

    class Calls(Callbacks):
        def call(self, fn, args, kwargs):
            entered.append(fn.__name__)

    def program():
        def key(x):
            return -x

        class Many:
            def __init__(self):
                self.left = 2

            def __iter__(self):
                return self

            def __next__(self):
                self.left -= 1
                if self.left < 0:
                    raise StopIteration
                return self.left

        return sorted([1, 2], key=key), list(map(key, [1])), sum(Many()), max([1, 2], key=key)

    assert interpret(program, callbacks=Calls())() == ([2, 1], [-1], 1, 1)
    assert entered.count("key") == 5 and "__next__" in entered and "__iter__" in entered


@with_threads
def test_threads_run_their_functions_interpreted():
    entered = []

    class Calls(Callbacks):
        def call(self, fn, args, kwargs):
            entered.append((fn.__name__, threading.get_ident()))

    def work(results, n):
        results.append(programs.fib(n))

    def program():
        results = []
        threads = [threading.Thread(target=work, args=(results, n)) for n in (5, 6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sorted(results)

    assert interpret(program, callbacks=Calls())() == [5, 8]
    threads = [thread for name, thread in entered if name == "work"]
    assert len(threads) == 2 and threading.get_ident() not in threads


def test_what_runs_in_another_context_is_interpreted():
    entered = []

    class Calls(Callbacks):
        def call(self, fn, args, kwargs):
            entered.append(fn.__name__)

    assert interpret(lambda: contextvars.copy_context().run(programs.fib, 5), callbacks=Calls())() == 5
    assert "fib" in entered


@with_threads
def test_one_interpretation_may_run_in_several_threads_at_once():
    run = interpret(programs.fib)
    results = []
    threads = [threading.Thread(target=lambda: results.append(run(12))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [144] * 4


def test_an_interpretation_may_run_inside_itself():
    def program(n):
        return n if n == 0 else 1 + run(n - 1)

    run = interpret(program)
    assert run(5) == 5


def test_what_the_program_does_to_builtins_does_not_hurt_the_interpreter(monkeypatch):
    def program():
        import builtins

        kept = builtins.len
        builtins.len = lambda x: 7
        try:
            return len([]), [i for i in range(3)]
        finally:
            builtins.len = kept

    assert interpret(program)() == (7, [0, 1, 2])


def test_a_class_that_changes_while_it_is_used_is_seen_to_change():
    class Thing:
        x = 1

    def program():
        found = [Thing().x]
        Thing.x = property(lambda self: 2)
        found.append(Thing().x)
        Thing.__add__ = lambda self, other: 3
        found.append(Thing() + 1)
        Thing.__getattr__ = lambda self, name: name
        found.append(Thing().missing)
        return found

    assert interpret(program)() == [1, 2, 3, "missing"]


def test_time_is_linear_in_what_is_executed_and_memory_is_not():
    import tracemalloc

    def loop(n):
        total = 0
        for i in range(n):
            total += i % 7
        return total

    run = interpret(loop)
    run(1000)
    tracemalloc.start()
    run(1000)
    _, little = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    run(30_000)
    _, much = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert much < little + 20_000


def test_what_is_no_callable_is_refused():
    with pytest.raises(TypeError, match="interpret needs a callable, got int"):
        interpret(3)


def test_an_unsupported_python_is_refused(monkeypatch):
    monkeypatch.setattr("thunder_interpreter._interpretation.RUNNING", (3, 10))
    with pytest.raises(UnsupportedPython, match=r"bytecode of Python 3\.11 to 3\.14, and this is 3\.10$"):
        interpret(len)


def test_a_free_threaded_python_is_refused_in_one_sentence(monkeypatch):
    monkeypatch.setattr("thunder_interpreter._interpretation.FREE_THREADED", True)
    with pytest.raises(UnsupportedPython, match=r"is a free-threaded build, .*: use the ordinary build"):
        interpret(len)


def test_an_opcode_without_handler_is_named_with_its_place(monkeypatch):
    plain = registry.entry

    def entry(name, watched, resumable):
        return None if name == "BINARY_OP" else plain(name, watched, resumable)

    monkeypatch.setattr(registry, "entry", entry)
    with pytest.raises(
        UnsupportedOpcode, match=r"no handler for BINARY_OP .*test_language\.py, .*<lambda>, offset \d+"
    ):
        interpret(lambda a, b: a + b)(1, 2)


def test_a_generator_that_runs_already_is_refused():
    def program():
        def numbers():
            yield next(generator)

        generator = numbers()
        return next(generator)

    with pytest.raises(ValueError, match="generator already executing"):
        interpret(program)()


def test_a_bridge_runs_a_function_interpreted_for_native_code():
    entered = []

    class Calls(Callbacks):
        def call(self, fn, args, kwargs):
            entered.append(fn.__name__)

    def inner(x):
        return x + 1

    run = interpret(inner, callbacks=Calls())
    assert run.bridge(inner)(1) == 2 and entered == ["inner"]
    assert run.bridge(len)([1]) == 1


def test_cached_properties_are_interpreted_for_each_instance():
    import functools

    entered = []

    class Calls(Callbacks):
        def call(self, fn, args, kwargs):
            entered.append(fn.__name__)

    class Lazy:
        @functools.cached_property
        def value(self):
            return 1

    def program():
        first, second = Lazy(), Lazy()
        return first.value + first.value + second.value + second.value

    assert interpret(program, callbacks=Calls())() == 4
    assert entered.count("value") == 2


def test_a_second_run_gives_the_same():
    run = interpret(programs.classes)
    assert run() == run()


class FalselyTrue:
    """Has a length, and says that it has no truth."""

    __bool__ = None

    def __len__(self):
        return 1


class Ordered(abc.ABC):  # noqa: B024
    def __add__(self, other):
        return "left"

    def __lt__(self, other):
        return "left"


class Inheriting(Ordered):
    def __radd__(self, other):
        return "right"

    def __gt__(self, other):
        return "right"


@Ordered.register
class Registered:
    def __radd__(self, other):
        return "right"

    def __gt__(self, other):
        return "right"


class Answering(dict):
    def __missing__(self, key):
        return f"no {key}"


class Computing(dict):
    def __getitem__(self, key):
        return f"some {key}"


class Unreadable:
    """An endless iterator of which no attribute can be looked up."""

    def __iter__(self):
        return self

    def __next__(self):
        return 1

    def __repr__(self):
        return "<unreadable>"

    def __getattr__(self, name):
        raise ZeroDivisionError(name)


@pytest.mark.parametrize(
    "program",
    [
        lambda: bool(FalselyTrue()),
        lambda: not FalselyTrue(),
        lambda: 1 if FalselyTrue() else 2,
        lambda: FalselyTrue() and 3,
    ],
    ids=["bool", "not", "if", "and"],
)
def test_what_has_no_truth_is_not_asked_for_its_length(program):
    assert outcome(program)[0] is TypeError
    assert outcome(interpret(program)) == outcome(program)


@pytest.mark.parametrize("other", [Inheriting, Registered])
def test_only_true_subclasses_go_first_in_reflected_operators(other):
    def program():
        return Ordered() + other(), Ordered() < other()

    assert interpret(program)() == program()


@pytest.mark.parametrize("source", ["z", "lambda: z", "[z for _ in 'a']", "lambda: len"])
@pytest.mark.parametrize("namespace", [Answering, Computing])
def test_globals_that_are_no_plain_dictionary_are_asked_as_cpython_asks_them(source, namespace):
    def program():
        made = eval(source, namespace(z=1) if namespace is Computing else namespace())
        return made() if callable(made) else made

    assert outcome(interpret(program)) == outcome(program)


def test_closing_a_generator_reports_and_ignores_that_a_delegate_cannot_be_asked(monkeypatch):
    def program():
        seen = []
        monkeypatch.setattr(
            sys, "unraisablehook", lambda found: seen.append((str(found.exc_value), found.err_msg, str(found.object)))
        )

        def delegating():
            try:
                yield from Unreadable()
            finally:
                seen.append("ended")

        generator = delegating()
        next(generator)
        generator.close()
        return seen

    assert interpret(program)() == program()
    assert [program()[0][0], program()[-1]] == ["close", "ended"]


def test_clearing_the_frame_of_a_suspended_generator_ends_it_or_is_refused():
    def program():
        seen = []

        def suspended():
            try:
                yield
            finally:
                seen.append("ended")

        generator = suspended()
        next(generator)
        return outcome(generator.gi_frame.clear), list(seen)

    assert interpret(program)() == program()


def test_variables_of_a_frame_are_a_mapping_as_cpython_has_it():
    def program():
        x = [1]
        names = sys._getframe().f_locals
        names["y"] = names["x"]
        for change in (lambda: names.update({"z": 3}), lambda: names.update([1])):
            outcome(change)
        return {name: names[name] for name in [*names.keys()] if name in "xyz"}, sorted(locals()), len(names), x

    assert interpret(program)() == program()


def test_the_namespace_of_a_class_body_is_written_through_where_it_reads_variables_from_outside():
    def program():
        given = {"a": 1, "b": 2}

        class Made:
            vars().update({name: value for name, value in given.items() if name != "b"})
            seen = [sorted(name for name in vars() if name.islower()) for _ in "x"]

        return Made.a, hasattr(Made, "b"), Made.seen

    assert interpret(program)() == program()
