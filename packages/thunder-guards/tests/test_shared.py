"""What generated functions read is one for all that read the same, and nothing keeps it when they are gone."""

import gc

import torch

from thunder_guards._codegen.held_facts import HeldFacts, shared_check
from thunder_guards._codegen.shared import (
    _FUNCTIONS,
    _ROWS,
    _SETS,
    shared_condition,
    shared_function,
    shared_names,
    shared_row,
)
from thunder_guards._guards.environment import EnvironmentGuard
from thunder_ir import Context


def test_rows_of_the_same_objects_are_one():
    table = {"a": 1}
    row = shared_row([table, "a"])
    assert shared_row([table, "".join(["a"])]) is row and row == [table, "a"]
    assert shared_row([dict(table), "a"]) is not row
    assert shared_row([1, "a"]) is not shared_row([True, "a"])


def test_rows_of_the_attributes_of_one_class_are_one():
    class Other:
        pass

    row = shared_row([vars(Other), 1])
    assert vars(Other) is not row[0] and shared_row([vars(Other), 1]) is row
    assert shared_row([vars(int), 1]) is not row


def test_native_code_reads_where_objects_are():
    objects = [{}, "a", 300]
    assert list(shared_row(objects).addresses) == [*map(id, objects)]


def test_conditions_that_ask_the_same_are_one_function():
    table = {"a": 1}

    def asked(value):
        return lambda context: [f"{context.object(table, 'table')}['a'] is {context.object(value, 'value')}", "True"]

    function, text = shared_condition(asked(table["a"]))
    assert text == "lambda: _table['a'] is _value and True" and function()
    assert shared_condition(asked(1))[0] is function and shared_condition(asked(2))[0] is not function
    table["a"] = 2
    assert not function()


def test_facts_of_the_same_rows_have_one_check():
    def facts(value):
        return HeldFacts(0, (), *[shared_row([])] * 2, found, *[shared_row([])] * 4, *[shared_row([value])] * 11)

    found, value = [], object()
    check = shared_check(facts(value))
    assert shared_check(facts(value)) is check and shared_check(facts(object())) is not check


def test_names_that_are_equal_are_one_set():
    assert shared_names(["a", "b"]) is not shared_names(["a"])
    held = shared_names(["a", "b"])
    assert shared_names(["".join(["a"]), "b"]) is held


def test_nothing_keeps_what_is_not_read_any_more():
    table = {}
    row, names = shared_row([table, "kept"]), shared_names(["kept", "too"])
    condition = shared_condition(lambda context: [f"{context.object(table, 'table')} is None"])
    gc.collect()  # what other tests have left
    before = len(_ROWS), len(_SETS), len(_FUNCTIONS)
    del row, names, condition
    gc.collect()
    assert (len(_ROWS), len(_SETS), len(_FUNCTIONS)) == tuple([count - 1 for count in before])


def test_checks_of_the_state_of_pytorch_are_one_only_where_it_is_the_same_in_all_that_they_ask():
    threads = torch.get_num_threads()
    one, same = EnvironmentGuard(), EnvironmentGuard()
    assert one.checker(False) is same.checker(False) and one.checker(False)()
    torch.set_num_threads(threads + 1)  # which no field of the environment tells
    try:
        other = EnvironmentGuard()
        assert other.environment == one.environment and other.checker(False) is not one.checker(False)
        assert other.checker(False)() and not one.checker(False)()
    finally:
        torch.set_num_threads(threads)
    with torch.no_grad():
        assert EnvironmentGuard().checker(False) is not one.checker(False) and not one.checker(False)()


def test_functions_of_one_text_about_other_objects_are_others():
    contexts = [Context() for _ in range(3)]
    tables = {"a": 1}, {"a": 2}
    texts = [f"lambda: {c.object(tables[i // 2], 'table')}['a']" for i, c in enumerate(contexts)]
    first, again, other = map(shared_function, texts, contexts)
    assert first is again is not other and (first(), other()) == (1, 2)
