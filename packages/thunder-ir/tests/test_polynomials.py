"""Comparisons of symbolic integers that come out the same whatever these are need no constraint."""

from hypothesis import given
from hypothesis import strategies as st

from thunder_ir import Builder, IntegerProxy, recording, same_shape
from thunder_ir.polynomials import Atom, computed, constant, decided, difference, narrowed, polynomial_of, range_of


def size(value=7):
    number = IntegerProxy(value, f"i{value}")
    number.polynomial = {(Atom(least=0),): 1}
    return number


def test_a_size_is_never_negative():
    builder = Builder()
    with recording(builder):
        n = size()
        assert n >= 0 and not n < 0 and n != -1 and n > -2
    assert not builder.constraints


def test_what_was_recorded_is_not_asked_again():
    builder = Builder()
    with recording(builder):
        n = size()
        assert n != 0 and n != 1 and n != 0 and n > 1 and n >= 2 and not n <= 1 and n != 1
        assert [(c.relation, c.right, c.holds) for c in builder.constraints] == [("ne", 0, True), ("ne", 1, True)]
        assert n < 100 and n < 101 and n != 200


def test_sizes_from_two_on_are_told_at_once():
    builder = Builder()
    with recording(builder):
        n = size()
        assert n != 1 and n != 0 and n > 1
    assert [(c.relation, c.right, c.holds) for c in builder.constraints] == [("gt", 1, True)]


def test_a_fixed_size_is_fixed_once():
    builder = Builder()
    with recording(builder):
        n = size()
        assert int(n) == 7 and n < 8 and n == 7 and hash(n) == hash(7)
    assert [(c.relation, c.right, c.holds) for c in builder.constraints] == [("eq", 7, True)]


NUMBERS = st.integers(-4, 4)


STEPS = st.lists(st.tuples(st.sampled_from(["add", "sub", "mul", "floordiv", "mod"]), NUMBERS), max_size=5)
RELATIONS = st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge"])


@given(STEPS, RELATIONS, NUMBERS, st.integers(0, 9), st.integers(0, 9))
def test_polynomials_are_what_python_computes(steps, relation, right, low, more):
    """What is decided of a polynomial holds for all numbers within the bounds."""
    n = size()
    (product,) = polynomial_of(n)
    polynomial, values = polynomial_of(n), {v: v for v in range(low, low + more + 1)}
    for operation, number in steps:
        proxy = IntegerProxy(0, "i")
        proxy.polynomial = polynomial
        found = computed(operation, proxy, number)
        if found is None or (number == 0 and operation in ("floordiv", "mod")):
            continue
        polynomial = found
        values = {v: getattr(int, f"__{operation}__")(value, number) for v, value in values.items()}
    bounds = {product[0]: (low, low + more)}
    lowest, highest = range_of(polynomial, bounds)
    assert all(lowest <= value <= highest for value in values.values())
    always = constant(polynomial)
    assert always is None or set(values.values()) == {always}
    outcome = decided(relation, difference(polynomial, polynomial_of(right)), bounds)
    compared = {getattr(value, f"__{relation}__")(right) for value in values.values()}
    assert outcome is None or compared == {outcome}


@given(RELATIONS, st.integers(-3, 3), st.integers(-9, 9), st.integers(0, 9))
def test_bounds_hold_what_comparisons_leave(relation, times, added, value):
    n, bounds = size(), {}
    ((atom,),) = polynomial_of(n)
    polynomial = {p: c for p, c in {(atom,): times, (): added}.items() if c}
    holds = getattr(times * value + added, f"__{relation}__")(0)
    narrowed(relation, holds, polynomial, bounds)
    low, high = bounds.get(atom, (0, float("inf")))
    assert low <= value <= high
    for other in range(20):
        if getattr(times * other + added, f"__{relation}__")(0) == holds:
            assert low <= other <= high


def test_shapes_of_several_ranks_are_not_compared_by_size():
    builder = Builder()
    with recording(builder):
        n = size(2)
        assert not same_shape((n, 3), (2,)) and not same_shape((n, 3), (2, 4)) and same_shape((n, 3), (n, 3))
        assert not builder.constraints
        assert same_shape((n, 3), (2, 3)) and builder.constraints
