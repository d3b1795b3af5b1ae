"""The core language against PyTorch: the same shapes, dtypes and values, or the same kind of error."""

import itertools
import operator

import numpy as np
import pytest
import torch

import thunder_lang as lang
from thunder_ir import Tensor, TensorProxy, dtypes, trace_of
from thunder_testing import run_reference

OURS = {d.name: getattr(torch, "bool" if d.name == "bool8" else d.name) for d in dtypes.STRONG}
THEIRS = {theirs: dtypes.dtype(name) for name, theirs in OURS.items()}
DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.float32,
    torch.float64,
    torch.complex64,
]


def described(value):
    return Tensor(tuple(value.shape), THEIRS[value.dtype]) if isinstance(value, torch.Tensor) else value


def tensors(values):
    found = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value.numpy())
        elif isinstance(value, (tuple, list)):
            found += tensors(value)
    return found


def described_all(value):
    if isinstance(value, (tuple, list)):
        return type(value)(described_all(v) for v in value)
    return described(value)


def outcome_of_ours(function, args):
    trace = trace_of(function, *described_all(list(args)), language=lang.core)
    values = run_reference(trace, *tensors(args))
    return trace.output, values


def assert_same(function, theirs, *args):
    """The same result, down to the dtype; or an error of the same type."""
    try:
        expected = theirs(*args)
    except Exception as error:  # whatever PyTorch raises
        if "not implemented for" in str(error) or "does not support bool input" in str(error):
            return  # a kernel that PyTorch lacks; nothing says what the operation should do
        kind = next(k for k in (IndexError, TypeError, ValueError, RuntimeError) if isinstance(error, k))
        with pytest.raises(kind):
            outcome_of_ours(function, args)
        return
    output, values = outcome_of_ours(function, args)
    if not isinstance(expected, (tuple, list)):
        output, values, expected = [output], [values], [expected]
    assert len(output) == len(expected)
    for proxy, value, want in zip(output, values, expected, strict=True):
        if not isinstance(proxy, TensorProxy):
            assert proxy == want
            continue
        assert OURS[proxy.dtype.name] is want.dtype, f"{proxy.dtype} for {want.dtype}"
        assert tuple(proxy.shape) == tuple(want.shape)
        tolerance = 2e-3 if want.dtype in (torch.float16, torch.complex32) else 1e-5
        np.testing.assert_allclose(value, want.numpy(), rtol=tolerance, atol=tolerance)


