"""Transforms of functions, alone and composed, run with NumPy against central differences and against each other."""

import numpy as np
import pytest

import thunder_lang as lang
import thunder_prims as prims
from thunder_functional import functionalize, grad, hessian, jacfwd, jacrev, jvp, linearize, value_and_grad, vjp, vmap
from thunder_ir import DimensionError, DTypeError, ShapeError, Tensor, ThunderError, trace_of
from thunder_ir.passes import evaluate
from thunder_ir.trees import flatten, tree_map

DTYPES = {"float64": np.float64, "float32": np.float32, "int64": np.int64, "bool8": np.bool_}


def broadcast_in_dim(a, shape, dims):
    return np.broadcast_to(a.reshape([a.shape[dims.index(d)] if d in dims else 1 for d in range(len(shape))]), shape)


RUNS = {
    prims.sin: np.sin, prims.cos: np.cos, prims.exp: np.exp, prims.tanh: np.tanh, prims.neg: np.negative,
    prims.mul: np.multiply, prims.add: np.add, prims.sub: np.subtract, prims.div: np.divide, prims.eq: np.equal,
    prims.matmul: np.matmul, prims.transpose: np.transpose, prims.reshape: np.reshape, prims.pow: np.power,
    prims.sum: lambda a, dims: np.sum(a, axis=tuple(dims)), prims.broadcast_in_dim: broadcast_in_dim,
    prims.full: lambda shape, value, dtype, device: np.full(shape, value, DTYPES[dtype.name]),
    prims.iota: lambda n, start, step, dtype, device: start + step * np.arange(n, dtype=DTYPES[dtype.name]),
    prims.convert_element_type: lambda a, dtype: a.astype(DTYPES[dtype.name]),
    prims.squeeze: lambda a, dims: np.squeeze(a, tuple(dims)),
    prims.uniform: lambda shape, low, high, dtype, device: np.full(shape, 0.5),
}  # fmt: skip


def run(function, *arrays):
    """Record a function for these arrays and run it."""
    examples = tree_map(lambda a: Tensor(a.shape, a.dtype.name), list(arrays))
    trace = trace_of(function, *examples, language=lang.core)
    return evaluate(trace, flatten(list(arrays))[0], RUNS)


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def loss(x, w):
    return ((x @ w).tanh() * 2.0).sum()


def slope(function, at, *arrays, step=1e-6):
    """The gradient of a function of arrays with respect to one of them."""
    gradient = np.zeros_like(arrays[at])
    for index in np.ndindex(*gradient.shape):
        moved = [a.copy() for a in arrays]
        moved[at][index] += step
        high = run(function, *moved)
        moved[at][index] -= 2 * step
        gradient[index] = (high - run(function, *moved)) / (2 * step)
    return gradient


def close(a, b, tolerance=1e-6):
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def test_grad_is_the_slope():
    x, w = numbers(2, 3), numbers(3, 4)

    close(run(grad(loss), x, w), slope(loss, 0, x, w))
    close(run(grad(loss, argnums=-1), x, w), slope(loss, 1, x, w))
    for at, gradient in enumerate(run(grad(loss, argnums=(0, 1)), x, w)):
        close(gradient, slope(loss, at, x, w))


def test_value_and_grad_returns_both_and_what_else_there_is():
    def with_aux(x):
        y = x.sin()
        return y.sum(), {"y": y, "twice": x * 2.0}

    x = numbers(3)
    (value, aux), gradient = run(value_and_grad(with_aux, has_aux=True), x)

    close(value, np.sin(x).sum())
    close(aux["y"], np.sin(x))
    close(aux["twice"], 2 * x)
    close(gradient, np.cos(x))


def test_arguments_and_results_may_be_containers():
    def function(parameters, x):
        return {"out": [x @ parameters["w"] + parameters["b"]]}

    parameters, x = {"w": numbers(3, 2), "b": numbers(2)}, numbers(4, 3)
    gradient = run(grad(lambda p, x: function(p, x)["out"][0].sum()), parameters, x)

    assert list(gradient) == ["w", "b"]
    close(gradient["b"], np.full(2, 4.0))


