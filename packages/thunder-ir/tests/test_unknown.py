"""Numbers that are known only when the program runs: what is decided about them, and what is not."""

import pytest

from thunder_ir import (
    BoolProxy,
    IntegerProxy,
    Symbol,
    Tensor,
    TensorProxy,
    Unknown,
    UnknownNumberError,
    load_trace,
    save_trace,
)
from thunder_ir.trace import record
from thunder_ir.unknown import bounds_of, decided, derived, product, quotient, surely_equal, terms_of, total


def size(name, upper=float("inf")):
    return IntegerProxy(7, name, Unknown(f"the size {name}", 0, upper))


def of_terms(terms):
    return IntegerProxy(7, "", Unknown("a sum", terms=terms))


N, M = size("n"), size("m", 12)
EIGHT_N = of_terms(product(terms_of(N), terms_of(8)))


@pytest.mark.parametrize(
    ("relation", "left", "right", "outcome"),
    [
        ("eq", N, N, True),
        ("eq", N, size("n"), True),
        ("eq", N, -1, False),
        ("ge", N, 0, True),
        ("lt", N, 0, False),
        ("ne", N, N, False),
        ("le", M, 12, True),
        ("gt", M, 12, False),
        ("eq", of_terms(total((1, terms_of(N)), (1, terms_of(3)))), N, False),
        ("gt", of_terms(total((1, terms_of(N)), (1, terms_of(3)))), N, True),
        ("eq", EIGHT_N, of_terms(total((4, terms_of(N)), (4, terms_of(N)))), True),
        ("ge", of_terms(product(terms_of(N), terms_of(M))), 0, True),
    ],
)
def test_what_holds_for_every_value_is_decided(relation, left, right, outcome):
    assert decided(relation, left, right) is outcome


@pytest.mark.parametrize(
    ("relation", "left", "right"),
    [("eq", N, 0), ("ne", N, 1), ("lt", N, M), ("eq", N, M), ("ge", M, 12), ("eq", EIGHT_N, N)],
)
def test_what_depends_on_the_value_is_refused(relation, left, right):
    with pytest.raises(UnknownNumberError, match="known only when the program runs.*pass the number in as an argument"):
        decided(relation, left, right)
    assert not surely_equal(left, right)


@pytest.mark.parametrize("use", [int, float, hash, round, range, bool], ids=lambda f: f.__name__)
def test_python_gets_no_plain_number(use):
    with pytest.raises(UnknownNumberError, match=r"the size n"):
        use(N)


def test_quotients_are_exact_or_none():
    assert quotient(terms_of(EIGHT_N), terms_of(8)) == terms_of(N)
    assert quotient(terms_of(EIGHT_N), terms_of(N)) == terms_of(8)
    assert quotient(terms_of(N), terms_of(2)) is None
    assert quotient(terms_of(N), terms_of(M)) is None


def test_bounds_follow_arithmetic():
    twice = of_terms(total((2, terms_of(M)), (-1, terms_of(4))))
    assert bounds_of(twice) == (-4, 20)
    assert bounds_of(of_terms(product(terms_of(M), terms_of(M)))) == (0, 144)
    assert derived("mod", (M, 5)).upper == 4
    assert derived("truediv", (M, 5)).terms is None


def test_a_truth_is_an_integer_of_one_bit():
    truth = BoolProxy(True, "b", Unknown("whether it is so"))
    assert decided("ge", truth, 0) and decided("le", truth, 1) and bounds_of(truth) == (0, 1)
    assert derived("pow", (2, truth)).terms is None
    with pytest.raises(UnknownNumberError, match="whether it is so"):
        decided("eq", truth, 1)


def test_a_saved_trace_keeps_what_is_unknown():
    read = Symbol("read", "toys", meta=lambda a: IntegerProxy(7, "", Unknown("what it read", 0, 12)))
    trace = record(lambda x: read(x), [TensorProxy((2,), name="x")])
    loaded = load_trace(save_trace(trace), [read])
    number = loaded.output
    assert number.unknown.what == "what it read" and bounds_of(number) == (0, 12)


def test_a_size_without_a_name_is_shown_as_one():
    assert Tensor((size(""), 3)).type_string == "float32[?, 3]"
