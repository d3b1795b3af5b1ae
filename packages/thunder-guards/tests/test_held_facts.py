"""Facts that somebody else tells: asked for seldom, and given up where they tell nothing."""

import pytest

from thunder_guards._codegen import held_facts
from thunder_guards._codegen.held_facts import MOST_MISSES, OFTEN, FactsCheck, HeldFacts

FACTS = HeldFacts([{"a": 1}], ["a"], [1], [{}], ["b"], [], [], [3, 4], [int, int], [], [], [len], [None])


@pytest.fixture
def asked(monkeypatch):
    """Return what is asked for, and what answers: ``None`` until it is set."""
    calls, answers = [], [None]

    def maker(facts):
        calls.append(facts)
        return answers[-1]

    monkeypatch.setattr(held_facts, "_MAKERS", [maker])
    return calls, answers


def test_facts_are_counted():
    assert len(FACTS) == 5


def test_it_is_asked_for_ever_more_seldom_where_there_is_nothing(asked):
    check = FactsCheck(FACTS)
    for _ in range(1000):
        assert check.hold() is False and check.found() is True
    assert 3 < len(asked[0]) < 12


def test_what_tells_is_asked_from_then_on(asked):
    check = FactsCheck(FACTS)
    asked[1].append(lambda: True)
    for _ in range(OFTEN):
        assert check.hold() is False and check.found()
    assert check.hold() is True and asked[0] == [FACTS]


def test_what_tells_nothing_is_given_up(asked):
    check = FactsCheck(FACTS)
    told = []
    asked[1].append(lambda: bool(told.append(1)))
    for _ in range(100):
        assert check.hold() is False and check.found()
    assert len(told) == MOST_MISSES and len(asked[0]) == 1
