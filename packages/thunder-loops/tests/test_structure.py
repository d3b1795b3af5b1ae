"""Which regions count as one, and which do not."""

from fractions import Fraction

import pytest

import thunder_prims as prims
from thunder_ir import FloatProxy, IntegerProxy, Tensor, TensorProxy, trace_of
from thunder_ir.polynomials import Atom
from thunder_loops import is_of_one_program, structure_of


def structure(program, *examples):
    trace = trace_of(program, *examples)
    return structure_of(trace.bound_symbols, trace.outputs)


def test_names_do_not_count():
    one = structure(lambda x, y: prims.mul(prims.exp(x), y), Tensor((2, 3)), Tensor((2, 3)))
    other = structure(lambda a, b, c: prims.mul(prims.exp(b), a), *[Tensor((2, 3))] * 3)

    assert one is not None
    assert one == other


@pytest.mark.parametrize(
    ("program", "examples"),
    [
        (lambda x, y: prims.mul(y, prims.exp(x)), [Tensor((2, 3))] * 2),
        (lambda x, y: prims.mul(prims.exp(x), x), [Tensor((2, 3))] * 2),
        (lambda x, y: prims.mul(prims.exp2(x), y), [Tensor((2, 3))] * 2),
        (lambda x, y: prims.mul(prims.exp(x), y), [Tensor((3, 2))] * 2),
        (lambda x, y: prims.mul(prims.exp(x), y), [Tensor((2, 3), "float64")] * 2),
        (lambda x, y: (prims.exp(x), prims.mul(prims.exp(x), y)), [Tensor((2, 3))] * 2),
    ],
    ids=["operands", "values", "operation", "shape", "dtype", "outputs"],
)
def test_what_is_computed_counts(program, examples):
    one = structure(lambda x, y: prims.mul(prims.exp(x), y), *[Tensor((2, 3))] * 2)

    assert structure(program, *examples) != one


def test_numbers_count_with_their_types_and_signs():
    found = {structure(lambda x, n=n: prims.add(x, n), Tensor((2,))) for n in (0.0, -0.0, 0, 1.0, float("nan"))}

    assert len(found) == 5


def test_numbers_that_the_call_tells_are_equal_to_nothing():
    assert structure(lambda x, n: prims.add(x, n), Tensor((2,)), FloatProxy(value=None)) is None


def test_objects_that_are_more_than_numbers_are_equal_to_nothing():
    class Scale(float):
        pass

    bound = trace_of(lambda x: prims.add(x, 1.5), Tensor((2,))).bound_symbols[0]
    known, other = (bound.replace(args=(bound.args[0], number)) for number in (1.5, Scale(1.5)))

    assert structure_of((known,), known.outputs) is not None
    assert structure_of((other,), other.outputs) is None


def test_objects_that_are_what_they_print_as_count_by_that_if_their_classes_are_told():
    class Shape(tuple):
        __slots__ = ()

    bound = trace_of(lambda x: prims.add(x, 1.5), Tensor((2,))).bound_symbols[0]

    def of(*values):
        return structure_of((bound.replace(args=values),), (), plain={Shape, Fraction})

    assert of(Shape((1, 2)), Fraction(1, 3)) == of(Shape((1, 2)), Fraction(1, 3))
    different = {of(Shape((1, 2))), of(Shape((1, 3))), of((1, 2)), of(Fraction(1, 3)), of(Fraction(1, 2)), of("1/3")}
    assert len(different) == 6 and None not in different
    assert structure_of((bound.replace(args=(Shape((1, 2)),)),), ()) is None


def test_slices_and_ellipses_count_by_what_they_say():
    bound = trace_of(lambda x: prims.add(x, 1.5), Tensor((2,))).bound_symbols[0]
    made = [structure_of((bound.replace(args=((..., slice(n)),)),), ()) for n in (1, 2, 1)]

    assert made[0] == made[2] != made[1] and made[0] is not None


def of_open_sizes(rows, columns, *, square=False, **options):
    n, m = size(rows, "n"), size(columns, "m")
    x = TensorProxy((n, n if square else m), name="x")
    bound = trace_of(prims.exp, Tensor((2, 3))).bound_symbols[0]
    return structure_of((bound.replace(args=(x,)),), (), **options)


def size(value, name):
    number = IntegerProxy(value, name)
    number.polynomial = {(Atom(least=0),): 1}
    return number


def test_open_sizes_are_equal_to_nothing():
    assert of_open_sizes(3, 4) is None


def test_identical_sizes_may_be_equal_within_a_program():
    n, m, k = size(3, "n"), size(3, "m"), size(3, "k")
    k.polynomial = n.polynomial  # another name of the same
    bound = trace_of(prims.add, *[Tensor((3,))] * 2).bound_symbols[0]

    def of(*sizes):
        values = tuple([TensorProxy((s,), name=f"x{i}") for i, s in enumerate(sizes)])
        return structure_of((bound.replace(args=values),), (), symbolic="identical")

    assert of(n, n) == of(k, k) != of(m, m)
    assert of(n, n) != of(n, k) == of(k, n), "who runs it is given two numbers"
    assert is_of_one_program(of(n, 3)) and not is_of_one_program(of(3, 3))
    assert of(3, 3) == structure_of((bound.replace(args=(*[TensorProxy((3,), name=x) for x in "ab"],)),), ())


def test_open_sizes_may_count_by_what_they_are_now():
    found = of_open_sizes(3, 4, symbolic="at hand")

    assert found is not None
    assert found == of_open_sizes(3, 4, symbolic="at hand")
    assert found != of_open_sizes(3, 5, symbolic="at hand")
    assert of_open_sizes(3, 3, symbolic="at hand") != of_open_sizes(3, 3, square=True, symbolic="at hand")
