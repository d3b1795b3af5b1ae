"""What tests of Thunder's packages and of executors are written with."""

from thunder_testing._version import __version__
from thunder_testing.conformance import check_conformance, sampled_symbols
from thunder_testing.reference import numpy_dtype, reference, run_reference
from thunder_testing.samples import Sample, samples, samples_of
from thunder_testing.signatures import Call, SignatureError, StandIn, Table
from thunder_testing.text import assert_text

__all__ = [
    "Call", "Sample", "SignatureError", "StandIn", "Table", "__version__", "assert_text", "check_conformance",
    "numpy_dtype", "reference", "run_reference", "sampled_symbols", "samples", "samples_of",
]  # fmt: skip
