"""The joint program: numbers against central differences, and what it contains as text."""

import numpy as np
import pytest
import toy_language as toy
from toy_language import joint_of, numeric_gradients, run, texts, traced

from thunder_autograd import grad_transform_on_trace, gradient_trace, split_into_forward_and_backward, vjp_rule
from thunder_ir import MissingRuleError, Symbol


def several(x, w):
    h = toy.layer(x, w)
    s, c = toy.sincos(h)
    return toy.wave(s) + c, toy.nested(toy.sum0(h))


def reused(x):
    y = toy.tanh(x)
    return y * y + x * y - y


def through_matmul(x, w):
    return toy.sum0(toy.matmul(toy.transpose(x), w) * 2.0)


def one_of_two(x):
    return toy.sincos(x)[1]


PROGRAMS = {
    "several": (several, [(3, 4), (4, 2)]),
    "reused": (reused, [(2, 3)]),
    "through_matmul": (through_matmul, [(3, 4), (3, 2)]),
    "one_of_two": (one_of_two, [(3,)]),
    "empty": (reused, [(0,)]),
    "scalar": (reused, [()]),
}


@pytest.mark.parametrize("partition", ["joint", "min-cut", "save-all", 0.5, 0.0])
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_match_central_differences(name, partition):
    function, shapes = PROGRAMS[name]
    random = np.random.default_rng(1)
    arguments = [random.standard_normal(s) for s in shapes]
    program = traced(function, *shapes)
    joint = grad_transform_on_trace(program)
    cotangents = [random.standard_normal(p.shape) for p in program.outputs]

    if partition == "joint":
        outputs, gradients = run(joint, *arguments, *cotangents)
    else:
        options = {"memory_budget": partition} if isinstance(partition, float) else {"partition": partition}
        forward, backward = split_into_forward_and_backward(joint, **options)
        outputs, saved = run(forward, *arguments)
        gradients = run(backward, *saved, *cotangents)

    expected = run(program, *arguments)
    for a, b in zip(*[o if isinstance(o, tuple) else (o,) for o in (outputs, expected)], strict=True):
        np.testing.assert_allclose(a, b)
    for a, b in zip(gradients, numeric_gradients(program, arguments, cotangents), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_second_derivatives_are_derivatives_of_the_gradient_program():
    first = gradient_trace(joint_of(reused, (2, 3)))
    second = grad_transform_on_trace(first, wanted={p.name for p in first.inputs})
    random = np.random.default_rng(2)
    x, dy, ddx = (random.standard_normal((2, 3)) for _ in range(3))

    _, gradients = run(second, x, dy, ddx)

    for a, b in zip(gradients, numeric_gradients(first, [x, dy], [ddx]), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_prints_as_a_program():
    assert str(joint_of(lambda x: toy.sin(x), (2, 3))) == (
        'def program_joint(x: "float64[2, 3]", dt0: "float64[2, 3]"):\n'
        "    t0 = _toy_sin(x)  # float64[2, 3]\n"
        "    t2 = _toy_cos(x)  # float64[2, 3]\n"
        "    t3 = _toy_mul(dt0, t2)  # float64[2, 3]\n"
        "    return (t0, (t3,))"
    )


def test_leaves_alone_what_does_not_depend_on_a_wanted_input():
    def program(x, y):
        return toy.nested(x) + toy.sin(y)

    joint = grad_transform_on_trace(traced(program, (2,), (2,)), wanted={"y"})

    assert texts(joint) == ["nested", "sin", "add", "cos", "mul"]
    assert joint.output[1][0] is None


def test_wants_the_gradients_of_inputs_that_require_grad():
    trace = traced(lambda x, y: x * y, (2,), (2,), requires_grad=[False, True])

    assert [g is None for g in grad_transform_on_trace(trace).output[1]] == [True, False]


def test_lets_nothing_through_what_is_constant_for_the_derivative():
    joint = joint_of(lambda x: toy.sin(x) + toy.detach(toy.tanh(x)), (2,))

    assert texts(joint) == ["sin", "tanh", "detach", "add", "cos", "mul"]


def test_gives_no_gradient_where_it_is_zero():
    joint = joint_of(lambda x, y: toy.sin(x), (2,), (2,))

    assert joint.output[1][1] is None


def test_computes_no_gradient_that_nobody_wants():
    joint = grad_transform_on_trace(traced(lambda a, b: toy.matmul(a, b), (2, 3), (3, 4)), wanted={"a"})

    assert texts(joint) == ["matmul", "transpose", "matmul"]


def test_an_output_that_is_an_input_hands_its_cotangent_through():
    joint = joint_of(lambda x: (x, x), (2,))

    _, gradients = run(joint, np.ones(2), np.full(2, 2.0), np.full(2, 3.0))

    np.testing.assert_array_equal(gradients[0], np.full(2, 5.0))


def test_asks_the_executor_for_a_rule_first():
    def doubled(a):
        return toy.mul(a, 2.0), lambda dy: toy.mul(dy, 2.0)

    joint = joint_of(lambda x: toy.wave(x), (2,), rule_of=lambda bound: doubled if bound.symbol is toy.wave else None)

    assert texts(joint) == ["mul", "mul"]
    assert joint.output[0].name == joint.bound_symbols[0].output.name


def test_a_rule_may_return_its_own_input_and_still_change_the_gradient():
    reverse = Symbol("reverse", "toy", meta=lambda a: a.like(), language=toy.toy)
    toy.RUNS[reverse] = lambda a: a
    vjp_rule(reverse)(lambda a: (a, lambda dy: toy.mul(dy, -1.0)))
    try:
        joint = joint_of(lambda x: reverse(x) * 3.0, (2,))
    finally:
        vjp_rule.remove(reverse)

    _, gradients = run(joint, np.ones(2), np.ones(2))

    np.testing.assert_array_equal(gradients[0], np.full(2, -3.0))


def test_names_the_symbol_whose_rule_is_missing():
    with pytest.raises(MissingRuleError, match=r"toy.ruleless has no vjp rule.*@vjp_rule\(toy.ruleless\)"):
        joint_of(lambda x: toy.ruleless(x), (2,))


def test_asks_for_no_rule_where_no_gradient_arrives():
    assert texts(joint_of(lambda x: toy.sin(x) + toy.detach(toy.ruleless(x)), (2,)))[:2] == ["sin", "ruleless"]


def test_keeps_a_composite_whole_whose_pullback_reads_only_inputs():
    assert texts(joint_of(lambda x: toy.square(x), (2,)))[0] == "square"


def test_keeps_a_composite_whole_where_intermediates_are_cheap():
    forward, backward = split_into_forward_and_backward(joint_of(lambda x: toy.wave(x), (2,)))

    assert texts(forward) == ["wave"]
    assert texts(backward).count("sin") == 1 and texts(backward).count("tanh") == 1


def test_takes_a_composite_apart_where_an_intermediate_is_expensive():
    joint = joint_of(lambda x, w: toy.layer(x, w), (2, 3), (3, 4))

    assert texts(joint)[:3] == ["matmul", "tanh", "mul"]
    assert texts(joint).count("matmul") == 3


def test_takes_a_composite_apart_that_draws_random_numbers():
    assert texts(joint_of(lambda x: toy.dropout(x), (2,)))[:3] == ["noise", "above", "masked"]


def test_keeps_a_composite_of_composites_whole():
    forward, backward = split_into_forward_and_backward(joint_of(lambda x: toy.nested(x), (2,)))

    assert texts(forward) == ["nested"]


def test_changes_nothing_it_was_given():
    trace = traced(several, (3, 4), (4, 2))
    before = str(trace)

    grad_transform_on_trace(trace)

    assert str(trace) == before
