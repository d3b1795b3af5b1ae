"""What programs use of modules stays what it was when they were printed."""

import math
import types

from thunder_ir.literals import Context


def test_a_member_is_the_object_that_was_given_whatever_becomes_of_its_module():
    context = Context()
    module = types.SimpleNamespace(sin=math.sin)
    text = context.member("math.sin", module.sin)
    module.sin = math.cos
    assert text == "math.sin"
    assert context.imports == {"math": "import math"}
    assert eval(text, dict(context.globals)) is math.sin
    assert context.globals["math"] is not math and not hasattr(context.globals["math"], "cos")


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
    assert not hasattr(Kind, "one") and not hasattr(scope["a"], "one")


def test_what_a_program_uses_of_a_module_is_kept_in_a_module_of_which_python_reads_it_in_one_step():
    context = Context()
    context.member("a.b.one", object())
    assert type(context.globals["a"]) is type(context.globals["a"].b) is types.ModuleType


class Kind:
    """Has a method."""

    def method(self):
        """Nothing."""
