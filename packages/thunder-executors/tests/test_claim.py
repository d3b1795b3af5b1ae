"""Who runs what: whole calls first, then what they decompose into."""

import numpy as np
import pytest
from numpy_executor import executor as numpy_executor

import thunder_prims as prims
from thunder_executors import (
    Declined,
    ExecutorError,
    FusionExecutor,
    OperatorExecutor,
    UnclaimedError,
    claim,
    to_callable,
    transform_for_execution,
)
from thunder_executors.claim import Refusal
from thunder_ir import DuplicateRuleError, OpTags, Symbol, Tensor, trace_of
from thunder_ir.passes import verifying

square = Symbol("square", "mine", decomposition=lambda a: prims.mul(a, a))
both = Symbol("both", "mine", decomposition=lambda a: (square(a), a, square(prims.exp(a))))


@pytest.fixture(autouse=True)
def verified():
    with verifying():
        yield


def names(trace):
    return [f"{b.symbol.executor.name}.{b.symbol.name}" for b in trace.bound_symbols if b.symbol.executor]


def test_a_whole_composite_goes_to_who_takes_it():
    mine = OperatorExecutor("mine")
    mine.implements(square)(np.square)
    trace = trace_of(lambda x: square(x), Tensor((2,)))

    assert names(claim(trace, [mine, numpy_executor])) == ["mine.square"]
    assert names(claim(trace, [numpy_executor])) == ["numpy.multiply"]


def test_the_whole_goes_before_its_parts_even_to_a_later_executor():
    parts = OperatorExecutor("parts")
    parts.implements(prims.mul)(np.multiply)
    whole = OperatorExecutor("whole")
    whole.implements(square)(np.square)

    assert names(claim(trace_of(lambda x: square(x), Tensor((2,))), [parts, whole])) == ["whole.square"]


def test_the_first_in_the_list_goes_first():
    first, second = OperatorExecutor("first"), OperatorExecutor("second")
    for executor in (first, second):
        executor.implements(prims.exp)(np.exp)
    trace = trace_of(lambda x: prims.exp(x), Tensor((2,)))

    assert names(claim(trace, [first, second])) == ["first.exp"]
    assert names(claim(trace, [second, first])) == ["second.exp"]


def test_nested_decompositions_keep_the_names_of_their_outputs():
    run = to_callable(trace_of(lambda x: both(x), Tensor((3,), "float64")), [numpy_executor])
    x = np.array([1.0, 2.0, 3.0])

    for got, wanted in zip(run(x), (x * x, x, np.exp(x) ** 2), strict=True):
        np.testing.assert_allclose(got, wanted)


def test_one_value_may_stand_for_two_outputs():
    ex = OperatorExecutor("ex")
    ex.transforms(prims.frexp)(lambda a: (prims.exp(a),) * 2)

    def program(x):
        a, b = prims.frexp(x)
        return prims.neg(a), b

    run = to_callable(trace_of(program, Tensor((2,), "float64")), [ex, numpy_executor])
    for got, wanted in zip(run(np.ones(2)), (-np.e, np.e), strict=True):
        np.testing.assert_allclose(got, wanted)


def test_a_checker_decides_and_its_reason_is_kept():
    picky = OperatorExecutor("picky")
    picky.implements(prims.exp, when=lambda bound: bound.args[0].ndim == 1 or Declined("only vectors"))(np.exp)
    refusals = []
    trace = trace_of(lambda x, m: (prims.exp(x), prims.exp(m)), Tensor((2,)), Tensor((2, 2)))
    claimed = claim(trace, [picky, numpy_executor], refusals)

    assert names(claimed) == ["picky.exp", "numpy.exp"]
    assert refusals == [Refusal("prims.exp", "picky", "only vectors")]


def test_several_implementations_of_one_symbol_are_tried_in_order():
    ex = OperatorExecutor("ex")
    ex.implements(prims.exp, when=lambda bound: bound.args[0].ndim == 0)(np.exp2)
    ex.implements(prims.exp)(np.exp)

    assert names(claim(trace_of(lambda x: prims.exp(x), Tensor(())), [ex])) == ["ex.exp2"]
    assert names(claim(trace_of(lambda x: prims.exp(x), Tensor((1,))), [ex])) == ["ex.exp"]
    with pytest.raises(DuplicateRuleError, match="executor ex runs every call of prims.exp already"):
        ex.implements(prims.exp)(np.exp)