def test_a_gradient_without_a_path_is_zero():
    close(run(grad(lambda x, y: x.sum(), argnums=1), numbers(2), numbers(3)), np.zeros(3))


def test_grad_of_grad_of_grad():
    x = np.array(0.7)

    close(run(grad(grad(grad(lambda x: x.sin()))), x), -np.cos(0.7))


def test_derivatives_do_not_confuse_what_functions_close_over():
    function = grad(lambda x: x * grad(lambda y: x + y)(x))

    close(run(function, np.array(3.0)), 1.0)


def test_the_pullback_may_run_several_times():
    def program(x, a, b):
        y, pullback = vjp(lambda x: x.sin(), x)
        return y, pullback(a)[0], pullback(b)[0]

    x, a, b = numbers(3), numbers(3, seed=1), numbers(3, seed=2)
    y, first, second = run(program, x, a, b)

    close(first, a * np.cos(x))
    close(second, b * np.cos(x))


def test_jvp_is_the_derivative_along_the_tangents():
    x, w, dx, dw = numbers(2, 3), numbers(3, 4), numbers(2, 3, seed=1), numbers(3, 4, seed=2)
    _, tangent = run(lambda x, w, dx, dw: jvp(loss, (x, w), (dx, dw)), x, w, dx, dw)

    close(tangent, (slope(loss, 0, x, w) * dx).sum() + (slope(loss, 1, x, w) * dw).sum())


def test_linearize_computes_only_what_depends_on_tangents_again():
    def program(x, a, b):
        y, push = linearize(lambda x: x.exp().sin(), x)
        return y, push(a), push(b)

    trace = trace_of(program, *[Tensor((3,), "float64")] * 3, language=lang.core)

    assert [b.symbol.name for b in trace.bound_symbols].count("exp") == 1
    x, a, b = numbers(3), numbers(3, seed=1), numbers(3, seed=2)
    close(run(program, x, a, b)[2], b * np.exp(x) * np.cos(np.exp(x)))


def test_vmap_is_the_loop():
    x, w = numbers(5, 2, 3), numbers(3, 4)
    batched = run(vmap(loss, in_dims=(0, None)), x, w)

    close(batched, [run(loss, each, w) for each in x])


@pytest.mark.parametrize("in_dim, out_dim", [(0, 0), (1, 0), (-1, 1), (1, -1)])
def test_vmap_puts_batches_where_they_are_wanted(in_dim, out_dim):
    examples = [numbers(2, 3, seed=i) for i in range(4)]
    batch = np.stack(examples, in_dim)

    close(
        run(vmap(lambda x: x.sin() * 2.0, in_dim, out_dim), batch), np.stack([np.sin(e) * 2 for e in examples], out_dim)
    )


def test_vmap_repeats_what_is_the_same_for_all():
    x = numbers(5, 3)
    same = run(vmap(lambda x: (x * 2.0, lang.full((2,), 1.0, dtype=x.dtype))), x)[1]

    close(same, np.ones((5, 2)))


def test_vmap_of_vmap():
    x, y = numbers(4, 3), numbers(5, 3)
    outer = run(vmap(vmap(lambda a, b: (a * b).sum(), (None, 0)), (0, None)), x, y)

    close(outer, x @ y.T)


def test_per_example_gradients():
    x, w = numbers(5, 2, 3), numbers(3, 4)
    gradients = run(vmap(grad(loss, argnums=1), in_dims=(0, None)), x, w)

    close(gradients, [run(grad(loss, argnums=1), each, w) for each in x])


def test_grad_of_vmap():
    x, w = numbers(5, 2, 3), numbers(3, 4)
    of_sum = grad(lambda x, w: vmap(loss, in_dims=(0, None))(x, w).sum(), argnums=1)

    close(run(of_sum, x, w), sum(run(grad(loss, argnums=1), each, w) for each in x))


