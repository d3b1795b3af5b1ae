"""The derivatives of prims are those of PyTorch, also at zeros, ties, infinities and nan."""

import pytest
import torch

import thunder_prims as prims
from thunder_autograd import ZERO, jvp_rule, vjp_rule
from thunder_executors import to_callable
from thunder_executors_torch import executor
from thunder_ir import Tensor, devices, dtypes, trace_of
from thunder_ir.trees import tree_map

NAN, INF = float("nan"), float("inf")
ORDINARY = [-1.7, -0.6, 0.3, 0.8, 1.9]
ODD = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN]
SEED = [0.7, -1.3, 0.4, 2.0, -0.5]


def run(function, *tensors):
    """Record ``function`` for these tensors, and run it by PyTorch."""
    examples = [Tensor(t.shape, str(t.dtype).removeprefix("torch.")) for t in tensors]
    return to_callable(trace_of(function, *examples), [executor])(*tensors)


def gradients_of(symbol, *arguments, dy):
    """The output of a prim and its gradients for the tensors among ``arguments``."""
    places = [i for i, a in enumerate(arguments) if isinstance(a, torch.Tensor)]

    def program(dy, *tensors):
        filled = dict(zip(places, tensors, strict=True))
        output, pullback = vjp_rule[symbol](*[filled.get(i, a) for i, a in enumerate(arguments)])
        gradients = pullback(dy)
        gradients = gradients if isinstance(gradients, tuple) else (gradients,)
        found = [gradients[i] if i < len(gradients) else None for i in places]
        return output, tuple(
            [
                prims.full(t.shape, 0.0, t.dtype, t.device) if g is ZERO else g
                for g, t in zip(found, tensors, strict=True)
            ]
        )

    return run(program, dy, *[arguments[i] for i in places])


def tangent_of(symbol, *arguments, along):
    """The tangent of a prim's output along one tangent for each tensor among ``arguments``."""
    places = [i for i, a in enumerate(arguments) if isinstance(a, torch.Tensor)]

    def program(*both):
        values = dict(zip(places, both[: len(places)], strict=True))
        tangents = dict(zip(places, both[len(places) :], strict=True))
        filled = [values.get(i, a) for i, a in enumerate(arguments)]
        return jvp_rule[symbol](*filled, *[tangents.get(i) for i in range(len(arguments))])[1]

    return run(program, *[arguments[i] for i in places], *along)


def check(symbol, function, *arguments):
    """Compare output, gradients and, for reals, the tangent with those of ``function``; nan counts as equal."""
    tracked = [tracks_gradient(a) if isinstance(a, torch.Tensor) else a for a in arguments]
    leaves = [a for a in tracked if isinstance(a, torch.Tensor)]
    expected = function(*tracked)
    dy = of(SEED * 5)[: expected.numel()].reshape(expected.shape).to(expected.dtype)
    dy = dy * (1 - 0.5j) if expected.is_complex() else dy

    y, gradients = gradients_of(symbol, *arguments, dy=dy)
    assert_same(y, expected.detach())
    ours = [g for g, a in zip(gradients, leaves, strict=True) if a.requires_grad]
    for have, want in zip(ours, gradients_of_torch(expected, leaves, dy), strict=True):
        assert_same(torch.zeros_like(want) if have is None else have, want)
    if all([a.dtype is torch.float64 for a in [*leaves, expected]]):
        along = [torch.full_like(a, 0.25) for a in leaves]
        # In an elementwise operation the tangent is the sum of the gradients for ones, times the tangents.
        slopes = gradients_of_torch(function(*tracked), leaves, torch.ones_like(dy))
        assert_same(tangent_of(symbol, *arguments, along=along), sum(slopes) * 0.25)


def tracks_gradient(a):
    return a.clone().requires_grad_(a.is_floating_point() or a.is_complex())


def gradients_of_torch(y, leaves, dy):
    wanted = [a for a in leaves if a.requires_grad]
    found = torch.autograd.grad(y, wanted, dy, allow_unused=True)
    return [torch.zeros_like(a) if g is None else g for a, g in zip(wanted, found, strict=True)]


def assert_same(have, want):
    torch.testing.assert_close(have, want, equal_nan=True, rtol=1e-9, atol=1e-12)


def of(values, dtype=torch.float64):
    return torch.tensor(values, dtype=dtype)


UNARY = (
    "abs acos acosh asin asinh atan atanh cos cosh exp exp2 expm1 log log10 log1p log2 neg reciprocal rsqrt sigmoid "
    "sin sinc sinh sqrt tan tanh erf erfc erfinv lgamma digamma i0"
).split()
SPECIAL = "erfcx i0e i1 i1e log_ndtr ndtri".split()
# Where our derivative is its limit, or the nan of its argument, and PyTorch's is not.
BETTER_THAN_TORCH = {"acosh": [-1.0, -INF], "i1": [NAN], "i1e": [NAN], "log_ndtr": [-INF]}


