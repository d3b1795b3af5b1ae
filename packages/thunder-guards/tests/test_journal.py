"""What is kept of the writes of a program while it is acquired."""

from thunder_guards.journal import MISSING, Journal


class Counted:
    """A key that counts how often it is hashed."""

    def __init__(self):
        self.hashed = 0

    def __hash__(self):
        self.hashed += 1
        return id(self)


class Slotted:
    __slots__ = ("__dict__", "kept")


def written(journal, container, *keys):
    for key in keys:
        journal.note("item", container, key, container.get(key, MISSING))
        container[key] = None
    return container


def test_the_keys_that_a_program_added_are_told_from_those_that_it_found():
    journal = Journal()
    container = written(journal, {"found": 1, "overwritten": 2}, "overwritten", "added")
    assert [journal.added(container, key) for key in ("found", "overwritten", "added", "absent")] == [0, 0, 1, 0]
    assert journal.keys_not_added(container) == ("found", "overwritten")
    assert journal.keys_not_added({"added": 1}) == ("added",)


def test_attributes_are_keys_of_the_dict_of_an_object_unless_they_are_slots():
    journal, obj = Journal(), Slotted()
    obj.found = 1
    for name in ("added", "kept"):
        journal.note("attribute", obj, name, MISSING)
        setattr(obj, name, 2)
    vars(obj)["kept"] = 3
    assert journal.keys_not_added(vars(obj)) == ("found", "kept")


def test_a_write_that_is_taken_back_touches_nothing():
    journal, container = Journal(), {}
    assert not journal.touches(container)
    journal.note("item", container, "key", MISSING)
    assert journal.touches(container) and not journal.touches({})
    journal.take_back("item", container, "key")
    assert not journal.touches(container) and not journal.writes()


def test_single_writes_become_part_of_a_write_of_the_whole():
    journal, first, second = Journal(), {"kept": 1}, {}
    written(journal, first, "kept", "added")
    written(journal, second, "other")
    journal.note_container(first)
    first.clear()
    assert [(w.kind, w.target) for w in journal.writes()] == [("item", second), ("container", first)]
    journal.undo()
    assert (first, second) == ({"kept": 1}, {})


def test_asking_what_was_added_takes_as_long_however_much_was():
    def hashes(count):
        journal, keys = Journal(), [Counted() for _ in range(count)]
        container = written(journal, {}, *keys)
        before = sum(key.hashed for key in keys)
        assert all([journal.added(container, key) for key in keys])
        return (sum(key.hashed for key in keys) - before) / count

    assert hashes(40) == hashes(10)
