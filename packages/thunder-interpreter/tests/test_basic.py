"""The smallest programs."""

from thunder_interpreter import interpret


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def test_calls_itself():
    assert interpret(fib)(12) == 144
