"""Acquisition: from a Python callable to a program with guards, and the cache of its specialisations."""

import thunder_frontend._internals_needed  # noqa: F401  (first, so that what PyTorch lacks fails no other import)
from thunder_frontend._compiled import CompiledFunction
from thunder_frontend._explain import Explanation, explain
from thunder_frontend._export import export
from thunder_frontend._external_state.dynamic_values import mark_dynamic, mark_static
from thunder_frontend._gradients import grad, value_and_grad
from thunder_frontend._introspection import (
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
    last_interpreted_instructions,
    last_interpreter_log,
    last_prologue_traces,
    last_traces,
    list_transforms,
    print_last_interpreter_log,
)
from thunder_frontend._jit import compiled_function, jit, trace
from thunder_frontend._lookasides.in_place import interpreted_in_place_of
from thunder_frontend._module import ThunderModule
from thunder_frontend._report import FallbackWarning, SplitOff
from thunder_frontend._transforms import Transform
from thunder_frontend._version import __version__
from thunder_frontend.options import CACHE_OPTIONS, FALLBACK_OPTIONS, SHARP_EDGES_OPTIONS, DebugOptions
from thunder_guards.errors import (
    AcquisitionError,
    DataDependentError,
    DifferenceError,
    SharpEdgeError,
    SharpEdgeWarning,
    UnknownTensorError,
)
from thunder_guards.program import Program

__all__ = [
    "AcquisitionError", "CACHE_OPTIONS", "CompiledFunction", "DataDependentError", "DebugOptions", "DifferenceError",
    "Explanation", "FALLBACK_OPTIONS", "FallbackWarning", "Program", "SHARP_EDGES_OPTIONS", "SharpEdgeError",
    "SharpEdgeWarning", "SplitOff", "ThunderModule", "Transform", "UnknownTensorError", "__version__", "cache_hits",
    "cache_misses", "cache_option", "compile_data", "compile_stats", "compiled_function", "explain", "explain_misses",
    "export", "get_auto_registered_torch_op_names", "grad", "interpreted_in_place_of", "jit", "last_backward_traces",
    "last_compile_options", "last_epilogue_traces", "last_interpreted_instructions", "last_interpreter_log",
    "last_prologue_traces", "last_traces", "list_transforms", "mark_dynamic", "mark_static",
    "print_last_interpreter_log", "trace", "value_and_grad",
]  # fmt: skip
