"""Laws of the passes, on random programs: they keep the meaning, are idempotent, and keep the verifier content."""

import operator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thunder_lang as lang
import thunder_prims as prims
from thunder_ir import (
    Builder,
    NumberProxy,
    Symbol,
    Tensor,
    TensorProxy,
    devices,
    dtypes,
    load_trace,
    number_proxy,
    record,
    recording,
    save_trace,
    trace_of,
    value_of,
    verify,
)
from thunder_ir.passes import (
    KEEP,
    common_subexpressions,
    dead_code_elimination,
    equal_integers,
    evaluate,
    expand,
    rewrite,
    topological_order,
)
from thunder_testing import run_reference

SHAPE = (2, 3)


def _scaled(a, b):
    return lang.mul(lang.tanh(a), lang.add(b, 0.5))


def _both(a, b):
    return scaled(a, b), lang.sub(b, a)


scaled = Symbol("scaled", "laws", decomposition=_scaled, language=lang.core)
both = Symbol("both", "laws", decomposition=_both, language=lang.core)

OPERATIONS = [
    lambda a, b: lang.add(a, b), lambda a, b: lang.mul(a, b), lambda a, b: lang.sub(a, 1.5), lambda a, b: lang.tanh(a),
    lambda a, b: lang.exp(lang.neg(lang.abs(a))), lambda a, b: lang.where(lang.gt(a, b), a, b),
    lambda a, b: lang.transpose(lang.transpose(a, 0, 1), 0, 1), lambda a, b: lang.flip(a, 1),
    lambda a, b: lang.add(a, lang.sum(b, 1, True)), lambda a, b: lang.cat((a, b), 0)[1:3],
    lambda a, b: a[:, [0, 2, -1]],
    lambda a, b: lang.add(a, lang.zeros_like(b)), lambda a, b: scaled(a, b), lambda a, b: both(a, b)[0],
    lambda a, b: both(a, b)[1], lambda a, b: lang.softmax(a, 1), lambda a, b: lang.cumsum(a, 0),
]  # fmt: skip


@st.composite
def programs(draw):
    """A program of two inputs: each step takes two values made so far; some values are returned."""
    steps = draw(st.lists(st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 50), st.integers(0, 50)), max_size=12))
    returned = draw(st.lists(st.integers(0, 50), min_size=1, max_size=3))

    def program(x, y):
        made = [x, y]
        for operation, first, second in steps:
            made.append(operation(made[first % len(made)], made[second % len(made)]))
        return {str(place): made[-1 - index % len(made)] for place, index in enumerate(returned)}

    return trace_of(program, Tensor(SHAPE, "float64"), Tensor(SHAPE, "float64"), language=lang.core)


def reorder(trace):
    return trace.replace(bound_symbols=tuple(topological_order(trace.bound_symbols, lambda b: len(b.symbol.name))))


def rebuild(trace):
    return rewrite(trace, lambda b: b.symbol(*b.args, **b.kwargs) if b.symbol is prims.add else KEEP)


def reread(trace):
    return load_trace(save_trace(trace), prims, [scaled, both])


PASSES = [dead_code_elimination, common_subexpressions, expand, reorder, rebuild, reread]
IDEMPOTENT = [dead_code_elimination, common_subexpressions, expand, reorder, reread]
X = np.array([[0.3, -1.2, 0.7], [2.0, 0.0, -0.4]])
Y = np.array([[1.5, 0.2, -0.9], [-0.1, 0.8, 0.6]])


def same(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k], equal_nan=True) for k in a)


@pytest.mark.parametrize("run", PASSES, ids=lambda f: f.__name__)
@given(trace=programs())
@settings(max_examples=30, deadline=None)
def test_a_pass_keeps_the_meaning_and_the_laws(run, trace):
    after = verify(run(verify(trace)))
    assert same(run_reference(after, X, Y), run_reference(trace, X, Y))


@pytest.mark.parametrize("run", IDEMPOTENT, ids=lambda f: f.__name__)
@given(trace=programs())
@settings(max_examples=30, deadline=None)
def test_a_pass_twice_is_the_pass_once(run, trace):
    once = run(trace)
    assert str(run(once)) == str(once)


