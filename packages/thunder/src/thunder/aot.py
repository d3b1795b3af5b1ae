"""Graphs of forward and backward parts for compilers of FX graphs, as ``functorch.compile`` has it."""

try:
    from thunder_fx.aot import (
        aot_export_joint_simple,
        aot_function,
        aot_module,
        aot_module_simplified,
        default_partition,
        make_fx,
        memory_efficient_fusion,
        min_cut_rematerialization_partition,
        nop,
        ts_compile,
    )
except ImportError as error:
    raise ImportError("thunder.aot needs thunder-fx: pip install 'thunder-jit[fx]'") from error

__all__ = [
    "aot_export_joint_simple", "aot_function", "aot_module", "aot_module_simplified", "default_partition", "make_fx",
    "memory_efficient_fusion", "min_cut_rematerialization_partition", "nop", "ts_compile",
]  # fmt: skip
