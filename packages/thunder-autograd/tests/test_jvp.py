"""Tangents against central differences."""

import numpy as np
import pytest
import toy_language as toy
from test_joint import PROGRAMS
from toy_language import run, texts, traced

from thunder_autograd import grad_transform_on_trace, jvp_rule, jvp_transform_on_trace
from thunder_ir import MissingRuleError


def flat(output):
    return list(output) if isinstance(output, tuple) else [output]


@pytest.mark.parametrize("name", PROGRAMS)
def test_tangents_match_central_differences(name):
    function, shapes = PROGRAMS[name]
    random = np.random.default_rng(3)
    arguments, tangents = ([random.standard_normal(s) for s in shapes] for _ in range(2))
    program = traced(function, *shapes)

    outputs, pushed = run(jvp_transform_on_trace(program), *arguments, *tangents)

    ahead, behind = (
        flat(run(program, *[a + s * 1e-6 * t for a, t in zip(arguments, tangents, strict=True)])) for s in (1, -1)
    )
    for output, expected in zip(flat(outputs), flat(run(program, *arguments)), strict=True):
        np.testing.assert_allclose(output, expected)
    for tangent, high, low in zip(pushed, ahead, behind, strict=True):
        np.testing.assert_allclose(tangent, (high - low) / 2e-6, atol=1e-6)


def test_uses_a_symbols_own_rule():
    jvp_rule(toy.tanh)(lambda a, da: (toy.tanh(a), toy.mul(da, 2.0)))
    try:
        assert texts(jvp_transform_on_trace(traced(lambda x: toy.tanh(x), (2,)))) == ["tanh", "mul"]
    finally:
        jvp_rule.remove(toy.tanh)


def test_only_wanted_inputs_have_tangents():
    transformed = jvp_transform_on_trace(traced(lambda x, y: x * toy.nested(y), (2,), (2,)), wanted={"x"})

    assert [p.name for p in transformed.inputs] == ["x", "y", "dx"]
    assert "nested" in texts(transformed)


def test_a_zero_tangent_is_none():
    transformed = jvp_transform_on_trace(traced(lambda x: (toy.sin(x), toy.detach(x)), (2,)))

    assert [t is None for t in transformed.output[1]] == [False, True]


def test_names_the_symbol_whose_rule_is_missing():
    with pytest.raises(MissingRuleError, match=r"toy.ruleless has no jvp rule.*@jvp_rule\(toy.ruleless\)"):
        jvp_transform_on_trace(traced(lambda x: toy.ruleless(x), (2,)))


def test_forward_over_reverse_is_the_hessian_times_a_vector():
    function = lambda x: toy.sum0(toy.tanh(x) * x)  # noqa: E731
    joint = grad_transform_on_trace(traced(function, (3,)))
    x, v = np.array([0.1, 0.2, 0.3]), np.array([1.0, -1.0, 2.0])
    second = jvp_transform_on_trace(joint, wanted={joint.inputs[0].name})

    (_, (gradient,)), tangents = run(second, x, np.ones(()), v)

    t = np.tanh(x)
    np.testing.assert_allclose(tangents[1], v * (2 * (1 - t**2) - 2 * x * t * (1 - t**2)), atol=1e-12)