@pytest.mark.parametrize("name", UNARY + SPECIAL)
def test_unary_derivatives_are_those_of_torch(name):
    function = getattr(torch, name, None) or getattr(torch.special, name)
    check(getattr(prims, name), function, of(ORDINARY if name != "acosh" else [1.2, 3.0, 40.0]))


@pytest.mark.parametrize("name", UNARY + SPECIAL)
def test_unary_derivatives_at_odd_places_are_those_of_torch(name):
    function = getattr(torch, name, None) or getattr(torch.special, name)
    known = [str(x) for x in BETTER_THAN_TORCH.get(name, [])]
    for places in (ODD[:4], ODD[4:]):
        check(getattr(prims, name), function, of([x for x in places if str(x) not in known]))


COMPLEX = "abs acos asin asinh atan cos cosh exp log log10 log2 neg reciprocal sigmoid sin sinh sqrt tan tanh".split()


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_derivatives_are_those_of_torch(name):
    values = [0.3 + 0.4j, -1.2 + 0.7j, 0.9 - 1.1j, -0.5 - 0.6j]
    check(getattr(prims, name), getattr(torch, name), of(values, torch.complex128))


def test_the_direction_of_a_complex_number_is_that_of_torch():
    check(prims.sign, torch.sgn, of([0.3 + 0.4j, -1.2 + 0.7j, 0.0], torch.complex128))


BINARY = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "atan2": torch.atan2,
    "copysign": torch.copysign, "fmod": torch.fmod, "hypot": torch.hypot, "logaddexp": torch.logaddexp,
    "logaddexp2": torch.logaddexp2, "maximum": torch.maximum, "minimum": torch.minimum, "pow": torch.pow,
    "remainder": torch.remainder, "xlogy": torch.xlogy, "xlog1py": torch.special.xlog1py,
}  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
def test_binary_derivatives_are_those_of_torch(name):
    a, b = of([0.5, 1.7, 2.0, 0.3, 1.1]), of([1.5, 0.7, 2.0, 3.0, 0.9])
    check(getattr(prims, name), BINARY[name], a, b)
    if name not in ("add", "sub"):
        check(getattr(prims, name), BINARY[name], -a, b)


def has_angles_at_the_origin():
    """Whether PyTorch has a derivative of the angle of (0, 0), which is 0 since PyTorch 2.13 and was nan before."""
    y, x = torch.zeros(2, requires_grad=True)
    return not torch.autograd.grad(torch.atan2(y, x), y)[0].isnan()


ANGLES_AT_THE_ORIGIN = has_angles_at_the_origin()


@pytest.mark.parametrize("name", BINARY)
def test_binary_derivatives_at_odd_places_are_those_of_torch(name):
    pairs = [
        (0.0, 0.0),
        (0.0, 2.0),
        (0.0, -1.0),
        (2.0, 0.0),
        (-1.5, 2.0),
        (1.0, 1.0),
        (-2.0, -2.0),
        (NAN, 1.0),
        (1.0, NAN),
    ]
    if name == "copysign":  # ours is the sign, for nan as for anything else
        pairs = pairs[:-2]
    if name == "atan2" and not ANGLES_AT_THE_ORIGIN:
        pairs = pairs[1:]
    a, b = zip(*pairs, strict=True)
    check(getattr(prims, name), BINARY[name], of(a), of(b))


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, 0.5, -0.5, 0.0])
def test_powers_with_a_number_are_those_of_torch(exponent):
    check(prims.pow, torch.pow, of([0.0, 0.5, 1.7, 2.0]), exponent)
    check(prims.pow, torch.pow, of([-0.5, -1.7]), exponent)


@pytest.mark.parametrize("base", [0, 0.0, 2, 0.5, -1.5])
def test_powers_of_a_number_are_those_of_torch(base):
    check(prims.pow, torch.pow, base, of([0.0, 1.0, 2.0, -1.0, 0.5]))


def test_complex_powers_are_those_of_torch():
    a, b = of([0.3 + 0.4j, -1.2 + 0.7j, 0j], torch.complex128), of([1.3 - 0.4j, 0.5j, 2 + 0j], torch.complex128)
    check(prims.pow, torch.pow, a, b)
    check(prims.pow, torch.pow, a, 3)
    check(prims.div, torch.div, b, a[:2].repeat(2)[:3])


@pytest.mark.parametrize("bounds", [(-1.0, 1.0), (None, 0.5), (0.0, None), (1.0, -1.0)], ids=str)
def test_clamped_gradients_are_those_of_torch(bounds):
    check(prims.clamp, torch.clamp, of([-2.0, -1.0, 0.0, 0.5, 1.0, NAN]), *bounds)


