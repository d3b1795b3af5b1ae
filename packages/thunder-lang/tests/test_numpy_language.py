"""The numpy language against NumPy: the same shapes, dtypes and values, or an error of the same type."""

import operator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import thunder_lang.numpy as tnp
from thunder_ir import Tensor, TensorProxy, dtypes, trace_of
from thunder_testing import run_reference

DTYPES = [
    "bool",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]

KEEPS_INTEGERS = np.ceil(np.ones(1, "int8")).dtype == "int8"
"""Whether this NumPy rounds integers to integers, as the array API has it and the language does."""


def looks_at_values():
    """Whether this NumPy finds a dtype for the value of a number, as none does since weak scalars."""
    try:
        return (np.ones(1, "uint8") + 300).dtype != "uint8"
    except OverflowError:
        return False


def described(value):
    return Tensor(value.shape, value.dtype.name) if isinstance(value, np.ndarray) else value


def run(function, args):
    trace = trace_of(function, *[described(a) for a in args], language=tnp.numpy)
    return trace.output, run_reference(trace, *[a for a in args if isinstance(a, np.ndarray)])


def assert_same(ours, theirs, *args):
    """The same result, down to the dtype; or an error of the same type."""
    with np.errstate(all="ignore"):
        try:
            expected = theirs(*args)
        except (TypeError, ValueError, IndexError, OverflowError, ZeroDivisionError) as error:
            kinds = (IndexError, ValueError, RuntimeError, TypeError, OverflowError, ZeroDivisionError)
            if isinstance(error, TypeError):
                kinds = (TypeError, RuntimeError)
            elif isinstance(error, IndexError):
                kinds = (IndexError,)
            with pytest.raises(kinds):
                run(ours, args)
            return
    output, values = run(ours, args)
    if not isinstance(expected, (tuple, list)):
        output, values, expected = [output], [values], [expected]
    assert len(output) == len(expected)
    for proxy, value, want in zip(output, values, expected, strict=True):
        assert isinstance(proxy, TensorProxy)
        want = np.asarray(want)
        assert (proxy.dtype.name.removesuffix("8") if proxy.dtype.is_bool else proxy.dtype.name) == want.dtype.name
        assert tuple(proxy.shape) == want.shape
        tolerance = 5e-3 if want.dtype in (np.float16,) else 1e-5
        np.testing.assert_allclose(value, want, rtol=tolerance, atol=tolerance)


def sample(dtype, shape=(2, 3), low=1):
    values = np.arange(low, low + int(np.prod(shape))).reshape(shape)
    return (values % 2 == 0) if dtype == "bool" else values.astype(dtype)


@pytest.mark.parametrize("a", DTYPES)
@pytest.mark.parametrize("b", [*DTYPES, True, 3, 2.5, 1j], ids=str)
def test_promotes_as_numpy_does(a, b):
    expected = np.result_type(np.dtype(a), np.dtype(b) if isinstance(b, str) else b)
    found = tnp.result_type(Tensor((2,), a), Tensor((), b) if isinstance(b, str) else b)
    assert np.dtype(found.name.removesuffix("8") if found.is_bool else found.name) == expected


