"""Whether what runs programs agrees with the reference: for executors, ours and others'."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from thunder_ir import Device, Symbol, Trace, devices
from thunder_testing.reference import run_reference
from thunder_testing.samples import Sample, samples, samples_of

__all__ = ["check_conformance", "check_sample", "sampled_symbols"]

TOLERANCES = {"float16": 1e-2, "float32": 1e-4, "complex64": 1e-4}


def sampled_symbols() -> list[Symbol]:
    """Return the operations that there are samples of, in the order of their names."""
    return sorted(samples, key=lambda symbol: symbol.id)


def check_conformance(
    symbol: Symbol,
    compile: Callable[[Trace], Callable[..., Any]],
    to_device: Callable[[Any], Any] = lambda array: array,
    to_numpy: Callable[[Any], Any] = np.asarray,
    device: Device = devices.cpu,
) -> int:
    """Check an operation on all of its samples, and return how many there are.

    Args:
        symbol: the operation.
        compile: from a trace to the function that runs it.
        to_device: from a NumPy array to what that function takes.
        to_numpy: from what it returns to a NumPy array.
        device: where the tensors of the trace live.

    Raises:
        AssertionError: a result differs from the reference; the message names the sample.

    Example:
        >>> import thunder_prims as prims
        >>> from thunder_testing import check_conformance, run_reference
        >>> check_conformance(prims.tanh, lambda trace: lambda *arrays: run_reference(trace, *arrays))
        8
    """
    found = samples_of(symbol)
    for sample in found:
        check_sample(symbol, sample, compile, to_device, to_numpy, device)
    return len(found)


def check_sample(
    symbol: Symbol,
    sample: Sample,
    compile: Callable[[Trace], Callable[..., Any]],
    to_device: Callable[[Any], Any],
    to_numpy: Callable[[Any], Any],
    device: Device,
) -> None:
    """Check an operation on one sample; arguments as for :func:`check_conformance`."""
    trace = sample.trace(symbol, device)
    expected = run_reference(trace, *sample.arrays)
    made = compile(trace)(*[to_device(array) for array in sample.arrays])
    wanted, got = (x if isinstance(x, (tuple, list)) else (x,) for x in (expected, made))
    what = f"{symbol.id}({sample})"
    assert len(wanted) == len(got), f"{what} returned {len(got)} results for {len(wanted)}"
    for want, have in zip(wanted, got, strict=True):
        array = to_numpy(have)
        assert array.dtype == want.dtype, f"{what} returned {array.dtype} for {want.dtype}"
        assert array.shape == want.shape, f"{what} returned shape {array.shape} for {want.shape}"
        tolerance = 0.0 if sample.exact else TOLERANCES.get(want.dtype.name, 1e-7)
        np.testing.assert_allclose(array, want, rtol=tolerance, atol=tolerance, err_msg=what)
