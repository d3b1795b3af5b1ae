"""What tests of Thunder's packages and of executors are written with."""

from thunder_testing._version import __version__
from thunder_testing.reference import numpy_dtype, reference, run_reference
from thunder_testing.text import assert_text

__all__ = ["__version__", "assert_text", "numpy_dtype", "reference", "run_reference"]
