"""Random tensors."""

from __future__ import annotations

from typing import Any

import thunder_prims as prims
from thunder_ir import Device, DType, DTypeError, ShapeError, TensorProxy, devices, dtypes
from thunder_lang.dims import as_tensor, need_tensor, spread
from thunder_lang.elementwise_binary import add, mul
from thunder_lang.language import core
from thunder_lang.operands import convert
from thunder_lang.promotion import get_default_dtype

__all__ = [
    "bernoulli", "exponential", "multinomial", "normal", "poisson", "rand", "rand_like", "randint", "randint_like",
    "randn", "randn_like", "randperm", "uniform",
]  # fmt: skip


def uniform(
    shape: Any, low: Any = 0.0, high: Any = 1.0, *, dtype: DType | None = None, device: Device = devices.cpu
) -> TensorProxy:
    """Draw from the uniform distribution on ``[low, high)``."""
    dtype = dtype if dtype is not None else get_default_dtype()
    return as_tensor(prims.uniform(tuple(shape), float(low), float(high), dtype, device))


def rand(*shape: Any, dtype: DType | None = None, device: Device = devices.cpu) -> TensorProxy:
    """Draw from the uniform distribution on ``[0, 1)``."""
    return uniform(spread(shape), dtype=dtype, device=device)


def rand_like(a: TensorProxy, dtype: DType | None = None, device: Device | None = None) -> TensorProxy:
    """Draw from the uniform distribution on ``[0, 1)``, in the shape of ``a``."""
    return uniform(a.shape, dtype=a.dtype if dtype is None else dtype, device=a.device if device is None else device)


def randn(*shape: Any, dtype: DType | None = None, device: Device = devices.cpu) -> TensorProxy:
    """Draw from the normal distribution of mean 0 and variance 1."""
    return as_tensor(prims.randn(spread(shape), dtype if dtype is not None else get_default_dtype(), device))


def randn_like(a: TensorProxy, dtype: DType | None = None, device: Device | None = None) -> TensorProxy:
    """Draw from the normal distribution of mean 0 and variance 1, in the shape of ``a``."""
    return randn(a.shape, dtype=a.dtype if dtype is None else dtype, device=a.device if device is None else device)


def normal(
    mean: Any, std: Any, shape: Any = None, *, dtype: DType | None = None, device: Device = devices.cpu
) -> TensorProxy:
    """Draw from normal distributions.

    Args:
        mean, std: tensors, or numbers.
        shape: of the result, where both are numbers.
        dtype, device: of the result, where both are numbers.

    Raises:
        ShapeError: neither a tensor nor a shape says what to draw.
    """
    like = next((x for x in (mean, std) if isinstance(x, TensorProxy)), None)
    if like is None:
        if shape is None:
            raise ShapeError("normal needs a shape where mean and std are numbers")
        return add(mul(randn(shape, dtype=dtype, device=device), std), mean)  # type: ignore[no-any-return]
    whole = like if like is std or not isinstance(std, TensorProxy) else add(mean, std)
    return add(mul(randn_like(whole), std), mean)  # type: ignore[no-any-return]


def randint(
    low: Any, high: Any, shape: Any, *, dtype: DType = dtypes.int64, device: Device = devices.cpu
) -> TensorProxy:
    """Draw integers from ``low`` to ``high - 1``."""
    return as_tensor(prims.randint(tuple(shape), low, high, dtype, device))


def randint_like(
    a: TensorProxy, low: Any, high: Any, dtype: DType | None = None, device: Device | None = None
) -> TensorProxy:
    """Draw integers from ``low`` to ``high - 1``, in the shape of ``a``."""
    dtype, device = a.dtype if dtype is None else dtype, a.device if device is None else device
    return randint(low, high, a.shape, dtype=dtype, device=device)


def randperm(n: Any, *, dtype: DType = dtypes.int64, device: Device = devices.cpu) -> TensorProxy:
    """Draw an order of ``0..n-1``."""
    return as_tensor(prims.randperm(n, dtype, device))


@core.method("bernoulli")
def bernoulli(a: TensorProxy, p: float | None = None) -> TensorProxy:
    """Draw zeros and ones in the dtype of ``a``.

    Args:
        a: the probabilities of ones, or where ``p`` is given, what the result is like.
        p: the probability of a one.

    Raises:
        DTypeError: ``a`` holds the probabilities and is not floating-point.
        ShapeError: ``p`` is no probability.
    """
    a = need_tensor("bernoulli", a)
    if p is None:
        if not a.dtype.is_floating:
            raise DTypeError(f"bernoulli needs probabilities of a floating-point dtype, got {a.type_string}")
        return as_tensor(convert(prims.lt(uniform(a.shape, dtype=a.dtype, device=a.device), a), a.dtype))
    if not 0 <= p <= 1:
        raise ShapeError(f"bernoulli needs a probability p between 0 and 1, got {p}")
    drawn = uniform(a.shape, dtype=a.dtype if a.dtype.is_floating else get_default_dtype(), device=a.device)
    return as_tensor(convert(prims.lt(drawn, p), a.dtype))


@core.method("exponential")
def exponential(a: TensorProxy, rate: float = 1.0) -> TensorProxy:
    """Draw from the exponential distribution, in the shape and dtype of ``a``.

    Raises:
        ShapeError: ``rate`` is not positive.
    """
    if rate <= 0:
        raise ShapeError(f"exponential needs a positive rate, got {rate}")
    drawn = rand_like(need_tensor("exponential", a))
    return as_tensor(prims.div(prims.neg(prims.log1p(prims.neg(drawn))), rate))


@core.method("multinomial")
def multinomial(a: TensorProxy, num_samples: int, replacement: bool = False) -> TensorProxy:
    """Draw indices with probabilities in proportion to the weights ``a``."""
    return as_tensor(prims.multinomial(need_tensor("multinomial", a), num_samples, replacement))


def poisson(a: TensorProxy) -> TensorProxy:
    """Draw from the Poisson distributions with means ``a``."""
    return as_tensor(prims.poisson(need_tensor("poisson", a)))
