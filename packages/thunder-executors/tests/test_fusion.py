"""Regions: as large as they can be, and never in a circle."""

import copy
import random

import numpy as np
import pytest
from numpy_executor import executor as numpy_executor

import thunder_prims as prims
from thunder_executors import (
    FusionExecutor,
    Implementation,
    Region,
    Registry,
    claim,
    cost_in_regions,
    execution_traces,
    for_all_of,
    grad_rule,
    partition,
    to_callable,
    who_gains,
)
from thunder_ir import BoundSymbol, OpTags, Symbol, Tensor, dtypes, trace_of
from thunder_ir.passes import verifying


class Interpreter(FusionExecutor):
    """Fuses regions by running them with NumPy."""

    def fuse(self, region, name):
        return self.fused(region, name, to_callable(region.trace(name), [numpy_executor]))


class Repeater(Interpreter):
    """Computes again whatever it can fuse, at the price of a number of bytes."""

    price = 1.0

    def again(self, bound):
        return self.price if self.can_fuse(bound) else None


def fuser(*symbols, kind=Interpreter, **options):
    made = kind("fuser", **options)
    for symbol in symbols:
        made.register_supported(symbol)
    return made


@pytest.fixture(autouse=True)
def verified():
    with verifying():
        yield


def regions(program, ex, *examples):
    parts = partition(claim(trace_of(program, *examples), [ex, numpy_executor]), ex)
    return [[b.symbol.name for b in p.bound_symbols] for p in parts if isinstance(p, Region)]


ELEMENTWISE = (prims.add, prims.mul, prims.exp, prims.sin, prims.neg)


def test_producers_and_consumers_are_merged():
    def program(x):
        return prims.neg(prims.sin(prims.exp(x)))

    assert regions(program, fuser(*ELEMENTWISE), Tensor((2,))) == [["exp", "sin", "neg"]]


def test_readers_of_one_value_are_merged_and_strangers_are_not():
    def program(x, y):
        return prims.exp(x), prims.sin(x), prims.exp(y)

    assert regions(program, fuser(*ELEMENTWISE), Tensor((2,)), Tensor((2,))) == [["exp", "sin"], ["exp"]]


def test_a_path_through_another_executor_is_not_closed_to_a_circle():
    def program(x):
        y = prims.exp(x)
        return prims.add(y, prims.tanh(y))

    assert regions(program, fuser(*ELEMENTWISE), Tensor((2,))) == [["exp"], ["add"]]


def test_a_region_reads_and_returns_only_what_crosses_its_border():
    def program(x, y):
        a = prims.exp(x)
        b = prims.add(a, y)
        return prims.tanh(b), prims.neg(b)

    ex = fuser(*ELEMENTWISE)
    parts = partition(claim(trace_of(program, Tensor((2,)), Tensor((2,))), [ex, numpy_executor]), ex)
    (region,) = [p for p in parts if isinstance(p, Region)]

    assert [p.name for p in region.inputs] == ["x", "y"]
    assert [p.name for p in region.outputs] == ["t1", "t3"]


def test_what_a_later_region_alone_reads_is_computed_there():
    def program(x, y):
        again = prims.exp(x)
        return prims.mul(prims.sin(prims.tanh(y)), again)

    assert regions(program, fuser(*ELEMENTWISE), Tensor((2,)), Tensor((2,))) == [["exp", "sin", "mul"]]


def test_what_a_product_alone_reads_is_computed_in_a_later_region_that_reads_the_same():
    def program(x, y):
        again = prims.exp(x)
        return prims.tanh(again), prims.mul(prims.sin(x), prims.tanh(y))

    def in_need(x, y):
        return prims.mul(prims.sin(x), prims.tanh(prims.mul(y, prims.tanh(prims.exp(x)))))

    ex = fuser(*ELEMENTWISE)
    assert regions(program, ex, Tensor((2,)), Tensor((2,))) == [["exp", "sin", "mul"]]
    assert regions(in_need, ex, Tensor((2,)), Tensor((2,))) == [["exp"], ["mul"], ["sin", "mul"]]


