"""Checks of many tensors are replaced by what tells that they are as they were, as soon as somebody can make it."""

import pytest
import torch

from thunder_guards._codegen import tensor_checks
from thunder_guards._codegen.tensor_checks import OFTEN, ManyTensors
from thunder_guards._guards.tensors import metadata_of

TENSORS = tuple([torch.ones(2, i + 1) for i in range(8)])


@pytest.fixture
def many():
    return ManyTensors(TENSORS, [metadata_of(t) for t in TENSORS], True)


def asked(monkeypatch, made):
    """Let a maker of snapshots return what ``made`` returns; return the list of what it is asked for."""
    asked_for = []

    def maker(tensors, others, checks):
        asked_for.append(checks)
        return made(len(asked_for))

    monkeypatch.setattr(tensor_checks, "_SNAPSHOTS", [maker])
    return asked_for


def test_a_snapshot_is_asked_for_again_where_nobody_could_make_one(many, monkeypatch):
    passed = []
    same = lambda tensors: passed.append(tensors) or True  # noqa: E731
    asked_for = asked(monkeypatch, lambda times: same if times > 2 else None)
    for _ in range(2 + 4 * OFTEN):  # the third time, with PyTorch's compilers loaded and without them
        assert many.check(TENSORS)
    assert len(asked_for) == 3
    before = len(passed)
    for _ in range(9):
        assert many.check(TENSORS)
    assert len(asked_for) == 3 and len(passed) == before + 9


def test_it_is_asked_for_ever_more_seldom(many, monkeypatch):
    asked_for = asked(monkeypatch, lambda times: None)
    for _ in range(1000):
        assert many.check(TENSORS)
    assert 3 < len(asked_for) < 12 and 400 < asked_for[-1] <= 1000


def test_other_tensors_are_checked_anew(many, monkeypatch):
    asked(monkeypatch, lambda times: lambda tensors: all(a is b for a, b in zip(tensors, TENSORS, strict=True)))
    for _ in range(20):
        assert many.check(TENSORS)
    assert many.check(tuple([t.clone() for t in TENSORS]))
    assert not many.check((*TENSORS[:-1], torch.ones(3)))
    assert not many.check((*TENSORS[:-1], TENSORS[0]))
