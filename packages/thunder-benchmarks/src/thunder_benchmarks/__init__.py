"""Models and measurements: Thunder beside eager PyTorch and its peers."""

from thunder_benchmarks._version import __version__
from thunder_benchmarks.gpt import GPT, GPTConfig
from thunder_benchmarks.text import Text, python_documentation

__all__ = ["GPT", "GPTConfig", "Text", "__version__", "python_documentation"]
