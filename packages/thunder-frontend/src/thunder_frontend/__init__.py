"""Acquisition: from a Python callable to a program with guards, and the cache of its specialisations."""

from thunder_frontend._version import __version__
from thunder_frontend.compiled import CompiledFunction
from thunder_frontend.errors import (
    AcquisitionError,
    DataDependentError,
    DifferenceError,
    SharpEdgeError,
    SharpEdgeWarning,
    UnknownTensorError,
)
from thunder_frontend.gradients import grad, value_and_grad
from thunder_frontend.introspection import (
    cache_hits,
    cache_misses,
    cache_option,
    compile_data,
    compile_stats,
    explain_misses,
    get_auto_registered_torch_op_names,
    last_backward_traces,
    last_compile_options,
    last_epilogue_traces,
    last_interpreter_log,
    last_prologue_traces,
    last_traces,
    list_transforms,
    print_last_interpreter_log,
)
from thunder_frontend.jit import compiled_function, jit, trace
from thunder_frontend.module import ThunderModule
from thunder_frontend.options import CACHE_OPTIONS, SHARP_EDGES_OPTIONS, DebugOptions
from thunder_frontend.outside.left_open import mark_dynamic
from thunder_frontend.program import Program
from thunder_frontend.transforms import Transform

__all__ = [
    "CACHE_OPTIONS", "SHARP_EDGES_OPTIONS", "AcquisitionError", "CompiledFunction", "DataDependentError",
    "DebugOptions", "DifferenceError", "Program", "SharpEdgeError", "SharpEdgeWarning", "ThunderModule",
    "Transform", "UnknownTensorError", "__version__", "cache_hits", "cache_misses", "cache_option", "compile_data",
    "compile_stats", "compiled_function", "explain_misses", "get_auto_registered_torch_op_names", "grad", "jit",
    "last_backward_traces", "last_compile_options", "last_epilogue_traces", "last_interpreter_log",
    "last_prologue_traces", "last_traces", "list_transforms", "mark_dynamic", "print_last_interpreter_log", "trace",
    "value_and_grad",
]  # fmt: skip
