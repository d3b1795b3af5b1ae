"""Executors at hand."""

from thunder_executors import get_all_executors, get_default_executors, get_executor
from thunder_executors_torch import executor as torch_executor

__all__ = ["get_all_executors", "get_default_executors", "get_executor", "torch_executor"]
