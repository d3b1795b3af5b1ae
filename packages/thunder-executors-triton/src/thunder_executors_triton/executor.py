"""The executor of Triton's kernels."""

from __future__ import annotations

from thunder_executors import Declined, OperatorExecutor, takes_dtypes, takes_tensors
from thunder_executors_triton._version import __version__
from thunder_executors_triton.availability import interpreted, missing
from thunder_ir import TensorProxy, dtypes

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
    """Whether kernels take these tensors: where they are, with which sizes."""
    return takes_tensors(*tensors, on=("cuda", "cpu") if interpreted() else ("cuda",))


def floating(*tensors: TensorProxy | None) -> bool | Declined:
    """Whether these are of dtypes that kernels compute with, in float32."""
    return takes_dtypes(*tensors, of=FLOATS)
