"""Passes, program in and program out."""

import ir_toys as toys
import pytest

from thunder_ir import Constraint, Symbol, Tensor, VerificationError, number_proxy, record, trace_of, verify
from thunder_ir.passes import (
    KEEP,
    common_subexpressions,
    dead_code_elimination,
    dependencies,
    difference,
    evaluate,
    expand,
    producers,
    rewrite,
    topological_order,
    trace_pass,
    verifying,
)
from thunder_testing import assert_text

X = Tensor((2, 3))


def test_drops_what_nobody_reads_and_keeps_what_must_stay():
    def program(x):
        toys.exp(x)
        toys.keep(x)
        toys.write(x)
        return toys.tanh(x)

    assert_text(
        dead_code_elimination(trace_of(program, X)),
        """
        def program(x: "float32[2, 3]"):
            toys.keep(x)
            t1 = toys.write(x)  # float32[2, 3]
            t2 = toys.tanh(x)  # float32[2, 3]
            return t2
        """,
    )


def test_keeps_a_call_of_which_one_output_is_read():
    trace = trace_of(lambda x: toys.split(x)[1], X)
    assert dead_code_elimination(trace).bound_symbols == trace.bound_symbols


def test_keeps_the_numbers_that_dimensions_mention():
    size = number_proxy(4)

    def program(x):
        longer = Symbol("longer", "toys", meta=lambda a: a.like(shape=(a.shape[0] + 1,)))
        return longer(x)

    trace = dead_code_elimination(trace_of(program, Tensor((size,)), language=toys.language))
    assert [b.symbol.name for b in trace.bound_symbols] == ["number_add", "longer"]
    verify(trace, metadata=False)


def test_computes_equal_things_once():
    def program(x):
        return toys.add(toys.exp(x), toys.mul(toys.exp(x), 2))

    assert_text(
        common_subexpressions(trace_of(program, X)),
        """
        def program(x: "float32[2, 3]"):
            t0 = toys.exp(x)  # float32[2, 3]
            t2 = toys.mul(t0, 2)  # float32[2, 3]
            t3 = toys.add(t0, t2)  # float32[2, 3]
            return t3
        """,
    )


@pytest.mark.parametrize("pair", [(1, 1.0), (0.0, -0.0), (1, True), ((1,), [1]), ("1", 1)], ids=str)
def test_arguments_that_only_look_alike_stay_apart(pair):
    trace = trace_of(lambda x: toys.add(toys.describe(x, pair[0]), toys.describe(x, pair[1])), X)
    assert len(common_subexpressions(trace).bound_symbols) == 3


@pytest.mark.parametrize("symbol", [toys.draw, toys.noise], ids=lambda s: s.name)
def test_never_merges_random_draws_even_inside_a_composite(symbol):
    trace = trace_of(lambda x: toys.add(symbol(x), symbol(x)), X)
    assert common_subexpressions(trace).bound_symbols == trace.bound_symbols


def test_never_merges_across_a_write():
    def program(x):
        before = toys.exp(x)
        toys.write(x)
        return toys.add(before, toys.exp(x))

    trace = trace_of(program, X)
    assert common_subexpressions(trace).bound_symbols == trace.bound_symbols


def test_never_merges_values_of_which_one_is_written_through_a_view():
    def program(x):
        a, b = toys.exp(x), toys.exp(x)
        toys.write(toys.view(a))
        return toys.add(b, x)

    trace = trace_of(program, X)
    assert common_subexpressions(trace).bound_symbols == trace.bound_symbols


def test_never_makes_two_outputs_share_memory():
    trace = trace_of(lambda x: (toys.exp(x), toys.view(toys.exp(x))), X)
    assert common_subexpressions(trace).bound_symbols == trace.bound_symbols


def test_never_makes_two_outputs_share_memory_through_what_may_be_a_view():
    unknown = Symbol("unknown", "toys", meta=lambda a: a.like())
    trace = trace_of(lambda x: (toys.exp(x), unknown(toys.exp(x))), X)
    assert common_subexpressions(trace).bound_symbols == trace.bound_symbols


def test_never_makes_two_outputs_share_memory_through_a_third():
    def program(x):
        inner, first, second = toys.exp(x), toys.exp(x), toys.exp(x)
        return toys.add(inner, x), toys.view(first), second

    outputs = common_subexpressions(trace_of(program, X)).bound_symbols
    assert [bound.symbol.name for bound in outputs].count("exp") == 2


def test_expands_composites_down_to_what_is_kept_and_keeps_names():
    trace = trace_of(lambda x: toys.nested(x)[1], X)
    assert_text(
        expand(trace),
        """
        def program(x: "float32[2, 3]"):
            t2 = toys.tanh(x)  # float32[2, 3]
            t4 = toys.exp(t2)  # float32[2, 3]
            t0 = toys.mul(t4, t4)  # float32[2, 3]
            return t0
        """,
    )
    assert_text(
        expand(trace, keep=lambda bound: bound.symbol is toys.square_of_exp),
        """
        def program(x: "float32[2, 3]"):
            t2 = toys.tanh(x)  # float32[2, 3]
            t0 = toys.square_of_exp(t2)  # float32[2, 3]
            return t0
        """,
    )