@given(trace=programs())
@settings(max_examples=30, deadline=None)
def test_all_passes_in_a_row_keep_the_meaning(trace):
    after = trace
    for run in PASSES:
        after = verify(run(after))
    assert same(run_reference(after, X, Y), run_reference(trace, X, Y))


@given(trace=programs())
@settings(max_examples=30, deadline=None)
def test_dead_code_leaves_only_what_is_read(trace):
    after = dead_code_elimination(trace)
    read = {p.name for b in after.bound_symbols for p in b.inputs} | {p.name for p in after.outputs}
    assert all(read & {p.name for p in b.outputs} for b in after.bound_symbols)


@given(trace=programs())
@settings(max_examples=30, deadline=None)
def test_the_printed_program_records_itself(trace):
    again = record(trace.python_callable(), trace.inputs, language=lang.core)
    assert [b.symbol for b in again.bound_symbols] == [b.symbol for b in trace.bound_symbols]
    assert same(run_reference(again, X, Y), run_reference(trace, X, Y))


@given(trace=programs())
@settings(max_examples=20, deadline=None)
def test_inlining_a_program_keeps_the_meaning(trace):
    again = trace_of(
        lambda x, y: evaluate(trace, [x, y]), Tensor(SHAPE, "float64"), Tensor(SHAPE, "float64"), language=lang.core
    )
    assert same(run_reference(again, X, Y), run_reference(trace, X, Y))


OPERATORS = st.sampled_from(["add", "sub", "mul", "floordiv", "mod"])
STEPS = st.lists(st.tuples(OPERATORS, st.integers(0, 9), st.integers(0, 9)), max_size=12)


def _numbers(trace, *values):
    """Return what the symbolic integers of a program are, by name."""
    known = dict(zip([p.name for p in trace.inputs], values, strict=True))
    for bound in trace.bound_symbols:
        if bound.symbol.name.startswith("number_"):
            operands = [known[a.name] if isinstance(a, NumberProxy) else a for a in bound.args]
            known[bound.outputs[0].name] = getattr(operator, bound.symbol.name.removeprefix("number_"))(*operands)
    return known


def _of(value, known):
    """Return a number, or the size of a tensor, as far as it is one that changes by those that are known."""
    size = value.shape[0] if isinstance(value, TensorProxy) else value
    return known[size.name] if isinstance(size, NumberProxy) else size


@given(STEPS, st.booleans(), st.integers(3, 20), st.integers(3, 20))
def test_integers_that_are_equal_are_computed_once(steps, related, n, m):
    def program(a, b):
        if related:
            assert a * 2 == b + 3
        numbers = [a, b, 2, 3, 7]
        for operation, left, right in steps:
            one, other = numbers[left % len(numbers)], numbers[right % len(numbers)]
            if isinstance(one, int) or (isinstance(other, int) and other == 0):
                continue
            if operation in ("floordiv", "mod") and not isinstance(other, int):
                continue
            numbers.append(getattr(operator, operation)(one, other))
        sizes = [number for number in numbers if value_of(number) >= 0]
        return [prims.full((size,), 0, dtypes.float32, devices.cpu) for size in sizes], numbers[-1]

    trace = trace_of(program, number_proxy(6, "a"), number_proxy(9, "b"))
    with recording(Builder(trace.names())) as builder:
        merged = equal_integers(trace)
    assert not builder.constraints
    m = 2 * n - 3 if related else m
    before, after = _numbers(trace, n, m), _numbers(merged, n, m)
    for old, new in zip(trace.outputs, merged.outputs, strict=True):
        assert _of(old, before) == _of(new, after)
    assert [(c.relation, c.holds) for c in merged.constraints] == [(c.relation, c.holds) for c in trace.constraints]
    for constraint in merged.constraints:
        left, right = _of(constraint.left, after), _of(constraint.right, after)
        assert getattr(operator, constraint.relation)(left, right) is constraint.holds
    assert equal_integers(merged).bound_symbols == merged.bound_symbols
