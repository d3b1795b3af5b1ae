"""Facts that somebody else tells: asked for seldom, and given up where they tell nothing."""

import pytest

from thunder_guards._codegen import held_facts
from thunder_guards._codegen.held_facts import LEAST, MANY, MOST_MISSES, OFTEN, FactsCheck, HeldFacts, are_told

ROWS = [{"a": 1}], ["a"], [1], [{}], ["b"], [], [], [3, 4], [int, int], [], [], [len], [None], [], [], [int], ["real"]
FACTS = HeldFacts(0, (), *ROWS, [int.real])


@pytest.fixture
def asked(monkeypatch):
    """Return what is asked for, and what answers: ``None`` until it is set."""
    calls, answers = [], [None]

    def maker(facts):
        calls.append(facts)
        return answers[-1]

    monkeypatch.setattr(held_facts, "_MAKERS", [(lambda: bool(answers[1:]), maker)])
    return calls, answers


def test_facts_are_counted():
    assert len(FACTS) == 6


def test_it_is_asked_for_ever_more_seldom_where_there_is_nothing(asked):
    check = FactsCheck(FACTS)
    for _ in range(1000):
        assert check.hold() is False and check.found() is True
    assert 3 < len(asked[0]) < 12


def test_few_facts_are_told_where_that_can_be_and_many_in_any_case(asked):
    assert [are_told(n) for n in (0, LEAST - 1, LEAST, MANY - 1, MANY)] == [False] * 4 + [True]
    asked[1].append(lambda: True)
    assert [are_told(n) for n in (0, LEAST - 1, LEAST, MANY)] == [False, False, True, True]


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