BINARY = [
    "add",
    "subtract",
    "multiply",
    "divide",
    "floor_divide",
    "remainder",
    "power",
    "maximum",
    "minimum",
    "equal",
    "less",
    "greater_equal",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "logical_and",
    "logical_or",
    "logical_xor",
    "arctan2",
    "hypot",
    "logaddexp",
    "copysign",
]
LESS = {"equal", "less", "greater_equal", "maximum", "minimum", "floor_divide", "remainder"}


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("a", ["bool", "uint8", "int8", "int32", "float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("b", ["bool", "uint8", "int16", "int64", "float32", "float64", "complex128"])
def test_binary_functions_match(name, a, b):
    if name in LESS and "complex" in a + b and name not in ("equal",):
        pytest.skip("NumPy orders complex numbers by their parts")
    if name in ("floor_divide", "remainder", "power") and a == b == "bool":
        pytest.skip("NumPy computes this in int8, for which nobody asks")
    x, y = sample(a), np.ones((3,), b) if name in ("floor_divide", "remainder", "divide") else sample(b, (3,))
    y = np.ones((3,), b) if name == "power" else y
    assert_same(getattr(tnp, name), getattr(np, name), x, y)


UNARY = [
    "abs",
    "acos",
    "asinh",
    "atan",
    "ceil",
    "conj",
    "cos",
    "exp",
    "expm1",
    "floor",
    "imag",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "log1p",
    "log2",
    "log10",
    "logical_not",
    "negative",
    "positive",
    "real",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
    "bitwise_invert",
    "reciprocal",
]


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int32", "int64", "float16", "float32", "float64", "complex64"]
)
def test_unary_functions_match(name, dtype):
    if name == "reciprocal" and dtype == "bool":
        pytest.skip("NumPy computes this in int8, for which nobody asks")
    if name in ("ceil", "floor", "trunc") and np.dtype(dtype).kind not in "fc" and not KEEPS_INTEGERS:
        pytest.skip("this NumPy rounds integers to floats")
    theirs = {"acos": "arccos", "asinh": "arcsinh", "atan": "arctan", "bitwise_invert": "invert"}.get(name, name)
    x = sample(dtype)
    assert_same(getattr(tnp, name), getattr(np, theirs), x / 10 if name == "acos" and x.dtype.kind in "fc" else x)


@pytest.mark.parametrize(
    "function",
    [
        operator.add,
        operator.sub,
        operator.mul,
        operator.truediv,
        operator.floordiv,
        operator.mod,
        operator.pow,
        operator.eq,
        operator.lt,
        operator.and_,
    ],
)
@pytest.mark.parametrize("dtype", ["uint8", "int32", "float32", "float64"])
@pytest.mark.parametrize("number", [2, 2.5, True, 300], ids=str)
def test_operators_with_numbers_match(function, dtype, number):
    if number == 300 and function in (operator.eq, operator.lt, operator.pow):
        pytest.skip("NumPy compares beyond the range of the dtype")
    if number == 300 and dtype == "uint8" and looks_at_values():
        pytest.skip("this NumPy takes a wider dtype for a number that does not fit")
    assert_same(lambda x: function(x, number), lambda x: function(x, number), sample(dtype))
    assert_same(lambda x: function(number, x), lambda x: function(number, x), sample(dtype))


REDUCTIONS = ["sum", "prod", "mean", "max", "min", "any", "all", "argmax", "argmin", "std", "var", "count_nonzero"]


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "float32", "float64"])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1), 5], ids=str)
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions_match(name, dtype, axis, keepdims):
    if name.startswith("arg") and isinstance(axis, tuple):
        pytest.skip("NumPy takes one axis here")
    ours, theirs = getattr(tnp, name), getattr(np, name)
    assert_same(lambda x: ours(x, axis, keepdims=keepdims), lambda x: theirs(x, axis, keepdims=keepdims), sample(dtype))


