"""What instructions tell of a function is the same on every Python."""

import pytest

from thunder_interpreter import CodeNames, does_nothing, names_of, paths_named


class Held:
    value = 1


HELD = Held()


def with_docstring(self):
    """Nothing else."""


def after_a_look(self):
    self.value  # noqa: B018
    HELD.value  # noqa: B018


NOTHING = [lambda self: None, lambda self: 3, lambda self: 12345678, lambda self: self, with_docstring, after_a_look]
NOTHING += [lambda self, a, b: b]
SOMETHING = [
    lambda self: self.close(),
    lambda self: print(),
    lambda self: setattr(self, "a", 1),
    lambda self: self.a[0],
    lambda self: [0],
    lambda self: self + self,
]


def stores(self):
    self.value = 1


def raises(self):
    raise ValueError


def waits(self):
    yield


def changes(self):
    global HELD
    HELD = None


@pytest.mark.parametrize("function", NOTHING, ids=lambda f: f.__qualname__)
def test_does_nothing(function):
    assert does_nothing(function.__code__)


@pytest.mark.parametrize("function", [*SOMETHING, stores, raises, waits, changes], ids=lambda f: f.__qualname__)
def test_does_something(function):
    assert not does_nothing(function.__code__)


def names_much(self, table):
    global CHANGED
    with self.lock:
        self.count += 1
    table["a"] = 2
    CHANGED = LEFT.append(RIGHT.first.second(self.own).last)  # noqa: F821
    calls = 0

    def inner():
        nonlocal calls
        calls += 1
        return [each.attribute for each in MANY]  # noqa: F821

    from string import digits  # noqa: F401

    return inner, getattr(self, "hidden")  # noqa: B009


def test_names_are_those_of_the_function_and_of_those_within_it():
    names = names_of(names_much.__code__)
    assert names == CodeNames(
        globals=frozenset({"LEFT", "RIGHT", "MANY", "getattr"}),
        attributes=names.attributes,
        written_globals=frozenset({"CHANGED"}),
        written_attributes=frozenset({"count"}),
        written_variables=frozenset({"calls"}),
        changes_containers=True,
    )
    named = {"lock", "count", "append", "first", "second", "own", "last", "attribute", "digits", "hidden"}
    assert named <= names.attributes
    assert names.writes and not names_of(after_a_look.__code__).writes


class Derived(Held):
    def looks_above(self):
        return super().value


def test_what_super_is_asked_for_is_named():
    assert "value" in names_of(Derived.looks_above.__code__).attributes


def test_paths_begin_with_a_global_and_end_where_something_is_done_with_them():
    def function(x, y=1):
        if torch.has(x):  # noqa: F821
            return torch.nn.functional.relu(x, other.name)  # noqa: F821
        return torch._C._nn.gelu(x) + torch.x  # noqa: F821

    assert paths_named(function.__code__) == (
        ("torch", "has"),
        ("torch", "nn", "functional", "relu"),
        ("other", "name"),
        ("torch", "_C", "_nn", "gelu"),
        ("torch", "x"),
    )
