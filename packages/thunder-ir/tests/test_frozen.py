"""Dataclasses that are defined quickly are what the standard library makes of them."""

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, field, fields, replace
from typing import Any, ClassVar

import pytest

from thunder_ir import dataclass


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 2
    label: Any = None
    _norm: Any = field(default=None, init=False, repr=False, compare=False)


@dataclass(frozen=True)
class Open:
    x: int
    items: list = field(default_factory=list)
    unit: ClassVar[str] = "m"


@dataclass(slots=True)
class Counter:
    items: dict = field(default_factory=dict, init=False)
    count: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Own:
    x: Any

    def __hash__(self):
        return 7

    def __repr__(self):
        return "own"


@dataclass(frozen=True, slots=True)
class Nothing:
    """Has no fields."""


def test_it_takes_what_a_dataclass_takes():
    assert (Point(1).x, Point(1).y, Point(1).label, Point(1)._norm) == (1, 2, None, None)
    assert Point(1, 5, "a") == Point(x=1, y=5, label="a") != Point(1)
    assert repr(Point(1)) == "Point(x=1, y=2, label=None)"
    assert type(Point(1)) is Point and len({Point(1), Point(1)}) == 1
    assert list(inspect.signature(Point).parameters) == ["x", "y", "label"]
    assert Point.__match_args__ == ("x", "y", "label")
    for wrong in ((), (1, 2, 3, 4)):
        with pytest.raises(TypeError, match="__init__"):
            Point(*wrong)


@pytest.mark.parametrize("name", [f.name for f in fields(Point)] + ["other"])
def test_it_is_frozen(name):
    point = Point(1)
    with pytest.raises(FrozenInstanceError, match=f"cannot assign to field '{name}'"):
        setattr(point, name, 7)
    with pytest.raises(FrozenInstanceError, match=f"cannot delete field '{name}'"):
        delattr(point, name)
    assert point == Point(1)


def test_defaults_are_made_for_each_instance():
    assert Open(1) == Open(1, []) and Open(1).items is not Open(1).items and Open.unit == "m"
    counter = Counter()
    counter.count += 1
    assert counter == Counter(1) and counter.items is not Counter(1).items and Counter.__hash__ is None


def test_what_a_class_defines_itself_stays():
    assert repr(Own(1)) == "own" and hash(Own(1)) == 7 and Own(1) != Own(1)
    assert Nothing() == Nothing() and hash(Nothing()) == hash(()) and repr(Nothing()) == "Nothing()"


def test_one_field_is_compared_like_several():
    @dataclass(frozen=True)
    class One:
        x: Any

    nan = float("nan")
    assert One(nan) == One(nan) and One(1) != One(2) and One(1) != Open(1) and hash(One(1)) == hash((1,))


def test_a_class_derived_from_it_stays_itself():
    class Named(Point):
        pass

    assert type(Named(1)) is Named and Named(1).x == 1 and Named(1) != Point(1)
    named = Named(1)
    named.other = 3
    with pytest.raises(FrozenInstanceError):
        named.x = 3


def test_more_than_its_own_fields_are_what_the_standard_library_makes_of_them():
    @dataclass(frozen=True, slots=True)
    class Derived(Point):
        z: int = 3

    @dataclass(frozen=True)
    class Checked:
        x: int

        def __post_init__(self):
            if self.x < 0:
                raise ValueError

    @dataclass(frozen=True, order=True)
    class Ordered:
        x: int

    assert repr(Derived(1)).endswith("Derived(x=1, y=2, label=None, z=3)") and Derived(1) == Derived(1, 2, None, 3)
    assert Ordered(1) < Ordered(2)
    with pytest.raises(FrozenInstanceError):
        Derived(1).x = 2
    with pytest.raises(ValueError):
        Checked(-1)


@pytest.mark.parametrize("value", [Point(1, label="a"), Open(1, [2]), Counter(3)], ids=lambda v: type(v).__name__)
def test_it_is_copied_pickled_and_replaced(value):
    for other in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value)), replace(value)):
        assert other == value and type(other) is type(value)
    assert dataclasses.is_dataclass(value) and fields(value) == fields(type(value))


def test_defining_one_takes_a_fraction_of_the_time():
    program = """
import dataclasses, sys, thunder_ir, time
def defining(dataclass):
    class Point:
        "A point."
        x: int
        y: int = 0
    start = time.process_time()
    dataclass(Point, frozen=True, slots=True)
    return time.process_time() - start
ours, theirs = (min([defining(d) for _ in range(50)]) for d in (thunder_ir.dataclass, dataclasses.dataclass))
sys.exit(ours > theirs / 2)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
