"""What generated functions read is one for all that read the same, and nothing keeps it when they are gone."""

import gc

from thunder_guards._codegen.shared import _ROWS, _SETS, shared_names, shared_row


def test_rows_of_the_same_objects_are_one():
    table = {"a": 1}
    row = shared_row([table, "a"])
    assert shared_row([table, "".join(["a"])]) is row and row == [table, "a"]
    assert shared_row([dict(table), "a"]) is not row
    assert shared_row([1, "a"]) is not shared_row([True, "a"])


def test_names_that_are_equal_are_one_set():
    assert shared_names(["a", "b"]) is not shared_names(["a"])
    held = shared_names(["a", "b"])
    assert shared_names(["".join(["a"]), "b"]) is held


def test_nothing_keeps_what_is_not_read_any_more():
    table = {}
    row, names = shared_row([table, "kept"]), shared_names(["kept", "too"])
    gc.collect()  # what other tests have left
    before = len(_ROWS), len(_SETS)
    del row, names
    gc.collect()
    assert (len(_ROWS), len(_SETS)) == (before[0] - 1, before[1] - 1)
