"""Prims that draw random numbers, from the device's generator or, the ``philox`` ones, from an explicit seed."""

from __future__ import annotations

from typing import Any

from thunder_autograd import Replay
from thunder_ir import (
    AnyProxy,
    BoundSymbol,
    Device,
    DType,
    DTypeError,
    IntegerProxy,
    OpTags,
    Proxy,
    ShapeError,
    Symbol,
    TensorProxy,
    dtypes,
    number_proxy,
)
from thunder_ir.number_proxies import Dimension, Number
from thunder_prims.batching import batch_first, batches_elementwise
from thunder_prims.checks import FLOATING, check_accepts, check_device, check_integer, check_number, count
from thunder_prims.creation import created
from thunder_prims.prim import prim
from thunder_prims.shape import cat, reshape, slice
from thunder_vmap import batching_rule

__all__ = [
    "exchange_generator_states", "generator_states", "get_and_update_rng_state", "multinomial", "poisson", "randint",
    "randn", "randperm", "uniform", "uniform_philox",
]  # fmt: skip

RANDOM, CREATION, CONSTANT = OpTags.RANDOM, OpTags.CREATION, OpTags.CONSTANT_FOR_DERIVATIVE


def _drawn(operation: str, shape: tuple[Dimension, ...], dtype: DType, device: Device) -> TensorProxy:
    result = created(operation, shape, dtype, device)
    if not dtype.is_floating:
        raise DTypeError(f"{operation} of {dtype} needs a floating-point dtype")
    return result


@prim(RANDOM, CREATION, CONSTANT)
def uniform(shape: tuple[Dimension, ...], low: Number, high: Number, dtype: DType, device: Device) -> TensorProxy:
    """Draw from the uniform distribution on ``[low, high)``.

    Args:
        shape: of the result.
        low, high: numbers that are not complex.
        dtype: floating-point.
        device: where the result lives, and whose generator is used.
    """
    result = _drawn("uniform", shape, dtype, device)
    check_number("uniform", low, dtype)
    check_number("uniform", high, dtype)
    return result


@prim(CREATION, CONSTANT)
def uniform_philox(
    shape: tuple[Dimension, ...],
    low: Number,
    high: Number,
    dtype: DType,
    device: Device,
    seed: Dimension | TensorProxy,
    offset: Dimension | TensorProxy,
) -> TensorProxy:
    """Draw from the uniform distribution on ``[low, high)`` as ``seed`` and ``offset`` say: the same ones each time.

    Args:
        shape: of the result.
        low, high: numbers that are not complex.
        dtype: floating-point.
        device: where the result lives.
        seed, offset: state of a Philox generator, each an integer or an ``int64`` tensor of one element.

    Source:
        J. Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (2011).
    """
    result = _drawn("uniform_philox", shape, dtype, device)
    check_number("uniform_philox", low, dtype)
    check_number("uniform_philox", high, dtype)
    _check_state("uniform_philox", seed, "seed")
    _check_state("uniform_philox", offset, "offset")
    return result


def _check_state(operation: str, value: Dimension | TensorProxy, argument: str) -> None:
    if not isinstance(value, TensorProxy):
        check_integer(operation, value, argument)
    elif value.dtype is not dtypes.int64 or value.numel != 1:
        raise DTypeError(f"{operation} needs an int64 tensor of one element as {argument}, got {value.type_string}")


@prim(RANDOM, CREATION, CONSTANT)
def randn(shape: tuple[Dimension, ...], dtype: DType, device: Device) -> TensorProxy:
    """Draw from the normal distribution of mean 0 and variance 1.

    Args:
        shape: of the result.
        dtype: floating-point, or complex: then each part has variance 1/2.
        device: where the result lives, and whose generator is used.
    """
    result = created("randn", shape, dtype, device)
    if not dtype.is_inexact:
        raise DTypeError(f"randn of {dtype} needs a floating-point or complex dtype")
    return result


@prim(RANDOM, CREATION, CONSTANT)
def randint(shape: tuple[Dimension, ...], low: Dimension, high: Dimension, dtype: DType, device: Device) -> TensorProxy:
    """Draw integers from ``low`` to ``high - 1``, each as likely.

    Args:
        shape: of the result.
        low, high: ``low < high``.
        dtype: integer or floating-point.
        device: where the result lives, and whose generator is used.

    Raises:
        ShapeError: there is no integer to draw, or a size is negative.
    """
    result = created("randint", shape, dtype, device)
    check_integer("randint", low, "low")
    check_integer("randint", high, "high")
    if not (dtype.is_integer or dtype.is_floating):
        raise DTypeError(f"randint of {dtype} needs an integer or floating-point dtype")
    if low >= high:
        raise ShapeError(f"randint needs low < high, got {low} and {high}")
    return result


@prim(RANDOM, CREATION, CONSTANT)
def randperm(length: Dimension, dtype: DType, device: Device) -> TensorProxy:
    """Draw an order of ``0..length-1``, each as likely.

    Returns:
        shape ``(length,)``.
    """
    check_integer("randperm", length, "length")
    result = created("randperm", (length,), dtype, device)
    if not (dtype.is_integer or dtype.is_floating):
        raise DTypeError(f"randperm of {dtype} needs an integer or floating-point dtype")
    return result