@pytest.mark.parametrize("seed", range(40))
def test_calls_of_any_program_stay_behind_what_they_read(seed):
    choose = random.Random(seed)

    def program(x, y):
        values = [x, y]
        for _ in range(choose.randrange(5, 60)):
            make = choose.choice([*ELEMENTWISE, prims.tanh, prims.cos])
            count = 2 if make in (prims.add, prims.mul) else 1
            values.append(make(*[choose.choice(values[-12:]) for _ in range(count)]))
        return tuple(choose.sample(values, min(len(values), 6)))

    ex = fuser(*ELEMENTWISE)
    trace = claim(trace_of(program, Tensor((2,)), Tensor((2,))), [ex, numpy_executor])
    known = {p.name for p in trace.inputs}
    for part in partition(trace, ex):
        assert known >= {p.name for p in part.inputs}
        known |= {p.name for p in part.outputs}
    assert known >= {p.name for p in trace.outputs}


def test_a_value_is_computed_where_it_is_small_rather_than_where_it_is_read():
    def program(x, y):
        small = prims.convert_element_type(prims.exp(x), dtypes.bool8)
        return prims.where(small, prims.sin(prims.tanh(y)), prims.exp(y))

    fusing = fuser(*ELEMENTWISE, prims.convert_element_type, prims.where)
    found = regions(program, fusing, Tensor((2,)), Tensor((2,)))

    assert found == [["exp", "convert_element_type"], ["sin", "exp", "where"]]


def test_an_executor_that_a_program_gains_nothing_by_is_not_asked():
    class Picky(Interpreter):
        def within(self, trace):
            return self if any(p.shape[0] > 2 for b in trace.bound_symbols for p in b.outputs) else None

    ex = Picky("picky")
    for symbol in ELEMENTWISE:
        ex.register_supported(symbol)
    small, large = (
        execution_traces(trace_of(lambda x: prims.sin(prims.exp(x)), Tensor((n,))), [ex, numpy_executor])[-1]
        for n in (2, 3)
    )

    assert [b.symbol.id for b in small.bound_symbols if b.symbol.executor] == ["numpy.exp", "numpy.sin"]
    assert [b.symbol.id for b in large.bound_symbols if b.symbol.executor] == ["picky.picky_0"]


def test_an_executor_may_answer_by_what_is_around_a_call():
    class Sociable(Interpreter):
        alone = True

        def within(self, trace):
            made = copy.copy(self)
            made.alone = len(trace.bound_symbols) < 2
            return made

        def can_fuse(self, bound):
            return not self.alone and super().can_fuse(bound)

    ex = Sociable("sociable", smallest_region=1)
    ex.register_supported(prims.sin)
    one, two = (
        execution_traces(trace_of(f, Tensor((2,))), [ex, numpy_executor])[-1]
        for f in (prims.sin, lambda x: prims.cos(prims.sin(x)))
    )

    assert [b.symbol.id for b in one.bound_symbols if b.symbol.executor] == ["numpy.sin"]
    assert [b.symbol.id for b in two.bound_symbols if b.symbol.executor] == ["sociable.sociable_0", "numpy.cos"]


def test_who_is_asked_about_a_program_is_asked_about_what_becomes_of_it():
    other = fuser(*ELEMENTWISE)

    class Choosy(Interpreter):
        def within(self, trace):
            return other if len(trace.bound_symbols) > 1 else None

    executors = [Choosy("choosy"), numpy_executor]
    one, two = (trace_of(f, Tensor((2,))) for f in (prims.sin, lambda x: prims.cos(prims.sin(x))))

    assert who_gains(one, executors) == [numpy_executor]
    assert for_all_of(one, executors) == executors
    assert who_gains(two, executors) == for_all_of(two, executors) == [other, numpy_executor]


def test_another_of_its_kind_takes_part_where_nobody_is_named():
    careful, registry = fuser(*ELEMENTWISE), Registry("")

    willing = Interpreter("willing", careful=careful)
    registry.register(willing)
    registry.default().append(willing)

    assert registry.resolve(None) == (careful,)
    assert registry.resolve(["willing"]) == (willing,)


