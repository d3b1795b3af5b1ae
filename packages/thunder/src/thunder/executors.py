"""Executors at hand."""

from thunder_executors import Executor, get_all_executors, get_default_executors, get_executor
from thunder_executors_torch import executor as torch_executor

__all__ = [
    "get_all_executors", "get_default_executors", "get_executor", "get_nvfuser_executor", "get_torch_executor",
    "nvfuser_available", "torch_executor",
]  # fmt: skip


def get_torch_executor() -> Executor:
    """Return what runs operations by PyTorch."""
    return torch_executor


def get_nvfuser_executor() -> Executor | None:
    """Return the executor of nvFuser, or None where its package is not installed or it cannot run."""
    return get_executor("nvfuser") if nvfuser_available() else None


def nvfuser_available() -> bool:
    """Whether nvFuser can run here."""
    found = get_executor("nvfuser")
    return found is not None and found.missing() is None
