"""Cross entropy, norms and rotary embedding by the CUDA extensions of Apex. Imports none of them by itself."""

from thunder_executors_apex import loss, normalization
from thunder_executors_apex._version import __version__
from thunder_executors_apex.availability import missing
from thunder_executors_apex.executor import executor
from thunder_executors_apex.rotary import rotary

__all__ = ["__version__", "executor", "loss", "missing", "normalization", "rotary"]
