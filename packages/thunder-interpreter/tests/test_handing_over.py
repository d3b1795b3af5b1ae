"""Iterables and mappings of user-defined classes that C code goes through: their methods are interpreted."""

import collections
import itertools
import operator
from collections.abc import Mapping

import pytest

from thunder_interpreter import Callbacks, interpret


class Elements:
    def __init__(self, *held):
        self.held = held

    def __iter__(self):
        for value in self.held:
            yield value + 1


class Places:
    def __getitem__(self, index):
        if index > 2:
            raise IndexError(index)
        return index + 1


class Table:
    def keys(self):
        return Elements(0, 1)

    def __getitem__(self, key):
        return key * 10


class Named(Mapping):
    def __iter__(self):
        return iter(["a", "b"])

    def __len__(self):
        return 2

    def __getitem__(self, key):
        return key + key


class Fails(Table):
    def __getitem__(self, key):
        if key == 2:
            raise LookupError("no second one")
        return key


class Own(dict):
    def __init__(self, items):
        super().__init__(items)


class Added(Elements):
    def __radd__(self, other):
        return [other, self]

    __rmul__ = __radd__


def in_place(container, value):
    container += value
    return container


def repeated(container, value):
    container *= value
    return container


def united(container, value):
    container |= value
    return container


def sliced(container, value):
    container[1:] = value
    return container


def updated(made, *args, **kwargs):
    made.update(*args, **kwargs)
    return made


def failing(made):
    try:
        made.update(Fails())
    except LookupError as error:
        return made, str(error)


OF_ITERABLES = [
    lambda made: in_place([5], made),
    lambda made: operator.iadd([5], made),
    lambda made: in_place(collections.deque([5], 2), made),
    lambda made: sliced([5, 6, 7], made),
    lambda made: collections.deque(made, 2),
    lambda made: updated({9}, made),
    lambda made: [*itertools.compress(made, [1, 0, 1])],
    lambda made: [[*each] for each in itertools.tee(made)],
    lambda made: [*itertools.pairwise(made)],
    lambda made: [*itertools.islice(itertools.cycle(made), 7)],
    lambda made: [*itertools.combinations(made, 2), *itertools.permutations(made, 2)],
    lambda made: [*itertools.combinations_with_replacement(made, 2)],
    lambda made: [*itertools.chain.from_iterable([made, [4], made])],
    lambda made: dict(itertools.pairwise(made)),
]

OF_MAPPINGS = [
    dict,
    collections.OrderedDict,
    lambda made: collections.defaultdict(int, made),
    lambda made: updated({3: 4}, made, c=5),
    lambda made: dict.update({}, made),
    lambda made: updated(collections.OrderedDict(), made),
    lambda made: united({3: 4}, made),
    lambda made: united(collections.OrderedDict(), made),
    lambda made: Own(made),
    lambda made: operator.itemgetter("a", "b")(made) if type(made) is Named else operator.itemgetter(3)(made),
]


def without_native_frames(program, *args):
    """Return what an interpreted program returns, in which C code runs no Python function by itself."""
    entered = []

    class Watch(Callbacks):
        def native_frame(self, frame, call):
            entered.append(frame.f_code.co_name)

    result = interpret(program, callbacks=Watch())(*args)
    assert not entered
    return result


@pytest.mark.parametrize("program", OF_ITERABLES)
@pytest.mark.parametrize("kind", [lambda: Elements(0, 1, 2), Places])
def test_elements_are_found_by_interpreted_methods(program, kind):
    result = without_native_frames(lambda: program(kind()))
    assert result == program(kind()) and type(result) is type(program(kind()))


@pytest.mark.parametrize("program", OF_MAPPINGS)
@pytest.mark.parametrize("kind", [Table, Named])
def test_items_are_found_by_interpreted_methods(program, kind):
    result = without_native_frames(lambda: program(kind()))
    assert result == program(kind())


def test_what_was_copied_before_a_mapping_fails_stays():
    assert without_native_frames(lambda: failing({})) == failing({}) == ({1: 1}, "no second one")


@pytest.mark.parametrize("container", [[5], collections.deque([5])])
@pytest.mark.parametrize("grown", [in_place, repeated])
def test_operands_that_say_what_an_operator_does_get_it_as_it_is(container, grown):
    made = Added(0)
    assert interpret(grown)(container, made) == grown(container, made) == [container, made]