X = np.arange(24.0).reshape(2, 3, 4)
V, M = np.arange(3.0), np.arange(6.0).reshape(2, 3)
CASES = [
    (lambda np: np.arange(5),),
    (lambda np: np.arange(1, 9, 3),),
    (lambda np: np.arange(3, 0),),
    (lambda np: np.arange(0, 1, 0.3),),
    (lambda np: np.arange(0, 5, 0),),
    (lambda np: np.linspace(0, 1, 5),),
    (lambda np: np.linspace(0, 1, 5, endpoint=False),),
    (lambda np: np.eye(3),),
    (lambda np: np.eye(2, 3, 1),),
    (lambda np: np.zeros((2, 3)),),
    (lambda np: np.ones(3),),
    (lambda np: np.full(2, 7),),
    (lambda np: np.full((2,), 1.5),),
    (lambda np: np.asarray([[1, 2], [3, 4]]),),
    (lambda np: np.asarray([1.5, 2]),),
    (lambda np, x: np.zeros_like(x), X),
    (lambda np, x: np.full_like(x, 3), X),
    (lambda np, x: np.reshape(x, (4, -1)), X),
    (lambda np, x: np.reshape(x, 24), X),
    (lambda np, x: np.reshape(x, (5, 5)), X),
    (lambda np, x: np.transpose(x), X),
    (lambda np, x: np.transpose(x, (1, 0, 2)), X),
    (lambda np, x: x.T, X),
    (lambda np, x: np.moveaxis(x, 0, -1), X),
    (lambda np, x: np.swapaxes(x, 0, 2), X),
    (lambda np, x: np.expand_dims(x, (0, 2)), X),
    (lambda np, x: np.squeeze(np.expand_dims(x, 1), 1), X),
    (lambda np, x: np.squeeze(x, 0), X),
    (lambda np, x: np.ravel(x), X),
    (lambda np, x: np.broadcast_to(x, (5, 2, 3, 4)), X),
    (lambda np, x: np.broadcast_to(x, (3,)), X),
    (lambda np, a, b: np.broadcast_arrays(a, b), V, M),
    (lambda np, a, b: np.concatenate((a, b)), M, M.astype("int32")),
    (lambda np, a, b: np.concatenate((a, b), axis=None), M, V),
    (lambda np, a, b: np.concatenate((a, b)), M, V),
    (lambda np, a, b: np.stack((a, b), 1), M, M),
    (lambda np, a, b: np.stack((a, b)), M, V),
    (lambda np, x: np.split(x, 2, 2), X),
    (lambda np, x: np.split(x, 3, 2), X),
    (lambda np, x: np.split(x, [1, 3], 2), X),
    (lambda np, x: np.flip(x), X),
    (lambda np, x: np.flip(x, (0, 2)), X),
    (lambda np, x: np.roll(x, 2), X),
    (lambda np, x: np.roll(x, (1, -1), (0, 2)), X),
    (lambda np, x: np.roll(x, 1, (0, 2)), X),
    (lambda np, x: np.repeat(x, 2, 1), X),
    (lambda np, x: np.repeat(x, 2), M),
    (lambda np, x: np.tile(x, 2), M),
    (lambda np, x: np.tile(x, (2, 1, 3)), M),
    (lambda np, x: np.tril(x), M),
    (lambda np, x: np.triu(x, 1), M),
    (lambda np, a, b: np.meshgrid(a, b), V, V[:2]),
    (lambda np, a, b: np.meshgrid(a, b, indexing="ij"), V, V[:2]),
    (lambda np, a, b: np.where(a > 1, a, b), V, M),
    (lambda np, a: np.where(a, 1, 2.5), V),
    (lambda np, a: np.where(a > 1, 1, 0), V),
    (lambda np, a: np.clip(a, 1, 2), M),
    (lambda np, a: np.clip(a, None, 1.5), V.astype("int32")),
    (lambda np, a: np.take(a, [0, -1], 1), M),
    (lambda np, a: np.take(a, [0, 4]), M),
    (lambda np, a, i: np.take_along_axis(a, i, 1), M, np.array([[2, 0], [1, 1]])),
    (lambda np, a: np.diff(a), M),
    (lambda np, a: np.diff(a, 2), M),
    (lambda np, a: np.sort(a, 0), M),
    (lambda np, a: np.argsort(-a, -1), M),
    (lambda np, a, b: np.searchsorted(a, b), V, M),
    (lambda np, a, b: np.searchsorted(a, b, side="right"), V, V),
    (lambda np, a: np.cumsum(a, 1), M),
    (lambda np, a: np.cumsum(a), M.astype("int8")),
    (lambda np, a: np.cumprod(a, 0), M),
    (lambda np, a, b: np.matmul(a, b), M, V),
    (lambda np, a, b: np.matmul(a, b), M, M),
    (lambda np, a, b: np.matmul(a, b), M, M.T.astype("int64")),
    (lambda np, a, b: np.dot(a, b), M, M.T.copy()),
    (lambda np, a, b: np.dot(a, b), V, V),
    (lambda np, a, b: np.dot(a, b), X, np.arange(20.0).reshape(4, 5)),
    (lambda np, a, b: np.inner(a, b), M, V),
    (lambda np, a, b: np.outer(a, b), M, V),
    (lambda np, a, b: np.tensordot(a, b, 1), M, V),
    (lambda np, a: np.trace(a), M),
    (lambda np, a: np.trace(a, 1), M.astype("int32")),
    (lambda np, a, b: np.einsum("ij,jk->ik", a, b), M, M.T.copy()),
    (lambda np, a: np.round(a, 1), X / 7),
    (lambda np, a: np.max(a, ()), M),
    (lambda np, a: np.sum(a, ()), M),
    (lambda np, a: np.max(a), np.zeros((0, 3))),
    (lambda np, a: np.argmax(a), np.zeros((0,))),
    (lambda np, a, b: np.isclose(a, b), V, V + 1e-9),
    (lambda np, a: a.mean(axis=0, keepdims=True), M),
    (lambda np, a: a.sum(axis=1), M),
]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_cases_match(number):
    function, *args = CASES[number]
    assert_same(lambda *a: function(tnp, *a), lambda *a: function(np, *a), *args)


