"""Which places of a program might catch an exception."""

import contextlib

from thunder_interpreter import interpret


def probe():
    """Stands for an operation that may raise."""


def inner():
    probe()


def program():
    probe()
    with contextlib.nullcontext():
        probe()
    try:
        probe()
        with contextlib.nullcontext():
            inner()
    except ValueError:
        pass
    else:
        probe()
    try:
        raise KeyError
    except KeyError:
        probe()
    try:
        probe()
    finally:
        probe()
    return [probe() for _ in range(1)], list(each())


def each():
    yield probe()
    try:
        yield probe()
    except ValueError:
        pass


def test_exceptions_that_a_library_may_catch_are_not_the_users():
    found = []
    run = interpret(program, lookasides={probe: lambda: found.append(run.is_tried(lambda _: True))})
    run()
    assert not any(found)


def test_exceptions_may_be_caught_within_try_statements_alone():
    found = []
    run = interpret(program, lookasides={probe: lambda: found.append(run.is_tried(lambda names: "library" in names))})
    run()
    assert found == [False, False, True, True, False, False, True, False, False, False, True]
