"""Kinds of places: read, put back, and written by generated code."""

from contextvars import ContextVar
from types import SimpleNamespace

import pytest

from thunder_guards.places import MISSING, STEPS, WRITTEN
from thunder_guards.sources import Source, held
from thunder_ir import Context


def cell_of(value):
    return (lambda: value).__closure__[0]


CASES = [
    ("attribute", SimpleNamespace(kept=1), "kept", 1, 2),
    ("item", {"a": 1}, "a", 1, 2),
    ("item", [1, 2], 0, 1, 3),
    ("cell", cell_of(1), None, 1, 2),
    ("context", ContextVar("variable"), None, MISSING, 2),
]


def ids(case):
    return f"{case[0]} of {type(case[1]).__name__}"


def assign(kind, owner, key, value):
    context = Context()
    exec(WRITTEN[kind].assignment("owner", key, "value", context), context.globals | {"owner": owner, "value": value})


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_generated_code_writes_what_is_then_there(case):
    kind, owner, key, before, after = case
    assert WRITTEN[kind].now(owner, key) == before
    assign(kind, owner, key, after)
    assert WRITTEN[kind].now(owner, key) == after
    WRITTEN[kind].restore(owner, key, before)
    assert WRITTEN[kind].now(owner, key) == (after if kind == "context" else before)


@pytest.mark.parametrize("case", CASES[:4], ids=ids)
def test_a_source_reads_a_place_as_generated_code_does(case):
    kind, owner, key, before, _ = case
    source, context = Source(held(owner, "owner"), kind, key), Context()
    assert source.evaluate({}) == eval(source.expression(context), context.globals) == before


@pytest.mark.parametrize(
    ("kind", "owner", "change", "left"),
    [
        ("end", [1], lambda owner: owner.append(2), [2]),
        ("container", {"a": 1}, lambda owner: owner.update(b=2), {"a": 1, "b": 2}),
        ("container", {1}, lambda owner: owner.add(2), [1, 2]),
        ("buffer", bytearray(b"ab"), lambda owner: owner.reverse(), bytearray(b"ba")),
    ],
    ids=["end of a list", "dict", "set", "buffer"],
)
def test_what_an_object_holds_is_put_back_and_written_again(kind, owner, change, left):
    before = len(owner) if kind == "end" else owner.copy()
    whole = owner.copy()
    change(owner)
    contents, after = WRITTEN[kind].contents(owner, before), owner.copy()
    assert contents == left
    WRITTEN[kind].restore(owner, None, before)
    assert owner == whole
    assign(kind, owner, None, contents)
    assert owner == after


@pytest.mark.parametrize("case", CASES[:2] + CASES[3:4], ids=ids)
def test_what_is_deleted_is_missing_until_it_is_put_back(case):
    kind, owner, key, before, _ = case
    WRITTEN[kind].remove(owner, key)
    assert WRITTEN[kind].now(owner, key) is MISSING
    WRITTEN[kind].restore(owner, key, before)
    assert STEPS[kind].read(owner, key) == before
