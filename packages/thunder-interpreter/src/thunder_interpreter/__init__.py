"""Runs CPython bytecode in Python. Knows nothing of tensors or traces."""

from thunder_interpreter._callbacks import DECLINED, Callbacks, Interpreted
from thunder_interpreter._code import CodeNames, does_nothing, is_comprehension, names_of, paths_named
from thunder_interpreter._interpretation import Interpretation, Location, interpret, resume, resume_raising
from thunder_interpreter._iteration import ReportedIterator
from thunder_interpreter._log import Log
from thunder_interpreter._observing import unobserved
from thunder_interpreter._pristine import replaced_builtins
from thunder_interpreter._raising import truth_that_raises
from thunder_interpreter._registry import UnsupportedOpcode, UnsupportedPython, opcode
from thunder_interpreter._suspending import Left, Place
from thunder_interpreter._version import __version__

__all__ = [
    "DECLINED",
    "Callbacks",
    "CodeNames",
    "Interpretation",
    "Interpreted",
    "Left",
    "Location",
    "Log",
    "Place",
    "ReportedIterator",
    "UnsupportedOpcode",
    "UnsupportedPython",
    "__version__",
    "does_nothing",
    "is_comprehension",
    "interpret",
    "names_of",
    "opcode",
    "paths_named",
    "replaced_builtins",
    "resume",
    "resume_raising",
    "truth_that_raises",
    "unobserved",
]