def sample(dtype, shape, low=-4, high=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    if dtype is torch.bool:
        return torch.randint(0, 2, shape, generator=generator).bool()
    low = max(low, 0) if dtype is torch.uint8 else low
    made = torch.randint(low, high, shape, generator=generator)
    return (made + 0.25).to(dtype) if dtype.is_floating_point else made.to(dtype)


@pytest.mark.parametrize("a", OURS)
@pytest.mark.parametrize("b", OURS)
def test_promotes_types_as_torch_does(a, b):
    try:
        expected = torch.result_type(torch.empty((2,), dtype=OURS[a]), torch.empty((2,), dtype=OURS[b]))
    except RuntimeError:
        with pytest.raises(RuntimeError):
            lang.result_type(Tensor((2,), a), Tensor((2,), b))
        return
    assert OURS[lang.result_type(Tensor((2,), a), Tensor((2,), b)).name] is expected


@pytest.mark.parametrize("dtype", OURS)
@pytest.mark.parametrize("other", [True, 2, 2.5, 1j, *OURS], ids=str)
@pytest.mark.parametrize("shape", [(2,), ()], ids=str)
def test_result_types_follow_torchs_categories(dtype, other, shape):
    mine = Tensor((), other) if isinstance(other, str) else other
    theirs = torch.empty((), dtype=OURS[other]) if isinstance(other, str) else other
    try:
        expected = torch.result_type(torch.empty(shape, dtype=OURS[dtype]), theirs)
    except RuntimeError:
        with pytest.raises(RuntimeError):
            lang.result_type(Tensor(shape, dtype), mine)
        return
    assert OURS[lang.result_type(Tensor(shape, dtype), mine).name] is expected


BINARY = {
    operator.add: None,
    operator.sub: None,
    operator.mul: None,
    operator.truediv: None,
    operator.floordiv: None,
    operator.mod: None,
    operator.pow: None,
    operator.and_: None,
    operator.or_: None,
    operator.xor: None,
    operator.eq: None,
    operator.ne: None,
    operator.lt: None,
    operator.le: None,
    operator.gt: None,
    operator.ge: None,
    lang.maximum: torch.maximum,
    lang.minimum: torch.minimum,
    lang.atan2: torch.atan2,
    lang.fmod: torch.fmod,
    lang.logical_and: torch.logical_and,
    lang.logical_or: torch.logical_or,
    lang.logical_xor: torch.logical_xor,
    lang.copysign: torch.copysign,
    lang.hypot: torch.hypot,
}


@pytest.mark.parametrize("ours", BINARY, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtypes_", itertools.product(DTYPES, DTYPES), ids=str)
def test_binary_operations_match(ours, dtypes_):
    a, b = sample(dtypes_[0], (2, 3)), sample(dtypes_[1], (3,), seed=1)
    if ours in (operator.floordiv, operator.mod, operator.pow, lang.fmod, operator.truediv):
        b = torch.where(b == 0, torch.ones_like(b), b)
    if ours is operator.pow and not (a.dtype.is_floating_point or b.dtype.is_floating_point):
        b = b.abs() if b.dtype is not torch.bool else b
    theirs = BINARY[ours] or ours
    if ours is operator.pow and (a.dtype.is_floating_point or b.dtype.is_floating_point):
        a = a.abs() if a.dtype is not torch.bool else a
    assert_same(ours, theirs, a, b)


@pytest.mark.parametrize("ours", [f for f in BINARY if BINARY[f] is None], ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("number", [True, 3, 2.5, -2], ids=str)
@pytest.mark.parametrize("turned", [False, True])
def test_operators_with_numbers_match(ours, dtype, number, turned):
    a = sample(dtype, (4,), low=1) if dtype is not torch.bool else torch.ones(4, dtype=dtype)
    if dtype is torch.bool and ours is operator.pow and number is True:
        pytest.skip("PyTorch copies for the exponent 1 and refuses any other")
    function = (lambda a: ours(number, a)) if turned else (lambda a: ours(a, number))
    assert_same(function, function, a)


UNARY = {
    n: getattr(torch, n)
    for n in (
        "abs acos acosh asin asinh atan atanh bitwise_not ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 "
        "floor frac isfinite isinf isnan isneginf isposinf lgamma log log10 log1p log2 logical_not neg nan_to_num "
        "positive rad2deg real reciprocal relu round rsqrt sigmoid sign signbit sin sinc sinh sqrt square tan tanh "
        "trunc i0"
    ).split()
}


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_unary_operations_match(name, dtype):
    assert_same(getattr(lang, name), UNARY[name], sample(dtype, (5,), low=1, high=4))


X = torch.arange(24.0).reshape(2, 3, 4)
INDICES = torch.tensor([[1, -1], [0, 1]])
KEYS = [
    0,
    -1,
    5,
    (1, 2),
    (0, slice(None), 1),
    slice(None, None, 2),
    slice(1, None),
    slice(-1, None),
    slice(5, 9),
    slice(None, None, -1),
    slice(2, 1),
    ...,
    (..., 0),
    (0, ..., 1),
    None,
    (None, 0),
    (slice(None), None, 1),
    (..., None),
    (0, 0, 0, 0),
    INDICES,
    (slice(None), INDICES),
    (INDICES, INDICES),
    (INDICES, slice(None), INDICES),
    (0, slice(None), INDICES),
    (INDICES, 0),
    (0, None, INDICES),
    (INDICES, None, INDICES),
    (None, INDICES, INDICES),
    (INDICES, ..., INDICES),
    [0, 1],
    [[0, 1], [1, 1]],
    (slice(None), [0, 2]),
    ([0, 1], [0, 2]),
    ([0, 1], [0, 1, 2]),
    True,
    False,
    (True, INDICES),
    (..., True),
    (slice(0, 1), INDICES, 0),
    (torch.tensor(1), INDICES),
    torch.tensor(-1),
    (slice(None), torch.tensor(0)),
    ([True, False],),
    ([True, True], slice(None), [0, 1]),
    "x",
    1.5,
    (slice(None), slice(1, 3), slice(None, None, 3)),
    torch.tensor([0, 1], dtype=torch.int32),
    torch.tensor([0.5]),
    (slice(1, 2), slice(None), torch.tensor([3, 0])),
]


def split_key(key):
    """The key with its tensors taken out, and how to put proxies back."""
    items = key if isinstance(key, tuple) else (key,)
    held = [k for k in items if isinstance(k, torch.Tensor)]

    def build(proxies):
        proxies = iter(proxies)
        built = tuple([next(proxies) if isinstance(k, torch.Tensor) else k for k in items])
        return built if isinstance(key, tuple) else built[0]

    return held, build


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_reads_at_keys_as_torch_does(key):
    held, build = split_key(key)
    assert_same(lambda x, *k: x[build(k)], lambda x, *k: x[build(k)], X, *held)


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("value", [7.0, torch.arange(1.0), "result", "leading"], ids=str)
def test_writes_at_keys_as_torch_does(key, value):
    held, build = split_key(key)
    if isinstance(value, str):
        try:
            like = X[key]
        except Exception:  # an error to be compared below
            like = X
        value = -torch.arange(float(like.numel())).reshape(like.shape) - 1
        indices = [k.unique() for k in held if k.dtype is torch.int64]
        if any(len(i) < 3 and k.ndim == 2 for i, k in zip(indices, held, strict=False)):
            value = torch.full_like(value, 3.0)  # indices repeat: which of different values wins is not said

    def theirs(x, v, *k):
        x = x.clone()
        x[build(k)] = v
        return x

    if isinstance(value, torch.Tensor):
        assert_same(lambda x, v, *k: lang.setitem(x, build(k), v), theirs, X, value, *held)
    else:
        assert_same(lambda x, *k: lang.setitem(x, build(k), value), lambda x, *k: theirs(x, value, *k), X, *held)


def test_writes_where_a_mask_holds():
    def theirs(x, m):
        x = x.clone()
        x[m] = 5
        return x

    assert_same(lambda x, m: lang.setitem(x, m, 5), theirs, X, X > 7)
    assert_same(lambda x, m: lang.setitem(x, m, 5), theirs, X, torch.tensor([True, False]))


T = torch.Tensor
V, M = torch.arange(3.0), torch.arange(6.0).reshape(2, 3)
CASES = [
    (lambda x: x.reshape(4, -1), None, X),
    (lambda x: x.reshape(5, -1), None, X),
    (lambda x: x.reshape((-1,)), None, X),
    (lambda x: x.reshape(24), None, X),
    (lambda x: x.reshape(-1, -1), None, X),
    (lambda x: x.reshape(7), None, X),
    (lambda x: x.permute(2, 0, 1), None, X),
    (lambda x: x.permute(0, 0, 1), None, X),
    (lambda x: x.permute(0, 1), None, X),
    (lambda x: x.transpose(0, -1), None, X),
    (lambda x: x.transpose(0, 3), None, X),
    (lambda x: x.mT, None, X),
    (lambda x: x.unsqueeze(-1), None, X),
    (lambda x: x.unsqueeze(4), None, X),
    (lambda x: x.unsqueeze(-5), None, X),
    (lambda x: x.unsqueeze(1).squeeze(), None, X),
    (lambda x: x.unsqueeze(1).squeeze(1), None, X),
    (lambda x: x.squeeze(1), None, X),
    (lambda x: x.unsqueeze(1).squeeze((0, 1)), None, X),
    (lambda x: x.squeeze(5), None, X),
    (lambda x: x.flatten(), None, X),
    (lambda x: x.flatten(1), None, X),
    (lambda x: x.flatten(0, 1), None, X),
    (lambda x: x.flatten(1, 0), None, X),
    (lambda x: x.unflatten(2, (2, -1)), None, X),
    (lambda x: x.unflatten(0, (3, 1)), None, X),
    (lambda x: x.expand(3, 2, 3, 4), None, X),
    (lambda x: x.expand(-1, 3, 4), None, X),
    (lambda x: x.expand(2, 3), None, X),
    (lambda x: x.expand(-1, 2, 3, 4), None, X),
    (lambda x: x.expand(2, 5, 4), None, X),
    (lambda x: x.movedim(0, 2), None, X),
    (lambda x: x.movedim((0, 1), (1, 2)), None, X),
    (lambda x: x.select(1, -1), None, X),
    (lambda x: x.select(0, 5), None, X),
    (lambda x: x.narrow(1, 1, 2), None, X),
    (lambda x: x.narrow(1, 1, 5), None, X),
    (lambda x: x.narrow(1, -1, 1), None, X),
    (lambda x: x.diagonal(), None, X),
    (lambda x: x.diagonal(1, 1, 2), None, X),
    (lambda x: x.diagonal(-1, 0, 2), None, X),
    (lambda x: x.diagonal(9), None, X),
    (lambda x: x.diagonal(-9), None, X),
    (lambda x: x.diagonal(0, 1, 1), None, X),
    (lambda x: x.unfold(2, 2, 1), None, X),
    (lambda x: x.unfold(2, 3, 2), None, X),
    (lambda x: x.split(2, 1), None, X),
    (lambda x: x.split([1, 2], 1), None, X),
    (lambda x: x.split([1, 1], 1), None, X),
    (lambda x: x.chunk(2, 1), None, X),
    (lambda x: x.chunk(5, 2), None, X),
    (lambda x: x.chunk(0, 2), None, X),
    (lambda x: x.tensor_split(3, 2), None, X),
    (lambda x: x.tensor_split((1, 3), 2), None, X),
    (lambda x: x.tensor_split((-1, 9), 2), None, X),
    (lambda x: x.unbind(1), None, X),
    (lambda x: x.flip(0, 2), None, X),
    (lambda x: x.flip((1,)), None, X),
    (lambda x: x.flip(1, 1), None, X),
    (lambda x: x.roll(1, 2), None, X),
    (lambda x: x.roll((1, -2), (0, 2)), None, X),
    (lambda x: x.roll(5), None, X),
    (lambda x: x.rot90(1, (0, 1)), None, X),
    (lambda x: x.rot90(2, (0, 1)), None, X),
    (lambda x: x.rot90(3, (1, 2)), None, X),
    (lambda x: x.rot90(-1, (1, 2)), None, X),
    (lambda x: x.repeat(2, 1, 3), None, X),
    (lambda x: x.repeat(2, 1, 1, 2), None, X),
    (lambda x: x.repeat(2), None, X),
    (lambda x: x.tile(2), None, X),
    (lambda x: x.tile(2, 1, 1, 2), None, X),
    (lambda x: x.repeat_interleave(2, 1), None, X),
    (lambda x: x.repeat_interleave(3), None, X),
    (lambda x: x.tril(), None, X),
    (lambda x: x.triu(1), None, X),
    (lambda x: x.tril(-1), None, X),
    (lambda x: x.tril(), None, V),
    (lambda x: x.clamp(2, 5), None, X),
    (lambda x: x.clamp(min=2.5), None, X),
    (lambda x: x.clamp(), None, X),
    (lambda x: x.clamp(0, 1.5), None, X.long()),
    (lambda x: x.masked_fill(x > 3, 0), None, X),
    (lambda x: x.masked_fill(x > 3, 1.5), None, X.long()),
    (lambda x: lang.pad(x, (1, 2)), lambda x: torch.nn.functional.pad(x, (1, 2)), X),
    (lambda x: lang.pad(x, (1, -2, 0, 1), 3.5), lambda x: torch.nn.functional.pad(x, (1, -2, 0, 1), value=3.5), X),
    (lambda x: lang.pad(x, (1,)), lambda x: torch.nn.functional.pad(x, (1,)), X),
    (lambda a, b: lang.cat((a, b)), lambda a, b: torch.cat((a, b)), X, X.long()),
    (lambda a, b: lang.cat((a, b), -1), lambda a, b: torch.cat((a, b), -1), X, X[:, :, :2]),
    (lambda a, b: lang.cat((a, b), 0), lambda a, b: torch.cat((a, b), 0), X, X[:, :, :2]),
    (lambda a, b: lang.cat((a, b), 0), lambda a, b: torch.cat((a, b), 0), X, torch.empty(0)),
    (lambda a, b: lang.cat((a, b), 0), lambda a, b: torch.cat((a, b), 0), X, V),
    (lambda: lang.cat(()), lambda: torch.cat(())),
    (lambda: lang.stack(()), lambda: torch.stack(())),
    (lambda a, b: lang.stack((a, b), -1), lambda a, b: torch.stack((a, b), -1), X, X.long()),
    (lambda a, b: lang.stack((a, b)), lambda a, b: torch.stack((a, b)), X, V),
    (lambda a, b: lang.hstack((a, b)), lambda a, b: torch.hstack((a, b)), V, V),
    (lambda a, b: lang.vstack((a, b)), lambda a, b: torch.vstack((a, b)), V, M),
    (lambda a, b: lang.dstack((a, b)), lambda a, b: torch.dstack((a, b)), V, V),
    (lambda a, b: lang.column_stack((a, b)), lambda a, b: torch.column_stack((a, b)), V, M.T.contiguous()),
    (lambda a, b: lang.meshgrid(a, b), lambda a, b: torch.meshgrid(a, b, indexing="ij"), V, V[:2]),
    (lambda a, b: lang.meshgrid(a, b, indexing="xy"), lambda a, b: torch.meshgrid(a, b, indexing="xy"), V, V[:2]),
    (lambda a, b: lang.where(a > 1, a, b), lambda a, b: torch.where(a > 1, a, b), V, M),
    (lambda a: lang.where(a > 1, 1.0, 0), lambda a: torch.where(a > 1, 1.0, 0), V),
    (lambda a: lang.where(a, 1.0, 0), lambda a: torch.where(a, 1.0, 0), V),
    (lambda a: lang.where(a > 1, a, 0.5), lambda a: torch.where(a > 1, a, 0.5), V.long()),
    (lambda a, b: lang.lerp(a, b, 0.5), lambda a, b: torch.lerp(a, b, 0.5), V, V + 1),
    (lambda a, b: lang.isclose(a, b), torch.isclose, V, V + 1e-9),
    (
        lambda a, b: lang.div(a, b, rounding_mode="trunc"),
        lambda a, b: torch.div(a, b, rounding_mode="trunc"),
        V - 5,
        V + 2,
    ),
    (
        lambda a, b: lang.div(a, b, rounding_mode="floor"),
        lambda a, b: torch.div(a, b, rounding_mode="floor"),
        V.long() - 5,
        V.long() + 2,
    ),
    (lambda a: lang.add(a, a, alpha=3), lambda a: torch.add(a, a, alpha=3), V),
    (lambda a, b: lang.ldexp(a, b), torch.ldexp, V, V.long()),
    (lambda x: x.round(decimals=1), None, X / 7),
    (lambda x: x.round(decimals=-1), None, X),
    (lambda: lang.arange(5), lambda: torch.arange(5)),
    (lambda: lang.arange(2, 9, 3), lambda: torch.arange(2, 9, 3)),
    (lambda: lang.arange(9, 2, -3), lambda: torch.arange(9, 2, -3)),
    (lambda: lang.arange(0, 1, 0.3), lambda: torch.arange(0, 1, 0.3)),
    (lambda: lang.arange(0, 5, -1), lambda: torch.arange(0, 5, -1)),
    (lambda: lang.arange(0, 5, 0), lambda: torch.arange(0, 5, 0)),
    (lambda: lang.linspace(0, 1, 7), lambda: torch.linspace(0, 1, 7)),
    (lambda: lang.linspace(3, -1, 1), lambda: torch.linspace(3, -1, 1)),
    (lambda: lang.linspace(3, -1, 0), lambda: torch.linspace(3, -1, 0)),
    (lambda: lang.logspace(0, 2, 3), lambda: torch.logspace(0, 2, 3)),
    (lambda: lang.eye(3, 2), lambda: torch.eye(3, 2)),
    (lambda: lang.full((2,), 1), lambda: torch.full((2,), 1)),
    (lambda: lang.full((2,), 1.5), lambda: torch.full((2,), 1.5)),
    (lambda: lang.full((2,), True), lambda: torch.full((2,), True)),
    (lambda: lang.zeros(2, 3), lambda: torch.zeros(2, 3)),
    (lambda: lang.ones((2, 3)), lambda: torch.ones((2, 3))),
    (lambda x: lang.full_like(x, 2.5), lambda x: torch.full_like(x, 2.5), V.long()),
    (lambda: lang.tensor([[1, 2], [3, 4]]), lambda: torch.tensor([[1, 2], [3, 4]])),
    (lambda: lang.tensor([1, 2.5]), lambda: torch.tensor([1, 2.5])),
    (lambda: lang.tensor(True), lambda: torch.tensor(True)),
    (lambda x: x.cumsum(1), None, X),
    (lambda x: x.cumsum(0), None, X > 3),
    (lambda x: x.cumprod(-1), None, X),
    (lambda x: x.cummax(1), None, X % 5),
    (lambda x: x.cummin(1), None, X % 5),
    (lambda x: x.logcumsumexp(1), None, X),
    (lambda x: x.cumsum(3), None, X),
    (lambda x: x.cumsum(0), None, torch.tensor(3)),
    (lambda x: x.sort(1, descending=True), None, X),
    (lambda x: x.argsort(-1), None, X),
    (lambda x: x.topk(2, 1), None, X),
    (lambda x: x.topk(2, 1, largest=False), None, X),
    (lambda x: x.topk(9, 1), None, X),
    (lambda o, v: lang.searchsorted(o, v), torch.searchsorted, V, M - 0.5),
    (lambda o, v: lang.searchsorted(o, v, right=True), lambda o, v: torch.searchsorted(o, v, right=True), V, V),
    (lambda x: x.softmax(1), None, X),
    (lambda x: x.log_softmax(-1), None, X),
    (lambda x: lang.softmax(x, 0, dtype=dtypes.float64), lambda x: x.softmax(0, dtype=torch.float64), V.long()),
    (lambda a, i: lang.gather(a, 0, i), lambda a, i: torch.gather(a, 0, i), M, torch.tensor([[0, 1, 0]])),
    (lambda a, i: lang.take(a, i), torch.take, M, torch.tensor([[0, -1]])),
    (lambda a, i: lang.index_select(a, 1, i), lambda a, i: torch.index_select(a, 1, i), M, torch.tensor([2, 0])),
    (lambda a, i: lang.index_select(a, 1, i), lambda a, i: torch.index_select(a, 1, i), M, torch.tensor([[2, 0]])),
    (
        lambda a, i, s: lang.index_add(a, 1, i, s, alpha=2),
        lambda a, i, s: torch.index_add(a, 1, i, s, alpha=2),
        M,
        torch.tensor([2, 2]),
        M[:, :2],
    ),
    (
        lambda a, i, s: lang.index_copy(a, 1, i, s),
        lambda a, i, s: torch.index_copy(a, 1, i, s),
        M,
        torch.tensor([2, 0]),
        M[:, :2],
    ),
    (
        lambda a, i, s: lang.scatter(a, 1, i, s),
        lambda a, i, s: torch.scatter(a, 1, i, s),
        M,
        torch.tensor([[2, 0], [1, 0]]),
        M,
    ),
    (lambda a, i: lang.scatter(a, 1, i, 9.0), lambda a, i: torch.scatter(a, 1, i, 9.0), M, torch.tensor([[2], [1]])),
    (
        lambda a, i, s: lang.scatter_add(a, 1, i, s),
        lambda a, i, s: torch.scatter_add(a, 1, i, s),
        M,
        torch.tensor([[2, 2], [1, 1]]),
        M,
    ),
    (lambda a, i: lang.take_along_dim(a, i, 1), lambda a, i: torch.take_along_dim(a, i, 1), M, torch.tensor([[2, 0]])),
    (
        lambda a, i, v: lang.index_put(a, (i,), v, True),
        lambda a, i, v: torch.index_put(a, (i,), v, True),
        M,
        torch.tensor([0, 0]),
        V,
    ),
    (
        lambda a, i, v: lang.index_put(a, (None, i), v),
        lambda a, i, v: a.clone().index_put((torch.tensor([[0], [1]]), i), v),
        M,
        torch.tensor([0, 2]),
        torch.tensor(1.0),
    ),
    (lambda a, b: lang.outer(a, b), torch.outer, V, V),
    (lambda a, b: lang.kron(a, b), torch.kron, M, V),
    (lambda a, b: lang.cross(a, b), torch.linalg.cross, V, M),
    (lambda a: lang.trace(a), torch.trace, M),
    (lambda a, b: lang.tensordot(a, b, 1), lambda a, b: torch.tensordot(a, b, 1), M, V),
    (
        lambda a, b: lang.tensordot(a, b, ((0, 2), (1, 0))),
        lambda a, b: torch.tensordot(a, b, ((0, 2), (1, 0))),
        X,
        torch.arange(8.0).reshape(4, 2),
    ),
    (lambda a, b: lang.inner(a, b), torch.inner, M, M),
    (lambda a, b: lang.vdot(a, b), torch.vdot, V + 1j, V + 2j),
    (lambda a, b: lang.vecdot(a, b), torch.linalg.vecdot, M, V),
    (lambda a, b: lang.bmm(a, b), torch.bmm, X, X),
    (lambda a, b: lang.mm(a, b), torch.mm, M, V),
    (lambda a, b: lang.linear(a, b), torch.nn.functional.linear, X, torch.arange(8.0).reshape(2, 4)),
]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_cases_match(number):
    ours, theirs, *args = CASES[number]
    assert_same(ours, theirs or ours, *args)


REDUCTIONS = [
    "sum",
    "prod",
    "mean",
    "amax",
    "amin",
    "argmax",
    "argmin",
    "all",
    "any",
    "var",
    "std",
    "logsumexp",
    "var_mean",
]


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("dim", [(), 0, -1, 3, (0, 2), (0, 0)], ids=str)
@pytest.mark.parametrize("keepdim", [False, True])
def test_reductions_match(name, dtype, dim, keepdim):
    if name in ("argmax", "argmin", "prod") and isinstance(dim, tuple) and dim:
        pytest.skip("PyTorch takes one dimension here")
    if name == "logsumexp" and dim == ():
        pytest.skip("PyTorch wants a dimension here")
    x = sample(dtype, (2, 3, 4))
    x = x * torch.arange(1, 25).reshape(2, 3, 4).to(dtype) if dtype not in (torch.bool, torch.uint8) else x
    if name in ("argmax", "argmin") and dtype in (torch.bool, torch.uint8, torch.int64):
        x = torch.arange(24).reshape(2, 3, 4).to(dtype)  # no two alike, or PyTorch picks any
    arguments = {} if dim == () else {"dim": dim, "keepdim": keepdim}
    assert_same(lambda x: getattr(lang, name)(x, **arguments), lambda x: getattr(torch, name)(x, **arguments), x)


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "argmax", "all", "any", "logsumexp"])
@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)], ids=str)
@pytest.mark.parametrize("dim", [None, 0, -1], ids=str)
def test_reductions_of_nothing_match(name, shape, dim):
    if dim is None and name in ("amax", "logsumexp"):
        pytest.skip("PyTorch wants a dimension here")
    arguments = {} if dim is None else {"dim": dim}
    assert_same(
        lambda x: getattr(lang, name)(x, **arguments),
        lambda x: getattr(torch, name)(x, **arguments),
        torch.empty(shape),
    )