@prim(RANDOM, CONSTANT, OpTags.MAY_FAIL)
def multinomial(a: TensorProxy, samples: Dimension, replacement: bool) -> TensorProxy:
    """Draw indices with probabilities in proportion to weights.

    Args:
        a: weights, not negative, shape ``(n,)`` or ``(m, n)``, floating-point.
        samples: how many to draw (from each row).
        replacement: whether an index can be drawn twice.

    Returns:
        shape ``(samples,)`` or ``(m, samples)``, ``int64``.

    Raises:
        ShapeError: ``a`` has another number of dimensions, or there are fewer weights than samples to draw without
            replacement, or less than one sample is wanted.
    """
    check_accepts("multinomial", a, FLOATING)
    check_integer("multinomial", samples, "samples")
    if a.ndim not in (1, 2):
        raise ShapeError(f"multinomial of {a.type_string} needs one or two dimensions")
    if samples < 1 or (not replacement and samples > a.shape[-1]):
        raise ShapeError(
            f"multinomial of {a.type_string} cannot draw {samples} samples {'with' if replacement else 'without'} "
            "replacement"
        )
    return a.like(shape=(*a.shape[:-1], samples), dtype=dtypes.int64)


@prim(RANDOM, CONSTANT)
def poisson(a: TensorProxy) -> TensorProxy:
    """Draw from the Poisson distributions with means ``a``, in the floating-point dtype of ``a``."""
    check_accepts("poisson", a, FLOATING)
    return a.like(requires_grad=False)


@prim(RANDOM, CONSTANT, OpTags.DONT_DCE)
def get_and_update_rng_state(
    seed: Dimension | None, offset: Dimension | None, device: Device
) -> tuple[IntegerProxy, IntegerProxy]:
    """Read the state of the device's generator, or move it on.

    Args:
        seed, offset: a state that was read, after which the generator is set to that seed and the next offset;
            both ``None`` to read the state.
        device: whose generator.

    Returns:
        seed and offset of the generator, after it was set if it was.

    Raises:
        TypeError: only one of ``seed`` and ``offset`` is given.
    """
    check_device("get_and_update_rng_state", device)
    if (seed is None) != (offset is None):
        raise TypeError("get_and_update_rng_state needs both seed and offset, or neither")
    return number_proxy(0), number_proxy(0)  # type: ignore[return-value]


@prim(RANDOM, CONSTANT)
def generator_states(devices: tuple[str, ...]) -> AnyProxy:
    """Read the states of the default generators of devices, such as ``("cpu",)``."""
    return AnyProxy()


@prim(RANDOM, CONSTANT, OpTags.DONT_DCE)
def exchange_generator_states(devices: tuple[str, ...], states: AnyProxy) -> AnyProxy:
    """Set the default generators of devices to states that were read, and return the states before."""
    return AnyProxy()


def generators_of(bound: BoundSymbol) -> tuple[str, ...] | None:
    """Return the devices from whose default generators a call may draw: the CPU, and its tensors'.

    ``None`` if it may draw from others, because something other than values, numbers and names is passed to it.
    """
    if not _is_plain((bound.args, bound.kwargs)):
        return None
    devices = {str(p.device) for p in (*bound.inputs, *bound.outputs) if isinstance(p, TensorProxy)}
    return ("cpu", *sorted(devices - {"cpu"}))


def _is_plain(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return all([_is_plain(item) for item in value])
    if isinstance(value, dict):
        return all([_is_plain(item) for item in value.values()])
    return value is None or isinstance(value, (Proxy, bool, int, float, complex, str, DType, Device))


replay = Replay(generators_of, generator_states, exchange_generator_states)
"""How derivatives draw the same random numbers again."""


def _draws_apart(symbol: Symbol) -> None:
    """Give a prim whose first argument is a shape its batching rule: each of the batch draws its own numbers."""

    def rule(size: Dimension, args: Any, dims: Any) -> tuple[TensorProxy, int]:
        shape, *rest = args
        return symbol((size, *shape), *rest), 0

    rule.__name__ = rule.__qualname__ = f"{symbol.name}_batching"
    rule.__doc__ = "Each of the batch draws its own numbers."
    batching_rule(symbol)(rule)


_draws_apart(uniform)
_draws_apart(randn)
_draws_apart(randint)
batches_elementwise(poisson)


@batching_rule(uniform_philox)
def uniform_philox_batching(size: int, args: Any, dims: Any) -> tuple[TensorProxy, int]:
    """One drawing for each state in the batch."""
    *rest, seed, offset = args
    seeds, offsets = _states(seed, dims[-2], size), _states(offset, dims[-1], size)
    drawn = [uniform_philox(*rest, s, o) for s, o in zip(seeds, offsets, strict=True)]
    return cat(tuple([reshape(d, (1, *d.shape)) for d in drawn]), 0), 0


def _states(state: Any, batch: int | None, size: int) -> list[Any]:
    """The state of each of the batch."""
    if batch is None:
        return [state] * size
    first = batch_first(state, batch, size)
    each = first.shape[1:]
    return [reshape(slice(first, (i, *[0] * len(each)), (i + 1, *each)), each) for i in range(size)]


@batching_rule(multinomial)
def multinomial_batching(size: Dimension, args: Any, dims: Any) -> tuple[TensorProxy, int]:
    """Each of the batch draws its own indices: all are rows of one matrix."""
    (a, samples, replacement), (batch, *_) = args, dims
    weights = batch_first(a, batch, size)
    rows, length = weights.shape[:-1], weights.shape[-1]
    drawn = multinomial(reshape(weights, (count(rows), length)), samples, replacement)
    return reshape(drawn, (*rows, samples)), 0


@batching_rule(randperm)
def randperm_batching(size: int, args: Any, dims: Any) -> tuple[TensorProxy, int]:
    """Each of the batch draws its own order."""
    drawn = [randperm(*args) for _ in range(size)]
    return cat(tuple([reshape(d, (1, *d.shape)) for d in drawn]), 0), 0
