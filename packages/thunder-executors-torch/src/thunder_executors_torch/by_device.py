"""Which executors are asked by default where there is a GPU: a table, with the measurement that each row follows.

A row stands on what is published of the library that the executor calls, until it was measured here alone. An executor
takes part if its package and its library are installed; others take part where somebody names them. So does nvFuser: in
the times of models in ``docs/gpu.md``, with it and cuDNN, three of four were longer than eager's.
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
        "cudnn",
        90,
        "PyTorch 2.5's release: attention by cuDNN on an H100, up to 75% faster than by FlashAttention 2 "
        "(https://pytorch.org/blog/pytorch2-5)",
    ),
)
"""In the order in which they are asked, before all others."""


def on_cuda() -> tuple[str, ...]:
    """Return the names of executors that are asked by default on this machine's CUDA device; none without one.

    Example:
        >>> from thunder_executors_torch.by_device import on_cuda
        >>> set(on_cuda()) <= {"cudnn"}
        True
    """
    if torch.version.hip is not None or not torch.cuda.is_available():
        return ()
    major, minor = torch.cuda.get_device_capability()
    return tuple([row.executor for row in ON_CUDA if major * 10 + minor >= row.least])


__all__ = ["ON_CUDA", "Row", "on_cuda"]