def test_small_regions_go_to_the_others():
    def program(x):
        return prims.tanh(prims.exp(x))

    trace = execution_traces(trace_of(program, Tensor((2,))), [fuser(*ELEMENTWISE), numpy_executor])[-1]

    assert [b.symbol.id for b in trace.bound_symbols if b.symbol.executor] == ["numpy.exp", "numpy.tanh"]


def test_a_region_that_the_executor_does_not_want_goes_to_the_others():
    class Unwilling(Interpreter):
        def fuse(self, region, name):
            return None

    ex = Unwilling("unwilling")
    for symbol in ELEMENTWISE:
        ex.register_supported(symbol)
    run = to_callable(trace_of(lambda x: prims.sin(prims.exp(x)), Tensor((2,), "float64")), [ex, numpy_executor])

    np.testing.assert_allclose(run(np.ones(2)), np.sin(np.e))


def test_a_region_that_several_do_not_want_comes_back_to_none_of_them():
    class Unwilling(Interpreter):
        def fuse(self, region, name):
            return None

    unwilling = [Unwilling("first"), Unwilling("second")]
    for ex in unwilling:
        for symbol in ELEMENTWISE:
            ex.register_supported(symbol)
    trace = trace_of(lambda x: prims.sin(prims.exp(x)), Tensor((2,), "float64"))
    calls = execution_traces(trace, [*unwilling, numpy_executor])[-1].bound_symbols

    assert [b.symbol.id for b in calls if b.symbol.executor] == ["numpy.exp", "numpy.sin"]
    np.testing.assert_allclose(to_callable(trace, [*unwilling, numpy_executor])(np.ones(2)), np.sin(np.e))


def test_effects_and_draws_keep_their_order():
    keep = Symbol("keep", "mine", meta=lambda a: None, tags=frozenset({OpTags.DONT_DCE}))
    draw = Symbol("draw", "mine", meta=lambda a: a.like(), tags=frozenset({OpTags.RANDOM}))

    def program(x):
        a = draw(x)
        keep(prims.exp(x))
        b = draw(x)
        return prims.add(a, b)

    trace = trace_of(program, Tensor((2,)))
    ex = fuser(*ELEMENTWISE, draw)
    marked = trace.replace(
        bound_symbols=tuple([b.replace(tags=b.tags | {ex.mark}) if ex.can_fuse(b) else b for b in trace.bound_symbols])
    )
    flat = [
        b.symbol.name for p in partition(marked, ex) for b in ([p] if isinstance(p, BoundSymbol) else p.bound_symbols)
    ]

    assert [name for name in flat if name in ("draw", "keep")] == ["draw", "keep", "draw"]


def read_twice(x):
    a = prims.exp(x)
    return prims.mul(prims.tanh(prims.sin(a)), a)


@pytest.mark.parametrize(("price", "outputs"), [(1.0, 1), (1000.0, 2)], ids=["cheap", "dear"])
def test_a_region_computes_itself_what_costs_less_than_reading_it(price, outputs):
    ex = fuser(*ELEMENTWISE, kind=Repeater)
    ex.price = price
    fused = execution_traces(trace_of(read_twice, Tensor((64,), "float64")), [ex, numpy_executor])[-1]
    first, *_ = [b for b in fused.bound_symbols if b.symbol.executor is ex]

    assert len(first.outputs) == outputs
    x = np.linspace(-1, 1, 64)
    np.testing.assert_allclose(fused.python_callable()(x), np.tanh(np.sin(np.exp(x))) * np.exp(x))


