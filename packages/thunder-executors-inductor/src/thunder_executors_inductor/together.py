"""Compiling the kernels of a program before it first runs, all at once, as far as their layouts are known."""

from __future__ import annotations

from importlib import import_module

from thunder_executors_inductor.kernels import Kernel
from thunder_ir import Trace
from thunder_torch.foresee import foreseen


def compile_together(trace: Trace) -> Trace:
    """Compile the kernels of a program that its first call will need, in parallel; return the program as it is.

    A kernel that fails to compile is left to its call, which compiles it again and raises.
    """
    kernels = [b.symbol.implementation for b in trace.bound_symbols if isinstance(b.symbol.implementation, Kernel)]
    if len({id(kernel) for kernel in kernels if not kernel.compilations}) < 2:
        return trace
    needs = [(kernel, kernel.layout_of(inputs)) for kernel, inputs in foreseen(trace, Kernel)]
    wanted = list(dict.fromkeys([need for need in needs if not need[0].serves(need[1])]))
    if len(wanted) > 1:
        entry = import_module("thunder_executors_inductor.entry")  # here: Inductor takes seconds to import
        made = entry.compile_traces([kernel.laid_out(layout) for kernel, layout in wanted], wanted[0][0].settings)
        for (kernel, layout), compiled in zip(wanted, made, strict=True):
            if compiled is not None:
                kernel.keep(layout, compiled)
    return trace


__all__ = ["compile_together"]
