"""Promotion, operators and elementwise functions of the core language against PyTorch."""

import itertools
import operator

import pytest
import torch
from lang_against_torch import DTYPES, OURS, THEIRS, assert_same, sample

import thunder_lang as lang
from thunder_ir import Tensor


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
    if expected not in THEIRS:
        pytest.skip(f"{expected}, for which PyTorch has hardly any kernel, is no dtype of the language")
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
