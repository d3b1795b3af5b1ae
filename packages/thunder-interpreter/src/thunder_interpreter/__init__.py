"""Runs CPython bytecode in Python. Knows nothing of tensors or traces."""

from thunder_interpreter._callbacks import DECLINED, Callbacks, Interpreted
from thunder_interpreter._interpretation import Interpretation, Location, interpret
from thunder_interpreter._log import Log
from thunder_interpreter._pristine import replaced_builtins
from thunder_interpreter._raising import truth_that_raises
from thunder_interpreter._registry import UnsupportedOpcode, UnsupportedPython, opcode
from thunder_interpreter._version import __version__

__all__ = [
    "DECLINED",
    "Callbacks",
    "Interpretation",
    "Interpreted",
    "Location",
    "Log",
    "UnsupportedOpcode",
    "UnsupportedPython",
    "__version__",
    "interpret",
    "opcode",
    "replaced_builtins",
    "truth_that_raises",
]
