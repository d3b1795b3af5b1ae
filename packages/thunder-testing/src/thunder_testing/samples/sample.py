"""What a sample is, and the table of samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from thunder_ir import Device, RuleTable, Symbol, Tensor, Trace, devices, trace_of
from thunder_ir.proxies import Proxy
from thunder_testing.reference import dtype_of

__all__ = ["Sample", "samples", "samples_of"]


@dataclass(frozen=True, slots=True)
class Sample:
    """Arguments of one call of an operation, with NumPy arrays for tensors.

    Args:
        args: positional arguments; arrays may stand in tuples and lists.
        kwargs: keyword arguments.
        exact: whether results must agree to the bit rather than up to rounding.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    exact: bool = False

    @property
    def arrays(self) -> list[Any]:
        """The arrays among the arguments, in order."""
        return list(_arrays((self.args, self.kwargs)))

    def trace(self, symbol: Callable[..., Any], device: Device = devices.cpu) -> Trace:
        """Return the program that makes the call; its inputs are the arrays."""
        examples = [Tensor(a.shape, dtype_of(a), device) for a in self.arrays]

        def program(*tensors: Proxy) -> Any:
            remaining = iter(tensors)
            args, kwargs = _with_tensors((self.args, self.kwargs), remaining, device)
            return symbol(*args, **kwargs)

        return trace_of(program, *examples)

    def __str__(self) -> str:
        return ", ".join([_shown(a) for a in self.args] + [f"{k}={_shown(v)}" for k, v in self.kwargs.items()])


def _arrays(value: Any) -> Iterator[Any]:
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _arrays(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _arrays(item)


def _with_tensors(value: Any, tensors: Iterator[Any], device: Device) -> Any:
    """The arguments with tensors for arrays; and with ``device`` where a sample says the CPU."""
    if isinstance(value, np.ndarray):
        return next(tensors)
    if isinstance(value, (tuple, list)):
        return type(value)([_with_tensors(item, tensors, device) for item in value])
    if isinstance(value, dict):
        return {key: _with_tensors(item, tensors, device) for key, item in value.items()}
    return device if isinstance(value, Device) else value


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, (tuple, list)):
        return f"({', '.join([_shown(v) for v in value])})"
    return repr(value)


samples: RuleTable[Symbol, Callable[[], Iterable[Sample]]] = RuleTable("sample", "@samples")
"""For each operation, a function that returns its samples."""


def samples_of(symbol: Symbol) -> list[Sample]:
    """Return the samples of an operation.

    Raises:
        MissingRuleError: there are none.
    """
    return list(samples[symbol]())
