"""Which executors are asked by default where there is a GPU: a table, with the measurement that each row follows.

An executor takes part if its package and its library are installed; others take part where they are named. So does
cuDNN: PyTorch's own choice of kernels for attention is the same there, at less cost for each call.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Row:
    """An executor that is asked by default.

    Args:
        executor: its name.
        least: the lowest compute capability, times ten, for which the measurement was made.
        follows: the measurement.
    """

    executor: str
    least: int
    follows: str


ON_CUDA = (
    Row(
        "inductor",
        90,
        "docs/gpu.md: steps of nanoGPT, two Llamas and a block were 0.78 to 1.03 times as long as eager PyTorch's on "
        "an H200; first steps of models 0.37 to 0.61 times as long as torch.compile's",
    ),
)
"""In the order in which they are asked, before all others."""


def on_cuda() -> tuple[str, ...]:
    """Return the names of executors that are asked by default on this machine's CUDA device; none without one.

    Example:
        >>> from thunder_executors_torch.by_device import on_cuda
        >>> set(on_cuda()) <= {"inductor"}
        True
    """
    if torch.version.hip is not None or not torch.cuda.is_available():
        return ()
    major, minor = torch.cuda.get_device_capability()
    return tuple([row.executor for row in ON_CUDA if major * 10 + minor >= row.least])


__all__ = ["ON_CUDA", "Row", "on_cuda"]
