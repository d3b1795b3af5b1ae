"""The executor of Triton's kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from thunder_executors import Declined, OperatorExecutor
from thunder_executors_triton._version import __version__
from thunder_executors_triton.availability import interpreted, missing
from thunder_ir import TensorProxy, dtypes
from thunder_torch import find_symbol

executor = OperatorExecutor(
    "triton",
    version=__version__,
    missing=missing,
    install="pip install 'thunder-executors-triton[triton]'",
    default=False,
    priority=10,
)
FLOATS = (dtypes.float32, dtypes.float16, dtypes.bfloat16)
LONGEST = 16_384  # elements of a row, which a program holds in registers


def fits(*tensors: TensorProxy | None) -> bool | Declined:
    """Whether kernels take these tensors: where they are, of which dtype, with which sizes."""
    for tensor in tensors:
        if tensor is None:
            continue
        if not isinstance(tensor, TensorProxy):
            return Declined(f"it takes tensors, not {type(tensor).__name__}")
        if tensor.device.type != "cuda" and not (interpreted() and tensor.device.type == "cpu"):
            return Declined(f"its kernels run on CUDA devices, not on {tensor.device}")
        if not all(type(size) is int for size in tensor.shape):
            return Declined("a size is known only when the program runs")
    return True


def floating(*tensors: TensorProxy | None) -> bool | Declined:
    """Whether these are of dtypes that kernels compute with, in float32."""
    for tensor in tensors:
        if tensor is not None and tensor.dtype not in FLOATS:
            return Declined(f"it takes {', '.join(d.name for d in FLOATS)}, not {tensor.dtype.name}")
    return True


def runs_by(
    function: Callable[..., Any],
    rule: Callable[..., tuple[Any, Any]],
    takes: Callable[..., Any],
    alone: Callable[..., Any] | None = None,
) -> None:
    """Let the calls of a function of PyTorch that ``takes`` says yes to be what ``rule`` records, derivative included.

    Args:
        function: of PyTorch.
        rule: takes its arguments, returns the output and the pullback.
        takes: takes its arguments, says whether a kernel runs the call.
        alone: records the output where no derivative is asked for; what ``rule`` records, if not given.
    """
    symbol = find_symbol(function)
    if symbol is None:
        raise LookupError(f"the torch language has no symbol for {function}")

    def without_pullback(*args: Any, **kwargs: Any) -> Any:
        return rule(*args, **kwargs)[0]

    executor.register_implementation(symbol, execution_transform=alone or without_pullback, checker=takes)
    executor.differentiates(symbol)(rule)
