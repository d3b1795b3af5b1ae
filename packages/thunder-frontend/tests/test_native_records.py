"""What is known of callables in C is said once for each, and of those that are not listed nothing is assumed."""

import functools
import os
import random
import time

import pytest

from thunder_frontend._external_state.native import UNLISTED, Answer, Native, file, native_of
from thunder_frontend._external_state.queries import answer_of
from thunder_ir import DuplicateRuleError


@pytest.mark.parametrize(
    ("fn", "owner", "args", "answer"),
    [
        (os.getcwd, None, (), Answer.ASKED_AGAIN),
        (os.fspath, None, ("a",), Answer.PURE),
        (
            os.system,
            None,
            ("true",),
            Answer.REFUSED,
        ),  # of what asks the system and is not listed nobody knows what it does
        (os.urandom, None, (4,), Answer.VARIES),
        (time.localtime, None, (), Answer.VARIES),
        (time.localtime, None, (0,), Answer.ASKED_AGAIN),
        (random.random, random._inst, (), Answer.VARIES),
        (functools.lru_cache(len).cache_info, functools.lru_cache(len), (), Answer.REFUSED),
        (len, None, ([],), Answer.UNKNOWN),
    ],
)
def test_a_call_has_one_answer(fn, owner, args, answer):
    assert answer_of(fn, owner, args) is answer


def test_of_what_cannot_be_looked_up_nothing_is_known():
    class Odd:
        __hash__ = None

        def __call__(self):
            return 1

    assert native_of(Odd()) is UNLISTED
    assert answer_of(Odd(), None, ()) is Answer.UNKNOWN


def test_nothing_is_said_twice():
    with pytest.raises(DuplicateRuleError, match="something is said already"):
        file(Native(Answer.PURE), os.urandom)