@pytest.mark.parametrize("ord", [0, 1, 2, 3, 2.5, float("inf"), -float("inf"), -1])
@pytest.mark.parametrize("dim", [None, 1, (0, 2)], ids=str)
def test_norms_match(ord, dim):
    x = sample(torch.float32, (2, 3, 4)) + 0.5
    assert_same(lambda x: lang.norm(x, ord, dim), lambda x: torch.linalg.vector_norm(x, ord, dim), x)


SHAPES = [(3,), (4,), (2, 3), (3, 4), (5, 2, 3), (5, 3, 4), (1, 3, 4), (6, 1, 2, 3), (3, 1), (0, 3), (3, 0), ()]


@pytest.mark.parametrize("a", SHAPES, ids=str)
@pytest.mark.parametrize("b", SHAPES, ids=str)
def test_matmul_matches(a, b):
    assert_same(lang.matmul, torch.matmul, sample(torch.float32, a), sample(torch.float32, b))


EQUATIONS = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (3, 4)),
    ("ij->ji", (2, 3)),
    ("ii->i", (3, 3)),
    ("ii", (3, 3)),
    ("ij,kj->ik", (2, 3), (4, 3)),
    ("bij,bjk->bik", (5, 2, 3), (5, 3, 4)),
    ("i,j->ij", (2,), (3,)),
    ("ij->", (2, 3)),
    ("...ij,...jk->...ik", (5, 2, 3), (3, 4)),
    ("b...i,b...i->b...", (2, 4, 3), (2, 4, 3)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)),
    ("ij,ij->", (2, 3), (2, 3)),
    ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)),
    ("i,i->i", (3,), (3,)),
    ("ij,j->", (2, 3), (3,)),
    ("ij,jk->ki", (2, 1), (3, 4)),
    ("iij->j", (3, 3, 2)),
    ("a,ab,abc,c->", (2,), (2, 3), (2, 3, 4), (4,)),
    ("...->...", (2, 3)),
    ("ij,jk->ii", (2, 3), (3, 4)),
    ("ij,jk->il", (2, 3), (3, 4)),
    ("ij", (2,)),
    ("i1", (2, 3)),
    ("ij,jk", (2, 3)),
    ("ij,jk->ik", (2, 3), (4, 5)),
    (" ij , jk -> ik ", (2, 3), (3, 4)),
    ("...i->...", (2, 3)),
    ("i...->...", (2, 3)),
    ("Ab,bC->CA", (2, 3), (3, 4)),
]


@pytest.mark.parametrize("case", EQUATIONS, ids=str)
def test_einsum_matches(case):
    equation, *shapes = case
    args = [sample(torch.float32, shape, seed=i) for i, shape in enumerate(shapes)]
    assert_same(lambda *a: lang.einsum(equation, *a), lambda *a: torch.einsum(equation, *a), *args)
