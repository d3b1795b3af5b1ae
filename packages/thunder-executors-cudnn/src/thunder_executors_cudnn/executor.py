"""The executor of cuDNN."""

from __future__ import annotations

from thunder_executors import Declined, OperatorExecutor
from thunder_executors_cudnn import running
from thunder_executors_cudnn._version import __version__
from thunder_executors_cudnn.availability import missing
from thunder_executors_cudnn.plans import Refused
from thunder_executors_cudnn.problems import Layout, Problem
from thunder_executors_cudnn.rules import why_not
from thunder_ir import Device, TensorProxy
from thunder_torch import to_torch_device

executor = OperatorExecutor(
    "cudnn",
    version=__version__,
    missing=missing,
    install="pip install 'thunder-executors-cudnn[cudnn]'",
    default=False,
    priority=20,
)


def takes(problem: Problem, device: Device) -> bool | Declined:
    """Whether a problem is run here: by what is known of the library, then by itself, whose plan is kept."""
    where = to_torch_device(device)
    reason = why_not(problem, running.machine.target(where).capability)
    if reason is not None:
        return Declined(reason.text)
    answer = running.machine.answer(problem, where)
    return Declined(f"cuDNN makes no plan: {answer.reason}") if isinstance(answer, Refused) else True


def layout_of(tensor: TensorProxy) -> Layout:
    """Return how a tensor is laid out, as far as is known while the program is compiled: densely, if nothing is."""
    shape = tuple([int(size) for size in tensor.shape])
    if tensor.strides is None or not all([type(s) is int for s in tensor.strides]):
        return Layout.dense(shape, tensor.dtype.name)
    return Layout(shape, tuple([int(s) for s in tensor.strides]), tensor.dtype.name)


__all__ = ["executor", "layout_of", "takes"]
