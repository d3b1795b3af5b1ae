"""What functions of the core language return, beside what PyTorch returns: shapes, dtypes and values, or errors."""

import numpy as np
import pytest
import torch

import thunder_lang as lang
from thunder_ir import DTypeError, Tensor, TensorProxy, dtypes, trace_of
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
        if kind is TypeError and "does not support complex" in str(error):
            kind = DTypeError  # a RuntimeError, as other versions of PyTorch have it
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
