"""Programs that depend on which object an argument is: one that they read elsewhere, or another one."""

import gc
import operator
import weakref

import pytest
import torch

from thunder_frontend import cache_misses, jit


class Thing:
    """An object that is equal to itself alone."""

    def __init__(self, part=None):
        self.part = part


class Bare:
    """The same, without weak references."""

    __slots__ = ("part",)

    def __init__(self, part=None):
        self.part = part


class Holder:
    """Keeps objects in an attribute of the class."""


def index_of(items, value):
    """Return where an object is in a list; -1 if it is not there."""
    return items.index(value) if value in items else -1


def raised(table, key):
    """Return whether a dict lacks a key."""
    try:
        table[key]
    except KeyError:
        return True
    return False


PROGRAMS = {
    "is": lambda o, g: o is g.one,
    "is not": lambda o, g: o is not g.one,
    "operator.is_": lambda o, g: operator.is_(g.one, o),
    "equal": lambda o, g: o == g.one,
    "unequal, from the right": lambda o, g: g.one != o,
    "key of a dict": lambda o, g: o in g.table,
    "get": lambda o, g: g.table.get(o, 7),
    "item": lambda o, g: raised(g.table, o),
    "among the keys": lambda o, g: o in g.table.keys(),  # noqa: SIM118
    "key of its own dict": lambda o, g: g.one in {o: 1},
    "part of a key": lambda o, g: (o, 1) in g.pairs,
    "part of a key of its own": lambda o, g: (g.one, 1) in {(o, 1): 2},
    "in a set": lambda o, g: o in g.members,
    "sets": lambda o, g: (len({o} & g.members), {o} <= g.members, frozenset([o]) == frozenset([g.one])),
    "in a list": lambda o, g: o in g.items,
    "place in a list": lambda o, g: index_of(g.items, o),
    "count in a list": lambda o, g: g.items.count(o),
    "item of a list": lambda o, g: any(o is item for item in g.items),
    "containers": lambda o, g: ([o] == [g.one], (o, 1) == (g.one, 1), {1: o} == {1: g.one}),
    "part of an argument": lambda o, g: o.part is g.one,
    "list": lambda o, g: g.items is o,
    "dict": lambda o, g: g.table is o,
}


def outside(kind):
    """Return a class that holds an object of a kind in several places."""
    one = kind()
    held = {"one": one, "table": {one: 5}, "pairs": {(one, 1): 5}, "members": {one}, "items": [one]}
    return type("Holder", (Holder,), held)


def others_and(name, kind, holder):
    """Return a function that makes an argument: the object that a program looks for, or another one."""
    if name == "part of an argument":
        return lambda same: kind(holder.one if same else kind())
    if name in ("list", "dict"):
        theirs = holder.items if name == "list" else holder.table
        return lambda same: theirs if same else type(theirs)(theirs)
    return lambda same: holder.one if same else kind()


@pytest.mark.parametrize("order", ["ogog", "gogo", "oogg"])
@pytest.mark.parametrize("kind", [Thing, Bare])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_for_the_object_that_is_read_elsewhere_or_for_others(name, kind, order):
    program, holder = PROGRAMS[name], outside(kind)
    made = others_and(name, kind, holder)
    compiled = jit(lambda x, o: (x * 2, program(o, holder)))
    for letter in order:
        given = made(letter == "g")
        assert compiled(torch.ones(2), given)[1] == program(given, holder)


@pytest.mark.parametrize("kind", [Thing, Bare])
@pytest.mark.parametrize("ask", [hash, id, lambda o: hash((o, 1))], ids=["hash", "id", "hash of a tuple"])
def test_numbers_that_tell_objects_apart_are_those_of_the_call(ask, kind):
    compiled = jit(lambda x, o: (x * 2, ask(o)))
    things = [kind(), kind()]
    for thing in (*things, *things):
        assert compiled(torch.ones(2), thing)[1] == ask(thing)


def test_one_program_serves_all_objects_that_are_read_nowhere_else():
    one = Thing()
    compiled = jit(lambda x, o: x * 2 if o is one else x * 3)
    for _ in range(4):
        assert compiled(torch.ones(()), Thing()) == 3
    assert cache_misses(compiled) == 1
    assert compiled(torch.ones(()), one) == 2
    assert compiled(torch.ones(()), Thing()) == 3
    assert cache_misses(compiled) == 2


def test_a_list_that_is_given_and_read_elsewhere_is_written_once():
    items = []

    def appends(x, given):
        items.append(1)
        given.append(2)
        return x * len(items)

    compiled = jit(appends)
    assert compiled(torch.ones(()), []) == 1 and items == [1]
    assert compiled(torch.ones(()), items) == 3 and items == [1, 1, 2]
    assert compiled(torch.ones(()), []) == 4 and items == [1, 1, 2, 1]


def test_an_argument_of_which_the_hash_is_asked_is_not_kept_alive():
    compiled = jit(lambda x, o: x * (hash(o) % 7))
    thing = Thing()
    compiled(torch.ones(()), thing)
    reference = weakref.ref(thing)
    del thing
    gc.collect()
    assert reference() is None
