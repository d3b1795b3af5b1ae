"""The executor of cuDNN."""

from __future__ import annotations

from thunder_executors import Declined, Implementation, OperatorExecutor
from thunder_executors_cudnn import running
from thunder_executors_cudnn._version import __version__
from thunder_executors_cudnn.availability import missing
from thunder_executors_cudnn.plans import Refused
from thunder_executors_cudnn.problems import Layout, Problem
from thunder_executors_cudnn.rules import why_not
from thunder_ir import BoundSymbol, Device, Symbol, TensorProxy
from thunder_ir.passes import is_random
from thunder_torch import to_torch_device

INSTALL = "pip install 'thunder-executors-cudnn[cudnn]'"


class CudnnExecutor(OperatorExecutor):
    """Runs attention and norms by cuDNN, dropout of attention included."""

    def __init__(self) -> None:
        super().__init__("cudnn", version=__version__, missing=missing, install=INSTALL, default=False, priority=20)
        self.careful = WithoutDraws(self)  # so that programs draw PyTorch's numbers where the user names no executor


class WithoutDraws(OperatorExecutor):
    """Another executor as far as it draws no random numbers, which would be others than PyTorch's for the same seed.

    Args:
        executor: the one that takes such calls, too.
    """

    def __init__(self, executor: OperatorExecutor) -> None:
        super().__init__(executor.name, version=executor.version, missing=executor.missing, default=False)
        self.executor = executor

    def implementations(self, symbol: Symbol) -> list[Implementation]:
        return self.executor.implementations(symbol)

    def find(self, bound: BoundSymbol) -> Implementation | Declined:
        if _draws(bound):
            return Declined("its random numbers are others than PyTorch's; it takes this where it is named")
        return self.executor.find(bound)


def _draws(bound: BoundSymbol) -> bool:
    return is_random(bound) or any([_draws(sub) for sub in bound.subsymbols])


executor = CudnnExecutor()


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