def test_what_a_region_computes_itself_it_computes_from_the_start():
    def program(x):
        a = prims.exp(x)
        b = prims.neg(a)  # stands in the second region, and is computed again in the third
        c = prims.mul(prims.tanh(prims.sin(a)), b)
        return prims.mul(prims.tanh(c), b)

    ex = fuser(*ELEMENTWISE, kind=Repeater)
    trace = execution_traces(trace_of(program, Tensor((64,), "float64")), [ex, numpy_executor])[-1]
    found = [b for b in trace.bound_symbols if b.symbol.executor is ex]

    assert [len(b.outputs) for b in found] == [1, 1, 1]
    assert all(["x" in {p.name for p in b.inputs} for b in found])
    x = np.linspace(-1, 1, 64)
    np.testing.assert_allclose(
        trace.python_callable()(x), -np.exp(x) * np.tanh(-np.tanh(np.sin(np.exp(x))) * np.exp(x))
    )


def test_what_is_in_memory_anyway_is_not_computed_again():
    def program(x):
        a = prims.exp(x)
        return prims.mul(prims.tanh(a), prims.sin(a)), a

    ex = fuser(*ELEMENTWISE, kind=Repeater)

    assert regions(program, ex, Tensor((64,))) == [["exp"], ["sin", "mul"]]
    trace = execution_traces(trace_of(program, Tensor((64,))), [ex, numpy_executor])[-1]
    assert [len(b.inputs) for b in trace.bound_symbols if b.symbol.executor is ex] == [2]


@pytest.mark.parametrize("kind", [Interpreter, Repeater])
@pytest.mark.parametrize("seed", range(20))
def test_any_program_runs_after_partition_as_before(seed, kind):
    choose = random.Random(seed)

    def program(*inputs):
        values = list(inputs)
        for _ in range(40):
            symbol = choose.choice([prims.add, prims.mul, prims.sin, prims.tanh, prims.cos])
            operands = [choose.choice(values[-12:]) for _ in range(2 if symbol in (prims.add, prims.mul) else 1)]
            values.append(symbol(*operands))
        return tuple(values[-3:])

    examples = [Tensor((3,), "float64")] * 3

    def of_three(x, y, z):
        return program(x, y, z)

    trace = trace_of(of_three, *examples)
    x = [np.linspace(-1, 1, 3) + i for i in range(3)]
    ex = fuser(*ELEMENTWISE, kind=kind)
    fused = to_callable(trace, [ex, numpy_executor])(*x)
    plain = to_callable(trace, [numpy_executor])(*x)

    np.testing.assert_allclose(fused, plain)


def opening(rule=None):
    """Return a composite, and an executor that takes no more of it than its first half."""
    twice = Symbol("twice", "mine", decomposition=lambda a: prims.sin(prims.exp(a)))
    ex = fuser(prims.exp)
    made = Implementation(ex, when=lambda b: b.args[0].ndim == 1, transform=lambda a: prims.sin(prims.exp(a)), vjp=rule)
    ex.add_implementation(twice, made)
    return twice, ex


def test_a_call_is_opened_where_some_of_it_can_be_in_a_region():
    twice, ex = opening()
    whole = type(numpy_executor)("whole")
    whole.implements(twice)(lambda a: np.sin(np.exp(a)))

    def names(shape):
        claimed = claim(trace_of(lambda x: twice(x), Tensor(shape)), [ex, whole, numpy_executor])
        return [b.symbol.name for b in claimed.bound_symbols]

    assert names((2,)) == ["exp", "sin"]
    assert len(names((2, 2))) == 1
    assert not ex.can_fuse(trace_of(lambda x: twice(x), Tensor((2,))).bound_symbols[0])


def test_the_derivative_of_a_call_that_is_opened_is_that_of_its_parts():
    def rule(a):
        return a, lambda dy: dy

    twice, ex = opening(rule)
    (bound,) = trace_of(lambda x: twice(x), Tensor((2,))).bound_symbols

    assert grad_rule(bound, [ex, numpy_executor]) is rule


def test_the_first_fusion_executor_that_knows_tells_what_a_call_costs():
    class Costly(Interpreter):
        def again(self, bound):
            return 3.0 if bound.symbol is prims.exp else None

    exp, sin = trace_of(lambda x: prims.sin(prims.exp(x)), Tensor((2,))).bound_symbols
    again = cost_in_regions([fuser(), Costly("costly"), numpy_executor])

    assert (again(exp), again(sin)) == (3.0, None)
