"""The executor of Apex's extensions."""

from __future__ import annotations

from typing import Any

from thunder_executors import Declined, Library, OperatorExecutor, takes_dtypes, takes_tensors
from thunder_executors_apex._version import __version__
from thunder_executors_apex.availability import missing
from thunder_ir import DType

executor = OperatorExecutor(
    "apex",
    version=__version__,
    missing=missing,
    install="pip install --no-build-isolation git+https://github.com/NVIDIA/apex, with APEX_XENTROPY=1 APEX_CUDA_EXT=1",
    default=False,
    priority=12,
)
DEVICES = ["cuda"]
"""Types of devices whose tensors are taken."""


def takes(library: Library, dtypes: tuple[DType, ...], first: Any, *others: Any) -> bool | Declined:
    """Whether an extension is there, and takes these tensors: of one dtype, and not empty."""
    absent = library.missing()
    if absent is not None:
        return Declined(absent)
    answer = takes_tensors(first, *others, on=DEVICES) and takes_dtypes(first, of=dtypes)
    if not answer:
        return answer
    if any([t is not None and t.dtype is not first.dtype for t in others]):
        return Declined("its tensors are of one dtype")
    return Declined("it takes no empty tensors") if 0 in first.shape else True


__all__ = ["DEVICES", "executor", "takes"]
