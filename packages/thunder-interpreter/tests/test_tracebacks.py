"""Tracebacks, frames and warnings show the user's frames and nothing else."""

import inspect
import io
import pdb
import sys
import traceback
import warnings

import pytest

from thunder_interpreter import Callbacks, interpret


def fails(x):
    return 1 / x


def middle(x):
    return fails(x)


def handled():
    try:
        middle(0)
    except ZeroDivisionError as error:
        raise ValueError("again") from error


def entries(error):
    return [(entry.name, entry.lineno, entry.filename) for entry in traceback.extract_tb(error.__traceback__)]


def caught(fn, *args):
    try:
        fn(*args)
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize("program", [lambda: middle(0), handled], ids=["direct", "chained"])
def test_a_traceback_has_exactly_the_users_frames(program):
    plain, interpreted = caught(program), caught(interpret(program))
    assert entries(interpreted) == entries(plain)
    if plain.__cause__ is not None:
        assert entries(interpreted.__cause__) == entries(plain.__cause__)
    shown = "".join(traceback.format_exception(interpreted))
    assert shown == "".join(traceback.format_exception(plain))


def test_frames_below_c_functions_are_shown_once():
    def program():
        return sorted([1, 2], key=lambda x: middle(0))

    assert entries(caught(interpret(program))) == entries(caught(program))


def test_frames_of_generators_are_shown():
    def numbers():
        yield 1
        middle(0)

    def flat():
        for _ in numbers():
            pass

    def in_c():
        return list(numbers())

    for program in (flat, in_c):
        assert entries(caught(interpret(program))) == entries(caught(program))


def test_an_error_in_a_lookaside_has_what_was_being_handled_as_its_context():
    def program():
        try:
            try:
                raise KeyError("first")
            except KeyError:
                fails()
        except ValueError as error:
            return repr(error.__context__)

    def broken():
        raise ValueError("second")

    assert interpret(program, lookasides={fails: broken})() == "KeyError('first')"


def test_an_error_in_a_lookaside_surfaces_with_the_users_frames():
    def broken(x):
        raise KeyError("broken")

    error = caught(interpret(middle, lookasides={fails: broken}), 1)
    names = [name for name, _, _ in entries(error)]
    assert isinstance(error, KeyError) and names == ["caught", "middle", "broken"]


def test_an_error_in_a_callback_surfaces_with_the_users_frames():
    class Broken(Callbacks):
        def load_global(self, names, name, value):
            if name == "fails":
                raise KeyError("broken")
            return value

    error = caught(interpret(middle, callbacks=Broken()), 1)
    assert [name for name, _, _ in entries(error)] == ["caught", "middle", "load_global"]


def test_the_current_exception_is_that_of_the_program():
    def program():
        found = [sys.exc_info()]
        try:
            fails(0)
        except ZeroDivisionError as error:
            found.append(sys.exc_info()[1] is error)
            found.append(sys.exception() is error)
            found.append(traceback.format_exc().splitlines()[-1])
        found.append(sys.exc_info())
        return found

    assert interpret(program)() == program()


def test_frames_are_those_of_the_user():
    def names():
        frame, found = sys._getframe(), []
        while frame is not None:
            found.append(frame.f_code.co_name)
            frame = frame.f_back
        return found

    def outer():
        local = 5
        frame = inspect.currentframe()
        caller = [entry.function for entry in inspect.stack()][:2]
        return sys._getframe().f_locals["local"], frame.f_lineno - frame.f_code.co_firstlineno, caller, names(), local

    def through_c():
        return [*map(lambda _: names(), [0])][0]

    assert interpret(outer)() == outer()
    assert interpret(through_c)() == through_c()


def test_warnings_count_the_users_frames():
    def warns():
        warnings.warn("careful", stacklevel=2)

    def program():
        warns()

    found = []
    for fn in (program, interpret(program)):
        with warnings.catch_warnings(record=True) as record:
            warnings.simplefilter("always")
            fn()
        found.append((record[0].filename, record[0].lineno, str(record[0].message)))
    assert found[0] == found[1]


def test_location_and_stack_name_the_users_code():
    seen = []

    def here():
        seen.append((run.location(), run.stack()))

    def inner():
        here()

    def program():
        inner()

    run = interpret(program, lookasides={here: here})
    run()
    location, stack = seen[0]
    assert (location.filename, location.line) == (__file__, inner.__code__.co_firstlineno + 1)
    assert [name for _, _, name in stack] == ["program", "inner"]
    assert run.location() is None


