"""Backward programs in stages: what they send, and that they come to what the whole comes to."""

import numpy as np
import pytest
import toy_language as toy
from toy_language import joint_of, run

from thunder_autograd import Stages, split_into_forward_and_backward


def chain(x, w):
    first = toy.sin(toy.matmul(x, w))
    second = first * toy.cos(first) + x
    third = second * first + toy.tanh(x)
    return third, second, first


def split_of(program, *shapes):
    return split_into_forward_and_backward(joint_of(program, *shapes))


def in_stages(split, saved, arrivals, seen, cotangents, change=lambda g: g):
    """Return the gradients, and what was sent to each cotangent that is seen."""
    stages, stage, handed, sent = Stages(split, arrivals, seen), None, (), {}
    given = list(cotangents)
    for index in range(stages.last + 1):
        arriving = [i for i, at in enumerate(arrivals) if at == index]
        missing = [given[i] is None for i in arriving]
        stage = stages.stage(index, missing, stage, [True] * len(split.joint.output[1]))
        made = run(stage.program, *saved, *handed, *[given[i] for i in arriving if given[i] is not None])
        if index == stages.last:
            return made, sent
        found, handed = made
        found = iter(found)
        for i, is_sent in zip([i for i in seen if arrivals[i] == index + 1], stage.sent, strict=True):
            sent[i] = next(found) if is_sent else None
            if is_sent:
                given[i] = change(sent[i] if given[i] is None else sent[i] + given[i])


@pytest.mark.parametrize("given", [(1, 1, 1), (1, 0, 0), (0, 1, 0), (1, 0, 1), (0, 0, 1)])
@pytest.mark.parametrize(
    ("arrivals", "seen"), [((0, 1, 2), (1, 2)), ((0, 1, 1), (1,)), ((0, 0, 1), (2,)), ((0, 0, 0), ())]
)
def test_stages_come_to_what_the_whole_comes_to(given, arrivals, seen):
    random = np.random.default_rng(0)
    x, w = random.normal(size=(3, 3)), random.normal(size=(3, 3))
    split = split_of(chain, (3, 3), (3, 3))
    _, saved = run(split.forward, x, w)
    cotangents = [random.normal(size=(3, 3)) if there else None for there in given]
    zeros = [np.zeros((3, 3)) if c is None else c for c in cotangents]
    expected = run(split.backward, *saved, *zeros)

    made, _ = in_stages(split, saved, arrivals, seen, cotangents)
    np.testing.assert_allclose(made[0], expected[0])
    np.testing.assert_allclose(0 if made[1] is None else made[1], expected[1], atol=1e-12)


def test_what_is_sent_is_the_derivative_by_the_result():
    random = np.random.default_rng(0)
    x, w, d = [random.normal(size=(3, 3)) for _ in range(3)]
    split = split_of(chain, (3, 3), (3, 3))
    (_, second, first), saved = run(split.forward, x, w)

    _, sent = in_stages(split, saved, (0, 1, 2), (1, 2), (d, None, None))
    np.testing.assert_allclose(sent[1], d * first)
    np.testing.assert_allclose(sent[2], d * second + d * first * (np.cos(first) - first * np.sin(first)))


def test_a_later_stage_goes_on_from_what_it_is_given():
    random = np.random.default_rng(0)
    x, w, d = [random.normal(size=(3, 3)) for _ in range(3)]
    split = split_of(lambda x, w: ((y := toy.sin(x * w)) * w, y), (3, 3), (3, 3))
    _, saved = run(split.forward, x, w)

    made, _ = in_stages(split, saved, (0, 1), (1,), (d, None), change=lambda g: g * 10)
    np.testing.assert_allclose(made[0], d * w * 10 * np.cos(x * w) * w)
    np.testing.assert_allclose(made[1], d * w * 10 * np.cos(x * w) * x + d * np.sin(x * w))


def test_what_comes_from_a_result_that_arrives_with_it_is_not_sent():
    random = np.random.default_rng(0)
    x, w, d, e = [random.normal(size=(3, 3)) for _ in range(4)]
    split = split_of(lambda x, w: ((y := toy.sin(x * w)) * w, toy.cos(y), y), (3, 3), (3, 3))
    (_, _, first), saved = run(split.forward, x, w)

    for given in ((d, e, None), (d, None, None), (None, e, None), (d, e, e)):
        made, sent = in_stages(split, saved, (0, 1, 1), (2,), given, change=lambda g: g * 10)
        a, b, c = [0 if g is None else g for g in given]
        np.testing.assert_allclose(0 if sent[2] is None else sent[2], a * w)
        arrived = (a * w + c) * 10 if given[0] is not None else c
        np.testing.assert_allclose(made[0], (arrived - b * np.sin(first)) * np.cos(x * w) * w)