def test_a_rewriting_pass_sees_what_earlier_visits_made():
    def visit(bound):
        if bound.symbol is toys.tanh:
            return bound.args[0]
        return toys.exp(toys.exp(bound.args[0])) if bound.symbol is toys.exp else KEEP

    def program(x):
        return toys.add(toys.tanh(toys.exp(x)), x)

    assert_text(
        rewrite(trace_of(program, X), visit),
        """
        def program(x: "float32[2, 3]"):
            t3 = toys.exp(x)  # float32[2, 3]
            t0 = toys.exp(t3)  # float32[2, 3]
            t2 = toys.add(t0, x)  # float32[2, 3]
            return t2
        """,
    )


def test_a_rewriting_pass_that_changes_nothing_returns_the_trace_itself():
    trace = trace_of(lambda x: toys.exp(x), X)
    assert rewrite(trace, lambda bound: KEEP) is trace


def test_a_rewriting_pass_keeps_location_and_tags():
    trace = trace_of(lambda x: toys.exp(x), X)
    marked = trace.replace(
        bound_symbols=tuple(b.replace(location="here", tags=frozenset(["a"])) for b in trace.bound_symbols)
    )
    (bound,) = rewrite(marked, lambda bound: toys.tanh(*bound.args)).bound_symbols
    assert (bound.symbol, bound.location, bound.tags) == (toys.tanh, "here", frozenset(["a"]))


def test_a_replacement_of_another_structure_is_refused():
    with pytest.raises(VerificationError, match="sequence of 2"):
        rewrite(trace_of(lambda x: toys.split(x), X), lambda bound: bound.args[0])


def test_evaluates_on_values_and_into_another_trace():
    trace = trace_of(lambda x, y: [toys.add(x, toys.mul(y, 2))], Tensor(()), Tensor(()))
    assert evaluate(trace, [1, 20], {toys.add: lambda a, b: a + b, toys.mul: lambda a, b: a * b}) == [41]
    inlined = record(lambda x: evaluate(trace, [x, x]), trace_of(lambda x: x, X).inputs)
    assert [b.symbol.name for b in inlined.bound_symbols] == ["mul", "add"]
    with pytest.raises(VerificationError, match="takes 2 arguments, got 1"):
        evaluate(trace, [1])


def test_knows_who_defines_each_value():
    trace = trace_of(lambda x: toys.add(toys.exp(x), x), X)
    first, second = trace.bound_symbols
    assert producers(trace) == {"t0": first, "t1": second}


def test_orders_writes_behind_reads_and_effects_and_draws_among_each_other():
    def program(x):
        v = toys.view(x)  # 0
        e = toys.exp(x)  # 1
        toys.write(v)  # 2: after 0 and 1
        t = toys.tanh(x)  # 3: after 2
        toys.keep(e)  # 4: after 1, and after the effect 2
        d = toys.draw(x)  # 5: reads x, after 2
        return toys.add(t, toys.draw(d))  # 6, 7

    before = dependencies(trace_of(program, X).bound_symbols)
    assert before == [set(), set(), {0, 1}, {2}, {1, 2}, {2}, {5}, {3, 6}]


def test_reorders_by_priority_within_what_dependencies_allow():
    trace = trace_of(lambda x: toys.add(toys.exp(x), toys.tanh(toys.mul(x, x))), X)
    names = [b.symbol.name for b in topological_order(trace.bound_symbols, lambda b: b.symbol is toys.exp)]
    assert names == ["mul", "tanh", "exp", "add"]
    assert topological_order(trace.bound_symbols) == list(trace.bound_symbols)
    backwards = topological_order(reversed(trace.bound_symbols))
    assert [b.symbol.name for b in backwards] == ["mul", "tanh", "exp", "add"]


def test_metadata_and_constraints_follow_replaced_numbers():
    def program(x):
        n = x.shape[0] + 1
        assert n != 3
        longer = Symbol("longer", "toys", meta=lambda a: a.like(shape=(n,)))
        return longer(x)

    trace = trace_of(program, Tensor((number_proxy(4),)), language=toys.language)
    folded = rewrite(trace, lambda bound: 5 if bound.symbol is toys.number_add else KEEP)
    assert folded.output.shape == (5,)
    assert folded.constraints == (Constraint("ne", 5, 3, True),)


def test_a_pass_says_who_made_the_trace_and_how_long_it_took():
    made = dead_code_elimination(trace_of(lambda x: toys.exp(x), X))
    assert made.provenance.made_by == "dead_code_elimination"
    assert made.python().startswith("# made by dead_code_elimination in ")


def test_the_verifier_runs_after_every_pass_when_asked():
    @trace_pass
    def turn_around(trace):
        return trace.replace(bound_symbols=trace.bound_symbols[::-1])

    trace = trace_of(lambda x: toys.tanh(toys.exp(x)), X)
    turn_around(trace)
    with verifying(), pytest.raises(VerificationError, match="t0 is read before it is defined"):
        turn_around(trace)


def test_passes_change_nothing_that_they_were_given():
    trace = trace_of(lambda x: toys.add(toys.square_of_exp(x), toys.square_of_exp(x)), X)
    before = str(trace)
    for run in (dead_code_elimination, common_subexpressions, expand):
        run(trace)
    assert str(trace) == before


def test_shows_what_a_pass_changed():
    trace = trace_of(lambda x: (toys.exp(x), x)[1], X)
    assert "-    t0 = toys.exp(x)" in difference(trace, dead_code_elimination(trace))
    assert difference(trace, trace) == ""


def test_cost_grows_with_the_program_and_no_faster():
    counted = []

    def count(bound):
        counted.append(bound)
        return KEEP

    def program(x):
        for _ in range(500):
            x = toys.exp(x)
        return x

    rewrite(trace_of(program, X), count)
    assert len(counted) == 500
