"""Thunder: compiles PyTorch programs to programs. This package puts the parts together and holds nothing itself."""

from importlib import import_module
from typing import Any

from thunder_ir import collector_paused

with collector_paused(lasts=True):  # what is imported stays, and a full collection goes over all that PyTorch has made
    from thunder import clang, core, dev_utils, executors, extend, plugins, recipes, transforms
    from thunder import numpy as numpy
    from thunder import torch as torch
    from thunder._version import __version__
    from thunder.core import devices, dtypes, prims
    from thunder_executors import (
        add_default_executor,
        add_executor_lists,
        deregister_executor,
        get_all_executors,
        get_always_executors,
        get_default_executors,
        get_executor,
        register_executor,
        remove_default_executor,
        resolve_executors,
        set_always_executors,
        set_default_executors,
    )
    from thunder_executors_torch import executor as pytorch_executor
    from thunder_frontend import (
        CACHE_OPTIONS,
        FALLBACK_OPTIONS,
        SHARP_EDGES_OPTIONS,
        DebugOptions,
        FallbackWarning,
        ThunderModule,
        Transform,
        cache_hits,
        cache_misses,
        cache_option,
        compile_data,
        compile_stats,
        explain,
        explain_misses,
        export,
        get_auto_registered_torch_op_names,
        grad,
        jit,
        last_backward_traces,
        last_compile_options,
        last_epilogue_traces,
        last_interpreted_instructions,
        last_interpreter_log,
        last_prologue_traces,
        last_traces,
        list_transforms,
        mark_dynamic,
        mark_static,
        print_last_interpreter_log,
        trace,
        value_and_grad,
    )
    from thunder_ir import (
        AnyProxy,
        ComplexProxy,
        FloatProxy,
        IntegerProxy,
        NumberProxy,
        Proxy,
        StringProxy,
        TensorProxy,
        set_execution_callback_file,
    )
    from thunder_ir.dtypes import (
        bfloat16,
        bool8,
        complex32,
        complex64,
        complex128,
        float8_e4m3fn,
        float8_e4m3fnuz,
        float8_e5m2,
        float8_e5m2fnuz,
        float16,
        float32,
        float64,
        int8,
        int16,
        int32,
        int64,
        uint8,
        uint16,
        uint32,
        uint64,
    )
    from thunder_transforms import Plugin, Recipe, compile

# What stands in packages that may be absent, with the module that has it.
LATE = {"distributed": "distributed", "dynamo": "dynamo", "examine": "examine", "report": "examine"}


def __getattr__(name: str) -> Any:
    """Bring what is imported when it is first asked for."""
    if name not in LATE:
        raise AttributeError(f"module 'thunder' has no attribute {name!r}")
    module = import_module(f"thunder.{LATE[name]}")
    return module if name == LATE[name] else getattr(module, name)


__all__ = [
    "AnyProxy", "CACHE_OPTIONS", "ComplexProxy", "DebugOptions", "FALLBACK_OPTIONS", "FallbackWarning",
    "FloatProxy", "IntegerProxy", "NumberProxy", "Plugin", "Proxy", "Recipe", "SHARP_EDGES_OPTIONS", "StringProxy",
    "TensorProxy", "ThunderModule", "Transform", "__version__", "add_default_executor", "add_executor_lists",
    "bfloat16", "bool8", "cache_hits", "cache_misses", "cache_option", "clang", "compile", "compile_data",
    "compile_stats", "complex128", "complex32", "complex64", "core", "deregister_executor", "dev_utils", "devices",
    "dtypes", "executors", "explain", "explain_misses", "export", "extend", "float16", "float32", "float64",
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "get_all_executors",
    "get_always_executors", "get_auto_registered_torch_op_names", "get_default_executors", "get_executor", "grad",
    "int16", "int32", "int64", "int8", "jit", "last_backward_traces", "last_compile_options",
    "last_epilogue_traces", "last_interpreted_instructions", "last_interpreter_log", "last_prologue_traces",
    "last_traces", "list_transforms", "mark_dynamic", "mark_static", "numpy", "plugins", "prims",
    "print_last_interpreter_log", "pytorch_executor", "recipes", "register_executor", "remove_default_executor",
    "resolve_executors", "set_always_executors", "set_default_executors", "set_execution_callback_file", "torch",
    "trace", "transforms", "uint16", "uint32", "uint64", "uint8", "value_and_grad",
]  # fmt: skip
