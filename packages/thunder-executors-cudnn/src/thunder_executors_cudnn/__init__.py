"""Attention and norms by graphs of cuDNN, and the executor that asks for them. Imports no cuDNN by itself."""

from thunder_executors_cudnn import attention, functions, normalization
from thunder_executors_cudnn._version import __version__
from thunder_executors_cudnn.availability import missing
from thunder_executors_cudnn.executor import executor
from thunder_executors_cudnn.running import GraphError

__all__ = ["GraphError", "__version__", "attention", "executor", "functions", "missing", "normalization"]