def test_jvp_of_vmap_and_vmap_of_jvp_agree():
    x, dx = numbers(5, 3), numbers(5, 3, seed=1)
    function = lambda x: (x.sin() * x).sum()  # noqa: E731
    one = run(lambda x, dx: jvp(vmap(function), (x,), (dx,))[1], x, dx)
    other = run(lambda x, dx: vmap(lambda a, b: jvp(function, (a,), (b,))[1])(x, dx), x, dx)

    close(one, other)
    close(one, ((np.sin(x) + x * np.cos(x)) * dx).sum(1))


@pytest.mark.parametrize("jacobian", [jacrev, jacfwd])
def test_jacobians_are_matrices_of_slopes(jacobian):
    def function(x, w):
        return {"a": (x @ w).sin(), "b": x * 2.0}

    x, w = numbers(2, 3), numbers(3, 4)
    both = run(jacobian(function, argnums=(0, 1)), x, w)

    assert (
        both["a"][0].shape == (2, 4, 2, 3) and both["a"][1].shape == (2, 4, 3, 4) and both["b"][1].shape == (2, 3, 3, 4)
    )
    expected = np.einsum("nk,ni,jk->nkij", np.cos(x @ w), np.eye(2), w)
    close(both["a"][0], expected)
    close(both["b"][0], 2 * np.einsum("ik,jl->ijkl", np.eye(2), np.eye(3)))
    close(both["b"][1], np.zeros((2, 3, 3, 4)))


def test_hessian_is_the_matrix_of_second_derivatives():
    x = numbers(3)
    function = lambda x: (x.sin() * x.sum()).sum()  # noqa: E731
    matrix = run(hessian(function), x)

    c, s = np.cos(x), np.sin(x)
    close(matrix, c[:, None] + c[None, :] - np.diag(s) * x.sum())


def test_random_operations_under_vmap_are_refused_unless_told():
    noisy = lambda x: x * lang.uniform(x.shape, 0.0, 1.0, device=x.device, dtype=x.dtype)  # noqa: E731
    with pytest.raises(ThunderError, match="randomness="):
        run(vmap(noisy), numbers(4, 3))

    close(run(vmap(noisy, randomness="different"), np.ones((4, 3))), np.full((4, 3), 0.5))
    close(run(vmap(noisy, randomness="same"), np.ones((4, 3))), np.full((4, 3), 0.5))


def test_functionalize_leaves_a_function_as_it_is():
    assert functionalize(loss) is loss


@pytest.mark.parametrize(
    "function, error, match",
    [
        (lambda x: grad(lambda x: x.sin())(x), ShapeError, r"a tensor without dimensions, got float64\[2, 3\]"),
        (lambda x: grad(lambda x: 3)(x), ShapeError, "a tensor without dimensions, got int"),
        (lambda x: grad(lambda y: y)(2), DTypeError, "must be a tensor"),
        (lambda x: grad(loss, argnums=2)(x, x), IndexError, "names argument 2, but the function was called with 2"),
        (lambda x: vmap(lambda x: x, in_dims=None)(x), ShapeError, "at least one tensor with a batch"),
        (lambda x: vmap(lambda x: x, in_dims=3)(x), DimensionError, "dimension 3 of float64"),
        (lambda x: vmap(lambda x, y: x, in_dims=(0, 1))(x, x), ShapeError, "different sizes: 2, 3"),
        (lambda x: vmap(lambda x: x, out_dims=None)(x), ValueError, "differs between the examples"),
        (lambda x: vmap(lambda x: x, in_dims=(0, 0))(x), ValueError, "in_dims must be a number"),
        (lambda x: vjp(lambda x: x.sum(), x)[1](x), ShapeError, r"a cotangent of float64\[\] cannot be"),
        (lambda x: jvp(lambda x: x.sum(), (x,), (x.sum(),)), ShapeError, "a tangent of"),
    ],
)  # fmt: skip
def test_wrong_uses_are_explained(function, error, match):
    with pytest.raises(error, match=match):
        run(function, numbers(2, 3))


def test_integers_have_no_gradient():
    with pytest.raises(DTypeError, match=r"floating-point or complex dtype, got int64\[2\]"):
        run(grad(lambda x: x.sum()), np.arange(2))
