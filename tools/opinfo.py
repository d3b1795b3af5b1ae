"""PyTorch's own database of operations, as the sweeps over it read it, and what they compare with eager execution."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.testing._internal import common_methods_invocations
from torch.testing._internal.common_methods_invocations import op_db

import thunder_torch as ltorch
from thunder_ir import TensorProxy, Trace, record
from thunder_torch.specs import map_tensors

# The database seeds the generator inside many operations; here both sides are seeded before them.
common_methods_invocations.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)
LOOSE = {"rtol": 1e-3, "atol": 1e-3}  # of float32 through other arithmetic


def chosen(names: list[str]) -> list[Any]:
    """Return the operations of these names, in order; all if there are none."""
    return [op for op in op_db if not names or op.name in names or named(op) in names]


def named(op: Any) -> str:
    """Return an operation's name with its variant."""
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def proxies_of(args: Any, kwargs: Any) -> tuple[Any, Any, list[TensorProxy], list[torch.Tensor]]:
    """Return the arguments with a named proxy for each tensor, these proxies, and the tensors."""
    proxies: list[TensorProxy] = []
    tensors: list[torch.Tensor] = []

    def stand_in(tensor: torch.Tensor) -> TensorProxy:
        proxies.append(ltorch.proxy_of(tensor, f"a{len(proxies)}"))
        tensors.append(tensor)
        return proxies[-1]

    return map_tensors(stand_in, args), map_tensors(stand_in, kwargs), proxies, tensors


def traced(function: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Trace, list[torch.Tensor]]:
    """Record one call; return the trace and the tensors that it takes."""
    given, named_, proxies, tensors = proxies_of(args, kwargs)
    trace = record(lambda *_: ltorch.call(function, given, named_), proxies, language=ltorch.torch_language)
    return trace, tensors


def copied(value: Any) -> Any:
    """Return arguments with tensors copied, strides kept."""

    def copy(tensor: torch.Tensor) -> torch.Tensor:
        detached = tensor.detach()
        if detached.layout is not torch.strided or detached.is_contiguous():
            return detached.clone().requires_grad_(tensor.requires_grad)
        fresh = torch.empty_strided(detached.shape, detached.stride(), dtype=detached.dtype, device=detached.device)
        if any(s == 0 for s in detached.stride()):
            return detached.clone().expand_as(detached).requires_grad_(tensor.requires_grad)
        return fresh.copy_(detached).requires_grad_(tensor.requires_grad)

    return map_tensors(copy, value)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep warnings and output of operations to themselves."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def difference(expected: Any, actual: Any, exact: bool) -> str:
    """Return how two results differ, or ``""``."""
    if isinstance(expected, torch.Tensor) and isinstance(actual, torch.Tensor):
        if expected.dtype != actual.dtype or expected.shape != actual.shape:
            return f"{actual.dtype}{tuple(actual.shape)} for {expected.dtype}{tuple(expected.shape)}"
        if exact and expected.layout is torch.strided and expected.stride() != actual.stride():
            return f"strides {actual.stride()} for {expected.stride()}"
        try:
            kind = {} if exact or not expected.dtype.is_floating_point or expected.itemsize == 1 else LOOSE
            torch.testing.assert_close(actual, expected, equal_nan=True, check_stride=False, **kind)
        except AssertionError as error:
            return str(error).replace("\n", " ")
        return ""
    if isinstance(expected, (tuple, list)) and isinstance(actual, (tuple, list)):
        if len(expected) != len(actual):
            return f"{len(actual)} items for {len(expected)}"
        return next((d for e, a in zip(expected, actual, strict=True) if (d := difference(e, a, exact))), "")
    return "" if expected == actual or expected is actual else f"{actual!r} for {expected!r}"