def test_gradients_of_bounds_are_those_of_torch():
    a, low, high = of([-2.0, -1.0, 0.0, 3.0, 1.0]), of([-1.0, -1.0, 2.0, 0.0, 1.0]), of([1.0, 1.0, 1.0, 2.0, 1.0])
    check(prims.clamp, torch.clamp, a, low, high)
    check(prims.clamp, torch.clamp, a, low, None)
    check(prims.clamp, torch.clamp, a, None, high)


def test_gradients_of_bounds_among_nan_and_equals_are_those_of_torch():
    values = of([-1.0, 0.0, 1.0, NAN])
    for first in values:
        a, (low, high) = first.expand(16).clone(), torch.cartesian_prod(values, values).T.contiguous()
        for bounds in ((low, high), (low, None), (None, high)):
            check(prims.clamp, torch.clamp, a, *bounds)


def test_where_and_lerp_are_those_of_torch():
    a, b = of(ORDINARY), of(ORDINARY[::-1])
    check(prims.where, torch.where, a > b, a, b)
    check(prims.lerp, torch.lerp, a, b, 0.3)
    check(prims.lerp, torch.lerp, a, b, a * b)


def test_frexp_is_that_of_torch():
    a = of([0.3, -5.0, 0.0, 8.0])

    def program(x, dy):
        (mantissa, exponent), pullback = vjp_rule[prims.frexp](x)
        return mantissa, exponent, pullback(dy, None)

    x = a.clone().requires_grad_()
    mantissa, exponent = torch.frexp(x)
    have = run(program, a, torch.ones(4, dtype=torch.float64))
    want = mantissa.detach(), exponent, torch.autograd.grad(mantissa, x, torch.ones(4, dtype=torch.float64))[0]
    torch.testing.assert_close(have, want)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_polygamma_is_that_of_torch(order):
    check(prims.polygamma, lambda a, n: torch.polygamma(n, a), of([0.3, 1.5, 4.0]), order)


@pytest.mark.parametrize("name", ["zeta", "igamma", "igammac"])
def test_second_arguments_have_the_gradients_of_torch(name):
    function = {"zeta": torch.special.zeta, "igamma": torch.igamma, "igammac": torch.igammac}[name]
    check(getattr(prims, name), lambda a, b: function(torch.full_like(b, a), b), 2.5, of([0.3, 1.5, 4.0]))


SQUARE = torch.arange(12, dtype=torch.float64).reshape(3, 4)
SHAPES = {
    "transpose": (prims.transpose, torch.permute, (1, 0)),
    "reshape": (prims.reshape, torch.reshape, (2, 6)),
    "flip": (prims.flip, torch.flip, (0, 1)),
    "unfold": (prims.unfold, torch.Tensor.unfold, 1, 3, 1),
    "broadcast": (prims.broadcast_in_dim, lambda a, shape, dims: a.expand(shape), (2, 3, 4), (1, 2)),
    "slice": (prims.slice, lambda a, s, e, t: a[s[0] : e[0] : t[0], s[1] : e[1] : t[1]], (0, 1), (3, 4), (2, 2)),
    "pad": (
        prims.pad, lambda a, v, c: torch.nn.functional.pad(a, (*c[1][:2], *c[0][:2]), value=v), 1.5,
        ((1, -1, 0), (-2, 3, 0)),
    ),
    "clone": (prims.clone, torch.clone),
    "convert": (prims.convert_element_type, lambda a, d: a.float(), dtypes.float32),
    "complex": (prims.convert_element_type, lambda a, d: a.to(torch.complex128), dtypes.complex128),
    "move": (prims.device_put, lambda a, d: a.to("cpu"), devices.cpu),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_gradients_of_moved_elements_are_those_of_torch(name):
    symbol, function, *parameters = SHAPES[name]
    x = SQUARE.clone().requires_grad_()
    y = function(x, *parameters)
    dy = torch.randn(y.shape, dtype=y.dtype)

    def program(a, d):
        output, pullback = vjp_rule[symbol](a, *parameters)
        gradients = pullback(d)
        return output, gradients[0] if isinstance(gradients, tuple) else gradients

    torch.testing.assert_close(run(program, SQUARE, dy), (y.detach(), torch.autograd.grad(y, x, dy)[0]))


def test_gradients_of_joined_tensors_are_those_of_torch():
    a, b = SQUARE, SQUARE[:, :2] * 2
    x, z = a.clone().requires_grad_(), b.clone().requires_grad_()
    y = torch.cat((x, z), 1)
    dy = torch.randn(y.shape, dtype=y.dtype)

    def program(a, b, d):
        output, pullback = vjp_rule[prims.cat]((a, b), 1)
        return output, pullback(d)[0]

    have = tree_map(lambda t: t, run(program, a, b, dy))
    torch.testing.assert_close(have, (y.detach(), torch.autograd.grad(y, (x, z), dy)))
