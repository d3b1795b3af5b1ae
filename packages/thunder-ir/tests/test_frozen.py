"""Frozen dataclasses that are made quickly are what ``dataclasses`` makes of them."""

import copy
import inspect
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace
from typing import Any

import pytest

from thunder_ir import quickly_made


@quickly_made
@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 2
    label: Any = None
    _norm: Any = field(default=None, init=False, repr=False, compare=False)


def test_it_takes_what_a_dataclass_takes():
    assert (Point(1).x, Point(1).y, Point(1).label, Point(1)._norm) == (1, 2, None, None)
    assert Point(1, 5, "a") == Point(x=1, y=5, label="a") != Point(1)
    assert repr(Point(1)) == "Point(x=1, y=2, label=None)"
    assert type(Point(1)) is Point and len({Point(1), Point(1)}) == 1
    assert list(inspect.signature(Point).parameters) == ["x", "y", "label"]
    for wrong in ((), (1, 2, 3, 4)):
        with pytest.raises(TypeError, match="__init__"):
            Point(*wrong)


@pytest.mark.parametrize("name", [f.name for f in fields(Point)] + ["other"])
def test_it_is_frozen(name):
    point = Point(1)
    with pytest.raises((FrozenInstanceError, TypeError)):
        setattr(point, name, 7)
    with pytest.raises((FrozenInstanceError, TypeError)):
        delattr(point, name)
    assert point == Point(1)


def test_a_class_derived_from_it_stays_itself():
    class Named(Point):
        __slots__ = ()

    assert type(Named(1)) is Named and Named(1).x == 1


def test_it_is_copied_pickled_and_replaced():
    point = Point(1, label="a")
    for other in (copy.copy(point), copy.deepcopy(point), pickle.loads(pickle.dumps(point)), replace(point)):
        assert other == point and type(other) is Point
    assert replace(point, y=3) == Point(1, 3, "a")


def test_what_it_cannot_make_is_refused():
    @dataclass(frozen=True, slots=True)
    class Listed:
        items: list = field(default_factory=list)

    @dataclass(frozen=True, slots=True)
    class Derived(Point):
        z: int = 3

    @dataclass(frozen=True, slots=True)
    class Checked:
        x: int

        def __post_init__(self):
            raise ValueError

    @dataclass(frozen=True)
    class Open:
        x: int

    for cls in (Listed, Derived, Checked, Open):
        with pytest.raises(TypeError, match="cannot be made quickly"):
            quickly_made(cls)
