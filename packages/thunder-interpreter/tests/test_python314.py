"""What Python 3.14 brought to the language; as text, since older versions cannot read it."""

import sys
import textwrap

import pytest

from thunder_interpreter import Callbacks, interpret

pytestmark = pytest.mark.skipif(
    sys.version_info < (3, 14), reason="the syntax and its meaning are those of Python 3.14"
)

PROGRAMS = {
    "template strings": """
        def program():
            name, width = "world", 12
            made = t"Hello {name!r:>{width}} and {name}{width=}"
            parts = [(p.value, p.expression, p.conversion, p.format_spec) for p in made.interpolations]
            return made.strings, parts, [*(t"{1}" + t"{2}")][0].value, type(made).__name__
        """,
    "annotations of functions are evaluated when they are asked for": """
        def program():
            def annotated(a: Later, b: int = 2) -> list[Later]:
                return a

            before = None
            try:
                annotated.__annotations__
            except NameError as error:
                before = str(error)

            class Later:
                pass

            found = annotated.__annotations__
            return before, [*found], found["b"], annotated.__annotate__.__qualname__
        """,
    "annotations of classes": """
        import annotationlib

        def program():
            class Node:
                child: Node
                value: int = 3
                if value:
                    extra: str

            text = annotationlib.get_annotations(Node, format=annotationlib.Format.STRING)
            return text, Node.__annotations__["child"] is Node, Node.value
        """,
    "data classes": """
        from dataclasses import dataclass

        def program():
            @dataclass
            class Point:
                x: int
                other: Point | None = None

            return repr(Point(1, Point(2)).other.x), Point(1) == Point(1)
        """,
    "exceptions without parentheses": """
        def program():
            found = []
            for error in (ValueError("a"), KeyError("b"), ExceptionGroup("c", [OSError("d"), TypeError("e")])):
                try:
                    try:
                        raise error
                    except ValueError, KeyError:
                        found.append(repr(error))
                except* OSError, TypeError:
                    found.append("group")
            return found
        """,
    "leaving a loop and a finally": """
        def program():
            found = []
            for i in range(5):
                try:
                    if i == 1:
                        continue
                    if i == 3:
                        break
                finally:
                    found.append(i)
            with open_and_close(found) as entered:
                found.append(entered)
            return found

        class open_and_close:
            def __init__(self, log):
                self.log = log

            def __enter__(self):
                return "in"

            def __exit__(self, *error):
                self.log.append("out")
        """,
    "what is no context manager": """
        class OnlyAsynchronous:
            async def __aenter__(self): ...
            async def __aexit__(self, *error): ...

        def program():
            found = []
            for manager in (3, OnlyAsynchronous(), open):
                try:
                    with manager:
                        pass
                except TypeError as error:
                    found.append(str(error))
            return found
        """,
    "errors of unpacking": """
        def program():
            found = []
            for values in ([1, 2, 3], (1, 2, 3), {1: 1, 2: 2, 3: 3}, "abc", range(3)):
                try:
                    a, b = values
                except ValueError as error:
                    found.append(str(error))
            return found
        """,
    "errors of await": """
        def program():
            async def waiting(value):
                await value

            found = []
            for value in (1, [2]):
                try:
                    waiting(value).send(None)
                except TypeError as error:
                    found.append(str(error))
            return found
        """,
    "small numbers, common constants and calls with everything": """
        def program(n=255):
            def taken(*args, **kwargs):
                return args, kwargs

            assert n == 255
            common = all(x for x in (1, 2)), any(x for x in (0, 0)), tuple(x for x in "a")
            return taken(*(1, 2), **{"a": n}), taken(*[0]), common
        """,
    "the generator of a frame": """
        import sys

        def program():
            def generator():
                yield sys._getframe().f_generator

            made = generator()
            return next(made) is made, sys._getframe().f_generator
        """,
}


def function(source):
    names = {"__name__": "example"}
    exec(compile(textwrap.dedent(source), "example.py", "exec", dont_inherit=True), names)
    return names["program"]


class Everything(Callbacks):
    """Hears everything and changes nothing."""


for name in [name for name in vars(Callbacks) if not name.startswith("_")]:
    setattr(Everything, name, lambda self, *args, _name=name: getattr(Callbacks, _name)(self, *args))


@pytest.mark.parametrize("source", PROGRAMS.values(), ids=PROGRAMS)
def test_programs_of_python_3_14_do_what_cpython_does(source):
    program = function(source)
    assert interpret(program)() == program()
    assert interpret(program, callbacks=Everything())() == program()


def test_numbers_in_the_bytecode_are_constants_to_callbacks():
    class Doubling(Callbacks):
        def constant(self, value):
            return 2 * value if type(value) is int else value

    assert interpret(function("def program(): return [7, 700]"), callbacks=Doubling())() == [14, 1400]
