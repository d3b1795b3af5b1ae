"""Inductor's entry point: from a trace to what runs it. Importing it takes seconds: it is, when something compiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from torch._dynamo.convert_frame import compile_lock
from torch._guards import TracingContext, tracing
from torch._inductor import config
from torch._inductor.async_compile import get_compile_threads
from torch._inductor.compile_fx import compile_fx_inner
from torch._inductor.decomposition import select_decomp_table

from thunder_executors_inductor.layouts import LaidOut, lay_out
from thunder_executors_inductor.turns import in_parallel
from thunder_executors_inductor.vectors import settings_for
from thunder_fx import to_fx
from thunder_fx.fakes import new_fake_mode
from thunder_fx.guards import fits_of
from thunder_fx.to_fx import fake_results
from thunder_ir import Trace

Compiled = Callable[[list[Any]], Sequence[Any]]
Made = tuple[Compiled, Callable[..., bool]]
ALWAYS = {"fallback_random": True, "keep_output_stride": True, "size_asserts": False}
"""Random numbers are those of eager, results are laid out as eager's, and inputs as who calls knows."""


BESIDE_OTHERS = {"bundle_triton_into_fx_graph_cache": False}
"""While several programs are compiled: Inductor gathers such bundles for one program at a time."""


def compile_trace(trace: Trace, settings: Mapping[str, Any]) -> Made:
    """Compile a program, whose output is a tuple of tensors, by Inductor.

    Args:
        trace: the program; its inputs are laid out in memory as their strides say.
        settings: of Inductor, beside its own.

    Returns:
        What runs it, which takes a list of the inputs that it empties; and whether it is for given values of the
        integers among the inputs, in order.
    """
    with compile_lock, config.patch({**ALWAYS, **settings_for(trace), **settings}):
        return _compile(trace)


def compile_traces(traces: Sequence[Trace], settings: Mapping[str, Any]) -> list[Made | None]:
    """Compile programs in parallel, as far as that can be: while the kernels of one are compiled, others are lowered.

    Args:
        traces, settings: as for :func:`compile_trace`.

    Returns:
        For each program what :func:`compile_trace` returns, or ``None`` if it failed.
    """
    special = {name: value for trace in traces for name, value in settings_for(trace).items()}
    with compile_lock, config.patch({**ALWAYS, **special, **settings, **BESIDE_OTHERS}):
        return in_parallel([partial(_compile, trace) for trace in traces], get_compile_threads() + 1)


def _compile(trace: Trace) -> Made:
    mode = new_fake_mode()
    module = to_fx(trace, decompositions=select_decomp_table(), fake_mode=mode)
    inputs = [node.meta["val"] for node in module.graph.find_nodes(op="placeholder")]
    expected = fake_results(trace)
    with mode:
        lay_out(module, expected)
    output = module.graph.output_node()
    output.meta["user_visible_output_idxs"] = list(range(len(output.args[0])))  # type: ignore[arg-type]
    with tracing(TracingContext(mode)), mode:
        compiled = compile_fx_inner(module, inputs, is_inference=True)
    known = all([isinstance(n, int) for like in expected for n in like.shape])
    return LaidOut(compiled, expected if known else None), fits_of(inputs)


__all__ = ["ALWAYS", "Compiled", "compile_trace", "compile_traces"]
