"""Inductor's entry point: from a trace to what runs it. Importing it takes seconds: it is, when something compiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch._dynamo.convert_frame import compile_lock
from torch._guards import TracingContext, tracing
from torch._inductor import config
from torch._inductor.compile_fx import compile_fx_inner
from torch._inductor.decomposition import select_decomp_table

from thunder_executors_inductor.vectors import settings_for
from thunder_fx import to_fx
from thunder_fx.fakes import new_fake_mode
from thunder_fx.guards import fits_of
from thunder_ir import Trace

Compiled = Callable[[list[Any]], Sequence[Any]]
ALWAYS = {"fallback_random": True, "keep_output_stride": True, "size_asserts": False}
"""Random numbers are those of eager, results are laid out as eager's, and inputs as who calls knows."""


def compile_trace(trace: Trace, settings: Mapping[str, Any]) -> tuple[Compiled, Callable[..., bool]]:
    """Compile a program, whose output is a tuple of tensors, by Inductor.

    Args:
        trace: the program; its inputs are laid out in memory as their strides say.
        settings: of Inductor, beside its own.

    Returns:
        What runs it, which takes a list of the inputs that it empties; and whether it is for given values of the
        integers among the inputs, in order.
    """
    mode = new_fake_mode()
    settings = {**ALWAYS, **settings_for(trace), **settings}
    with compile_lock, config.patch(settings):  # Inductor compiles in one thread at a time
        module = to_fx(trace, decompositions=select_decomp_table(), fake_mode=mode)
        inputs = [node.meta["val"] for node in module.graph.find_nodes(op="placeholder")]
        output = module.graph.output_node()
        output.meta["user_visible_output_idxs"] = list(range(len(output.args[0])))  # type: ignore[arg-type]
        with tracing(TracingContext(mode)), mode:
            compiled = compile_fx_inner(module, inputs, is_inference=True)
    return compiled, fits_of(inputs)


__all__ = ["ALWAYS", "Compiled", "compile_trace"]