KEYS = [
    0,
    -1,
    (0, slice(None), 1),
    slice(None, None, -1),
    (slice(None), slice(-1, 0, -2)),
    slice(5, None, -1),
    (..., slice(3, 0, -1)),
    [0, 1],
    [[0, 1], [1, 1]],
    (0, slice(None), [0, 1, 1]),
    ([0, 1], slice(None), 2),
    (slice(None), [0, 2], [1, 1]),
    ([1, 0], None, [2, 1]),
    (None, 1),
    (..., None),
    ([True, False],),
    (0, [1, 2]),
    (0, 1, [3, 0]),
    7,
    (0, 0, 0, 0),
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_reads_at_keys_as_numpy_does(key):
    assert_same(lambda x: x[key], lambda x: x[key], X)


basic_keys = hnp.basic_indices((4, 3, 5), max_dims=5, allow_newaxis=True, allow_ellipsis=True)
advanced_keys = hnp.integer_array_indices((4, 3, 5))


@given(basic_keys)
@settings(max_examples=150, deadline=None)
def test_basic_indexing_matches(key):
    x = np.arange(60.0).reshape(4, 3, 5)
    assert_same(lambda x: x[key], lambda x: x[key], x)


@given(advanced_keys)
@settings(max_examples=100, deadline=None)
def test_advanced_indexing_matches(key):
    x = np.arange(60.0).reshape(4, 3, 5)
    assert_same(lambda x, *k: x[k], lambda x, *k: x[k], x, *key)


@given(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=4))
@settings(max_examples=100, deadline=None)
def test_broadcasting_matches(shapes):
    a, b = [np.arange(float(np.prod(s))).reshape(s) for s in shapes.input_shapes]
    assert_same(operator.add, operator.add, a, b)


@given(st.tuples(st.integers(0, 3), st.integers(0, 3)), st.tuples(st.integers(0, 3), st.integers(0, 3)))
@settings(max_examples=60, deadline=None)
def test_shapes_that_do_not_broadcast_are_refused(first, second):
    a, b = np.zeros(first), np.zeros(second)
    assert_same(lambda a, b: a * b, lambda a, b: a * b, a, b)


def test_takes_dtypes_by_object_name_and_python_type():
    for dtype in (dtypes.float32, "float32"):
        assert trace_of(lambda d=dtype: tnp.zeros(2, dtype=d), language=tnp.numpy).output.dtype is dtypes.float32
    assert trace_of(lambda: tnp.ones(2, dtype=int), language=tnp.numpy).output.dtype is dtypes.int64