def test_an_execution_transform_may_use_the_symbol_that_it_runs():
    ex = OperatorExecutor("ex")
    ex.transforms(prims.exp)(lambda a: prims.exp(prims.neg(a)))
    run = to_callable(trace_of(lambda x: prims.exp(x), Tensor((2,), "float64")), [ex, numpy_executor])

    np.testing.assert_allclose(run(np.ones(2)), np.exp(-1.0))


def test_a_registration_by_id_and_one_that_replaces_another():
    ex = OperatorExecutor("ex")
    ex.register_implementation("prims.exp", ex.operator(np.exp))
    ex.register_implementation("prims.exp", ex.operator(np.exp2))

    assert names(claim(trace_of(lambda x: prims.exp(x), Tensor((2,))), [ex])) == ["ex.exp2"]


def test_nobody_runs_it_says_who_was_asked_and_why():
    picky = OperatorExecutor("picky")
    picky.implements(prims.erfcx, when=lambda bound: Declined("out of order"))(np.exp)
    trace = trace_of(lambda x: prims.erfcx(x), Tensor((2,)))

    with pytest.raises(
        UnclaimedError,
        match=r"no executor runs prims.erfcx\(float32\[2\]\):\n  picky: out of order\n  numpy: it has no impl",
    ):
        claim(trace, [picky, numpy_executor])


@pytest.mark.parametrize(
    ("register", "message"),
    [
        (
            lambda ex: ex.implements(prims.exp, when=lambda bound: bound.nothing)(np.exp),
            r"executor bad, operation prims.exp: its checker raised AttributeError: .*nothing",
        ),
        (
            lambda ex: ex.transforms(prims.exp)(lambda a: a.nothing()),
            r"executor bad, operation prims.exp: its execution transform raised AttributeError",
        ),
        (
            lambda ex: ex.transforms(prims.frexp)(lambda a: a),
            r"operation prims.frexp: what stands for it returns float32\[2\], expected 2 values",
        ),
    ],
    ids=["checker", "transform", "structure"],
)
def test_a_failing_checker_or_transform_is_named(register, message):
    bad = OperatorExecutor("bad")
    register(bad)
    symbol = prims.frexp if "frexp" in message else prims.exp

    with pytest.raises(ExecutorError, match=message):
        claim(trace_of(lambda x: symbol(x), Tensor((2,))), [bad])


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a: a.astype("float64"), r"executor bad, operation .*: expected float32\[2\], got float64\[2\]"),
        (lambda a: a[:1], r"expected float32\[2\], got float32\[1\]"),
        (lambda a: (a, a), r"expected float32\[2\], got a builtins.tuple"),
        (lambda a: 1 / 0, r"it raised ZeroDivisionError: division by zero"),
    ],
    ids=["dtype", "shape", "structure", "raises"],
)
def test_an_implementation_that_breaks_its_promise_is_named(function, message):
    bad = OperatorExecutor("bad")
    bad.implements(prims.exp)(function)
    run = to_callable(trace_of(lambda x: prims.exp(x), Tensor((2,))), [bad])

    with pytest.raises(ExecutorError, match=message):
        run(np.ones(2, np.float32))


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        (lambda a: 1 / 0, "executor bad, operation op: its meta function raised ZeroDivisionError"),
        (lambda a: np.ones(2), r"must return proxies, .* and returned a numpy.ndarray"),
    ],
    ids=["raises", "structure"],
)
def test_a_meta_function_that_fails_is_named(meta, message):
    op = OperatorExecutor("bad").register_operator("op", meta=meta, fn=np.exp)

    with pytest.raises(ExecutorError, match=message):
        trace_of(lambda x: op(x), Tensor((2,)))


def test_equal_calls_run_once_and_dead_ones_never():
    def program(x):
        prims.sin(x)
        return prims.add(prims.exp(x), prims.exp(x))

    assert names(transform_for_execution(trace_of(program, Tensor((2,))), [numpy_executor])) == [
        "numpy.exp",
        "numpy.add",
    ]


def test_what_must_not_be_fused_is_not():
    class Fuser(FusionExecutor):
        pass

    fuser = Fuser("fuser")
    fuser.register_supported(prims.exp)
    quiet = Symbol("quiet", "mine", decomposition=lambda a: prims.exp(a), tags=frozenset({OpTags.DONT_FUSE}))
    fuser.register_supported(quiet)
    claimed = claim(trace_of(lambda x: quiet(x), Tensor((2,))), [fuser, numpy_executor])

    assert [b.symbol.id for b in claimed.bound_symbols] == ["prims.exp"]
