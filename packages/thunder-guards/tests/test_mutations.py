"""What is kept of the writes of a program while it is acquired."""

from thunder_guards.mutations import MISSING, MutationLog


class Counted:
    """A key that counts how often it is hashed."""

    def __init__(self):
        self.hashed = 0

    def __hash__(self):
        self.hashed += 1
        return id(self)


class Slotted:
    __slots__ = ("__dict__", "kept")


def written(mutations, container, *keys):
    for key in keys:
        mutations.note("item", container, key, container.get(key, MISSING))
        container[key] = None
    return container


def test_the_keys_that_a_program_added_are_told_from_those_that_it_found():
    mutations = MutationLog()
    container = written(mutations, {"found": 1, "overwritten": 2}, "overwritten", "added")
    assert [mutations.added(container, key) for key in ("found", "overwritten", "added", "absent")] == [0, 0, 1, 0]
    assert mutations.keys_not_added(container) == ("found", "overwritten")
    assert mutations.keys_not_added({"added": 1}) == ("added",)


def test_attributes_are_keys_of_the_dict_of_an_object_unless_they_are_slots():
    mutations, obj = MutationLog(), Slotted()
    obj.found = 1
    for name in ("added", "kept"):
        mutations.note("attribute", obj, name, MISSING)
        setattr(obj, name, 2)
    vars(obj)["kept"] = 3
    assert mutations.keys_not_added(vars(obj)) == ("found", "kept")


def test_a_write_that_is_taken_back_touches_nothing():
    mutations, container = MutationLog(), {}
    assert not mutations.touches(container)
    mutations.note("item", container, "key", MISSING)
    assert mutations.touches(container) and not mutations.touches({})
    mutations.take_back("item", container, "key")
    assert not mutations.touches(container) and not mutations.writes()


def test_single_writes_become_part_of_a_write_of_the_whole():
    mutations, first, second = MutationLog(), {"kept": 1}, {}
    written(mutations, first, "kept", "added")
    written(mutations, second, "other")
    mutations.note_container(first)
    first.clear()
    assert [(w.kind, w.target) for w in mutations.writes()] == [("item", second), ("container", first)]
    mutations.undo()
    assert (first, second) == ({"kept": 1}, {})


def test_asking_what_was_added_takes_as_long_however_much_was():
    def hashes(count):
        mutations, keys = MutationLog(), [Counted() for _ in range(count)]
        container = written(mutations, {}, *keys)
        before = sum(key.hashed for key in keys)
        assert all([mutations.added(container, key) for key in keys])
        return (sum(key.hashed for key in keys) - before) / count

    assert hashes(40) == hashes(10)
