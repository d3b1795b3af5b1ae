"""What programs use of modules stays what it was when they were printed."""

import math
import types

from thunder_ir.literals import Context, Members


def test_a_member_is_the_object_that_was_given_whatever_becomes_of_its_module():
    context = Context()
    module = types.SimpleNamespace(sin=math.sin)
    text = context.member("math.sin", module.sin)
    module.sin = math.cos
    assert text == "math.sin"
    assert context.imports == {"math": "import math"}
    assert eval(text, dict(context.globals)) is math.sin
    assert repr(context.globals["math"]) == "<sin>"


def test_members_of_members_stand_side_by_side_and_a_class_is_left_alone():
    context = Context()
    one, two = object(), object()
    assert context.member("a.b.one", one) == "a.b.one"
    assert context.member("a.b.two", two) == "a.b.two"
    assert context.member("a.Kind", Kind) == "a.Kind"
    assert context.member("a.Kind.method", Kind.method) == "a.Kind.method"
    scope = dict(context.globals)
    assert [eval(text, scope) for text in ("a.b.one", "a.b.two", "a.Kind")] == [one, two, Kind]
    assert eval("a.Kind.method", scope) is Kind.method
    assert isinstance(scope["a"].b, Members)


class Kind:
    """Has a method."""

    def method(self):
        """Nothing."""
