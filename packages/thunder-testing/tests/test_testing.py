"""The tools of tests, tested: the reference agrees with itself, and what differs is found."""

import numpy as np
import pytest

import thunder_prims as prims
from thunder_ir import MissingRuleError, Symbol, Tensor, trace_of
from thunder_testing import (
    Sample,
    assert_text,
    check_conformance,
    reference,
    run_reference,
    sampled_symbols,
    samples,
    samples_of,
)


@pytest.mark.parametrize("symbol", sampled_symbols(), ids=lambda s: s.name)
def test_every_sample_runs_by_the_reference(symbol):
    assert check_conformance(symbol, lambda trace: lambda *arrays: run_reference(trace, *arrays)) > 0


def test_what_has_a_sample_has_a_reference():
    assert set(samples) <= set(reference)


def wrong(change):
    return lambda trace: lambda *arrays: change(run_reference(trace, *arrays))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a + a.dtype.type(1), r"prims.tanh\(float32\[4, 5\]\)"),
        (lambda a: a.astype("float16"), "returned float16 for float32"),
        (lambda a: a[..., None], r"returned shape \(4, 5, 1\) for \(4, 5\)"),
        (lambda a: (a, a), "returned 2 results for 1"),
    ],
    ids=["value", "dtype", "shape", "number"],
)
def test_finds_what_differs_from_the_reference(change, message):
    with pytest.raises(AssertionError, match=message):
        check_conformance(prims.tanh, wrong(change))


def test_a_trace_that_prints_otherwise_is_shown_as_a_difference():
    trace = trace_of(lambda x: prims.exp(x), Tensor((2,)))
    with pytest.raises(AssertionError, match="-    t0 = prims.tanh"):
        assert_text(
            trace,
            """
            def program(x: "float32[2]"):
                t0 = prims.tanh(x)  # float32[2]
                return t0
            """,
        )


def test_what_is_missing_is_named_with_what_fills_it():
    unknown = Symbol("unknown", "mine", meta=lambda a: a.like())
    with pytest.raises(MissingRuleError, match="@samples"):
        samples_of(unknown)
    with pytest.raises(MissingRuleError, match="@reference"):
        run_reference(trace_of(lambda x: unknown(x), Tensor((2,))), np.zeros(2))


def test_a_shape_that_the_trace_does_not_promise_is_found():
    liar = Symbol("liar", "mine", meta=lambda a: a.like(shape=(3,)))
    reference(liar)(lambda a: a)
    with pytest.raises(AssertionError, match=r"mine.liar returned shape \(2,\) for float32\[3\]"):
        run_reference(trace_of(lambda x: liar(x), Tensor((2,))), np.zeros(2))


def test_a_sample_says_what_it_is():
    assert str(Sample((np.zeros((2, 3)), (1, np.ones(2))), {"dim": 0})) == "float64[2, 3], (1, float64[2]), dim=0"
