"""Derivatives against central differences, batches against single calls."""

import numpy as np
import pytest
from prims_machine import STEP, check_rules, close, pushed_forward, run, trace_with

import thunder_prims as prims
from thunder_autograd import vjp_rule
from thunder_ir import TensorProxy
from thunder_prims import axes
from thunder_vmap import batching_rule

GENERATOR = np.random.default_rng(11)


def real(*shape):
    return GENERATOR.uniform(-2, 2, shape)


def mixed(*shape):
    return real(*shape) + 1j * real(*shape)


MAKERS = pytest.mark.parametrize("make", [real, mixed])


def regular(make, *batch):
    """Well-conditioned matrices."""
    return make(*batch, 3, 3) + 4 * np.eye(3)


@MAKERS
@pytest.mark.parametrize("batch", [(), (2,), (2, 3)], ids=str)
def test_rules_of_matmul_hold(make, batch):
    check_rules(prims.matmul, make(*batch, 3, 4), make(*batch, 4, 2))


@MAKERS
@pytest.mark.parametrize("rows", [(), (2,), (2, 3), (0,)], ids=str)
@pytest.mark.parametrize("bias", [True, False])
def test_rules_of_linear_hold(make, rows, bias):
    check_rules(prims.linear, make(*rows, 3), make(4, 3), make(4) if bias else None)


@MAKERS
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("unitriangular", [False, True])
def test_rules_of_triangular_solve_hold(make, upper, left, unitriangular):
    b = make(2, 3, 4) if left else make(2, 4, 3)
    check_rules(prims.triangular_solve, regular(make, 2), b, upper, left, unitriangular)


@MAKERS
def test_rules_of_solve_and_inverse_hold(make):
    check_rules(prims.solve, regular(make, 2), make(2, 3, 2))
    check_rules(prims.inverse, regular(make, 2))


@MAKERS
def test_rules_of_determinants_hold(make):
    check_rules(prims.det, regular(make, 2))
    check_rules(prims.det, regular(make))
    check_rules(prims.slogdet, regular(make, 2))


def hermitian(make, *batch):
    """Matrices with well separated eigenvalues, all positive."""
    a = make(*batch, 3, 3)
    return a + np.conj(np.swapaxes(a, -1, -2)) + np.diag([12.0, 20.0, 30.0])


def check_among_hermitian(function, a):
    """Check the derivatives of a function of a Hermitian matrix along a direction that is one."""
    direction = hermitian(real if a.dtype.kind == "f" else mixed, *a.shape[:-2])
    value = run(function, a)
    slope = (run(function, a + STEP * direction) - run(function, a - STEP * direction)) / (2 * STEP)
    cotangent = GENERATOR.standard_normal(value.shape).astype(value.dtype)
    trace = trace_with(function, a)
    tangent = run(lambda x, d: pushed_forward(trace, (x,), (d,))[0], a, direction)
    np.testing.assert_allclose(tangent, slope, rtol=1e-5, atol=1e-5)
    gradient = run(lambda x, dy: back(function, x, dy), a, cotangent)
    np.testing.assert_allclose(gradient, np.conj(np.swapaxes(gradient, -1, -2)), atol=1e-10)
    np.testing.assert_allclose(
        np.sum(np.conj(gradient) * direction).real, np.sum(np.conj(cotangent) * slope).real, rtol=1e-5, atol=1e-5
    )


def back(function, a, cotangent):
    """The gradient of ``function``, which calls prims of which none is used twice but the first."""
    trace = trace_with(function, np.zeros(a.shape, a.dtype.name))
    values, pullbacks = {trace.inputs[0].name: a}, []

    def read(x):
        return values[x.name] if isinstance(x, TensorProxy) else x

    for bound in trace.bound_symbols:
        output, pullback = vjp_rule[bound.symbol](*map(read, bound.args))
        for proxy, value in zip(bound.outputs, output if isinstance(output, tuple) else (output,), strict=True):
            values[proxy.name] = value
        pullbacks.append((bound, pullback))
    cotangents = {trace.outputs[0].name: cotangent}
    for bound, pullback in reversed(pullbacks):
        gradients = pullback(*[cotangents.get(o.name) for o in bound.outputs])
        for x, g in zip(bound.args, gradients if isinstance(gradients, tuple) else (gradients,), strict=False):
            if isinstance(x, TensorProxy) and g is not None:
                cotangents[x.name] = cotangents[x.name] + g if x.name in cotangents else g
    return cotangents[trace.inputs[0].name]


def projection(a):
    """A function of eigenvectors that does not depend on their phases."""
    w, v = prims.eigh(a)
    first = axes.part_along(v, v.ndim - 1, 0, 1)
    return prims.matmul(first, axes.adjoint(first))


@MAKERS
@pytest.mark.parametrize("batch", [(), (2,)], ids=str)
@pytest.mark.parametrize("function", [prims.cholesky, projection, lambda a: prims.eigh(a)[0]])
def test_rules_hold_among_hermitian_matrices(make, batch, function):
    check_among_hermitian(function, hermitian(make, *batch))


@pytest.mark.parametrize("shape", [(3, 3), (4, 3), (3, 4), (2, 4, 3)], ids=str)
def test_rules_of_factorizations_hold(shape):
    check_rules(prims.qr, real(*shape))
    check_rules(prims.svd, real(*shape), second=False)


@pytest.mark.parametrize("shape", [(3, 3), (4, 3), (3, 4)], ids=str)
def test_rules_of_qr_hold_for_complex_numbers(shape):
    check_rules(prims.qr, mixed(*shape))


def test_second_derivatives_of_factorizations_hold():
    check_rules(prims.svd, real(3, 3))


@pytest.mark.parametrize("name", ["cholesky", "eigh", "svd", "qr", "det", "slogdet", "inverse"])
def test_a_batch_joins_the_leading_dimensions(name):
    symbol = getattr(prims, name)
    batch = hermitian(real, 2)
    actual = run(lambda x: batching_rule[symbol](2, (x,), (2,))[0], np.moveaxis(batch, 0, 2))
    close(actual, run(symbol, batch))


def test_values_that_do_not_depend_on_phases_derive_for_complex_matrices():
    a = mixed(4, 3)
    dy = mixed(4, 3)

    def rebuilt(x):
        return prims.matmul(vjp_rule[prims.svd](x)[0][0], vjp_rule[prims.svd](x)[0][2])

    def pulled(x, dy):
        (u, s, vh), pullback = vjp_rule[prims.svd](x)
        y, back = vjp_rule[prims.matmul](u, vh)
        du, dvh = back(dy)
        return y, pullback(du, None, dvh)

    _, gradient = run(pulled, a, dy)
    direction = mixed(4, 3)
    slope = (run(rebuilt, a + STEP * direction) - run(rebuilt, a - STEP * direction)) / (2 * STEP)
    np.testing.assert_allclose(
        np.sum(np.conj(gradient) * direction).real, np.sum(np.conj(dy) * slope).real, rtol=1e-5, atol=1e-5
    )