def test_a_location_passes_over_libraries_unless_there_is_nothing_else():
    seen = []
    namespace = {"__name__": "library", "here": lambda of_library: seen.append(run.location(of_library).line)}
    exec(compile("def called(of_library):\n    here(of_library)", "library.py", "exec"), namespace)

    def program(called, of_library):
        called(of_library)

    run = interpret(program, lookasides={namespace["here"]: namespace["here"]})
    for of_library in (None, lambda scope: scope.get("__name__") == "library", lambda scope: True):
        run(namespace["called"], of_library)
    assert seen == [2, program.__code__.co_firstlineno + 1, 2]


def test_names_are_suggested_as_by_cpython():
    def program():
        number = 1
        return numbr + number  # noqa: F821

    shown = "".join(traceback.format_exception(caught(interpret(program))))
    assert shown == "".join(traceback.format_exception(caught(program)))


def test_the_objects_of_a_finished_run_are_freed_at_once():
    freed = []

    class Thing:
        def __del__(self):
            freed.append(1)

    def program():
        try:
            thing = Thing()
            fails(0)
        except ZeroDivisionError:
            del thing
        Thing()
        return len(freed)

    assert interpret(program)() == 2


def deep(x):
    doubled = [2 * x for _ in range(3)]

    return (
        doubled +
        x / 0
    )  # fmt: skip


def late(x):
    total = 1
    if x:
        total = deep(x)
    return total


class Body:
    @staticmethod
    def within_a_class():
        class Found:
            first = 1
            second = first / 0


def with_cell(x):
    inner = lambda: x / 0  # noqa: E731
    return inner()


def frames_of(error):
    found, entry = [], error.__traceback__
    while entry is not None:
        found.append((entry.tb_frame, entry.tb_lineno))
        entry = entry.tb_next
    return [
        (frame, line)
        for frame, line in found
        if frame.f_code.co_filename == __file__ and frame.f_code is not caught.__code__
    ]


@pytest.mark.parametrize(
    "program", [lambda: late(3), Body.within_a_class, lambda: with_cell(2)], ids=["functions", "class body", "closure"]
)
def test_frames_that_left_the_interpreter_have_lines_and_variables(program):
    plain, interpreted = frames_of(caught(program)), frames_of(caught(interpret(program)))
    assert [frame.f_lineno for frame, _ in interpreted] == [line for _, line in plain]
    for (theirs, _), (ours, _) in zip(plain, interpreted, strict=True):
        assert ours.f_code.co_name == theirs.f_code.co_name
        kept = {name: value for name, value in theirs.f_locals.items() if not callable(value)}
        assert {name: ours.f_locals[name] for name in kept} == kept


def test_frames_of_what_led_to_an_error_have_lines_too():
    error = caught(interpret(handled)).__cause__
    assert [frame.f_lineno for frame, _ in frames_of(error)] == [line for _, line in frames_of(error)]


def test_the_trace_function_of_a_frame_is_set_and_removed():
    def program():
        frame = sys._getframe()
        frame.f_trace = print
        before = frame.f_trace
        del frame.f_trace
        return before, frame.f_trace

    assert interpret(program)() == program() == (print, None)


def test_debuggers_and_printers_of_tracebacks_find_their_way():
    error = caught(interpret(late), 3)
    debugger = pdb.Pdb(
        stdin=io.StringIO("p doubled\nup\np total\nquit\n"), stdout=(shown := io.StringIO()), nosigint=True
    )
    debugger.reset()
    debugger.interaction(None, error.__traceback__)
    assert "[6, 6, 6]" in shown.getvalue() and "(Pdb) 1\n" in shown.getvalue()
    captured = traceback.TracebackException.from_exception(error, capture_locals=True)
    assert captured.stack[-1].locals == {"x": "3", "doubled": "[6, 6, 6]"}
    assert [f.lineno for f in inspect.getinnerframes(error.__traceback__)][-1] == captured.stack[-1].lineno
    assert "doubled    = [6, 6, 6]" in str(pytest.ExceptionInfo.from_exception(error).getrepr(showlocals=True))
