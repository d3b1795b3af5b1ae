"""Context parallelism: each process has a part of every sequence, and attention sees all of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812

import thunder_lang as lang
from thunder_distributed import prims
from thunder_distributed.axes import Axis, axis_of
from thunder_distributed.checks import check_backend, check_devices
from thunder_distributed.compiled import compiled_again, original_of
from thunder_distributed.ring import ring_attention
from thunder_frontend import ThunderModule, Transform, compiled_function
from thunder_ir import BoundSymbol, TensorProxy, Trace
from thunder_ir.passes import KEEP, rewrite
from thunder_torch import symbol_of

METHODS = ("ring", "heads")


def context_parallel(
    model: torch.nn.Module,
    device_mesh: Any = None,
    *,
    method: str = "ring",
    buffers: Mapping[str, int] | None = None,
    check: bool = True,
) -> ThunderModule:
    """Let each process have a part of every sequence: attention communicates, and nothing else has to.

    Every process calls the model with its parts, as :func:`sequence_part` cuts them: tokens, targets, and whatever
    depends on positions. The loss is a mean over the processes, as for data parallelism, so apply ``ddp`` or ``fsdp``
    after it over the same processes, or over these and those with other batches.

    Args:
        model: a module whose attention is ``scaled_dot_product_attention``, or what ``thunder.jit`` made of one.
        device_mesh: a mesh of one dimension, a group or an axis; all processes if not given.
        method: ``"ring"``: keys and values go around, and are computed with as they come; ``"heads"``: each process
            gets whole sequences of some of the heads, whose number the processes divide.
        buffers: names of buffers, in which ``*`` stands for anything, that go along with the sequence, and the
            dimensions in which they do. Each process keeps its part of them.
        check: whether to refuse programs that count positions from 0 or read the first entries of a tensor, as they
            do not know that they have a part.

    Returns:
        The compiled module.

    Raises:
        AxisError: ``torch.distributed`` is not initialised, or the mesh has several dimensions.
        KeyError: no buffer has one of the names.
        ValueError: another method, a buffer cannot be cut, the model is on several devices, or it was applied before.
        NotImplementedError: when the model is called: its attention drops weights, or takes a mask.
        RuntimeError: when the model is called: it has no attention, or looks at positions.

    Example:
        ``model = fsdp(context_parallel(model, mesh["context"]), device_mesh=mesh["context"])``, and then
        ``model(*[sequence_part(t, mesh["context"]) for t in (tokens, positions)])``
    """
    original = original_of(model, "context_parallel")
    axis = axis_of(device_mesh, "context")
    if method not in METHODS:
        raise ValueError(f"context_parallel() knows the methods {', '.join(map(repr, METHODS))}, not {method!r}")
    transforms = compiled_function(model).options.transforms if isinstance(model, ThunderModule) else ()
    if any([isinstance(transform, ContextParallel) for transform in transforms]):
        raise ValueError("context_parallel() of a model that it was applied to already: apply it once")
    devices = [p.device for p in original.parameters()]
    check_devices(devices, "context_parallel")
    check_backend(devices, axis, "context_parallel")
    for pattern, dim in (buffers or {}).items():
        _cut_buffers(original, pattern, dim, axis)
    compiled = compiled_again(model, original)
    options = compiled._thunder_options
    return ThunderModule(
        original, replace(options, transforms=(*options.transforms, ContextParallel(axis, method, check)))
    )


def _cut_buffers(model: torch.nn.Module, pattern: str, dim: int, axis: Axis) -> None:
    found = [name for name, _ in model.named_buffers() if fnmatchcase(name, pattern)]
    if not found:
        raise KeyError(f"no buffer is called {pattern!r}; there are {', '.join(n for n, _ in model.named_buffers())}")
    for name in found:
        path, _, key = name.rpartition(".")
        owner = model.get_submodule(path)
        buffer = owner._buffers[key]
        assert buffer is not None
        owner._buffers[key] = sequence_part(buffer, axis, dim)


# What users cut and join ----------------------------------------------------------------------------------------------


def sequence_part(tensor: torch.Tensor, device_mesh: Any = None, dim: int = 1) -> torch.Tensor:
    """Return this process's part of a sequence: the chunk of its rank from the front, and that from the end.

    Args:
        tensor: the whole, the same in all processes; its size along ``dim`` is a multiple of twice their number.
        device_mesh: a mesh of one dimension, a group or an axis; all processes if not given.
        dim: along which the sequence lies.

    Raises:
        ValueError: the size is no such multiple.
    """
    axis = axis_of(device_mesh, "context")
    count, size = 2 * axis.size, tensor.shape[dim]
    if size % count:
        raise ValueError(
            f"a sequence of {size} cannot be cut for {axis.size} processes, of which each gets two chunks: pad it to "
            f"{-(-size // count) * count}"
        )
    chunks = tensor.chunk(count, dim)
    return torch.cat([chunks[axis.rank], chunks[count - 1 - axis.rank]], dim)


def whole_sequence(part: torch.Tensor, device_mesh: Any = None, dim: int = 1) -> torch.Tensor:
    """Return the sequence of which each process has a part; no gradient flows through it.

    Args:
        part: what :func:`sequence_part` returned, or what was computed with it.
        device_mesh, dim: as there.
    """
    axis = axis_of(device_mesh, "context")
    part = part.detach().contiguous()
    parts = [torch.empty_like(part) for _ in range(axis.size)]
    dist.all_gather(parts, part, group=axis.process_group)
    chunks = [half for whole in parts for half in whole.chunk(2, dim)]
    return torch.cat([chunks[i] for i in _order(axis.size)], dim)


def _order(processes: int) -> list[int]:
    """Return where the chunks of a sequence are among those of all processes, one process after the other."""
    return [*range(0, 2 * processes, 2), *range(2 * processes - 1, 0, -2)]


def _reverse(order: list[int]) -> list[int]:
    return sorted(range(len(order)), key=order.__getitem__)


# The pass -------------------------------------------------------------------------------------------------------------


class ContextParallel(Transform):
    """Let attention of a program be that to the parts of all processes.

    Args:
        axis: over which processes.
        method, check: see :func:`context_parallel`.
    """

    def __init__(self, axis: Axis, method: str = "ring", check: bool = True) -> None:
        self.axis, self.method, self.check = axis, method, check

    def transform_traces_pre_prologue(
        self, prologue_trace: Any, computation_trace: Trace, epilogue_trace: Any, **kwargs: Any
    ) -> tuple[Any, Trace, Any]:
        return prologue_trace, attention_over(computation_trace, self.axis, self.method, self.check), epilogue_trace


def attention_over(trace: Trace, axis: Axis, method: str = "ring", check: bool = True) -> Trace:
    """Return a program in which attention is that to the sequences' parts in all processes.

    Args:
        trace: as it was acquired.
        axis, method, check: see :func:`context_parallel`.

    Raises:
        NotImplementedError, RuntimeError: see :func:`context_parallel`.
    """
    symbol = symbol_of(F.scaled_dot_product_attention)
    calls = [bound for bound in trace.bound_symbols if bound.symbol is symbol]
    if not calls:
        raise RuntimeError(
            "context_parallel() of a model that has no attention: nothing sees a whole sequence. It finds calls of "
            "torch.nn.functional.scaled_dot_product_attention, and no attention that is written out, nor "
            "torch.nn.MultiheadAttention"
        )
    if check:
        for why in _positions(trace, {bound.args[0].shape[-2] for bound in calls}):
            raise RuntimeError(why)

    def visit(bound: BoundSymbol) -> Any:
        return _attention(*bound.args, **bound.kwargs) if bound.symbol is symbol else KEEP

    def _attention(
        query: TensorProxy, key: TensorProxy, value: TensorProxy, attn_mask: Any = None, dropout_p: float = 0.0,
        is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
    ) -> Any:  # fmt: skip
        if attn_mask is not None or dropout_p:
            what = "a mask" if attn_mask is not None else "dropout"
            raise NotImplementedError(
                f"attention with {what} over the parts of a sequence: use is_causal=True, or none, and no dropout in "
                "attention"
            )
        if query.shape[-2] != key.shape[-2]:
            raise NotImplementedError(
                f"attention of {query.shape[-2]} queries to {key.shape[-2]} keys over the parts of a sequence: each "
                "process must have as many of both"
            )
        if method == "heads":
            return _by_heads(query, key, value, axis, is_causal, scale, enable_gqa)
        return ring_attention(query, key, value, axis, is_causal, scale or 1 / math.sqrt(query.shape[-1]))

    return rewrite(trace, visit)


def _by_heads(
    query: TensorProxy, key: TensorProxy, value: TensorProxy, axis: Axis, is_causal: bool, scale: Any, gqa: bool
) -> Any:
    """Record attention of whole sequences, of this process's part of the heads."""
    heads, sequence = query.ndim - 3, query.ndim - 2
    if heads < 0 or any([t.shape[heads] % axis.size for t in (query, key, value)]):
        counts = sorted({t.shape[heads] for t in (query, key)}) if heads >= 0 else "no"
        raise ValueError(f"{axis.size} processes cannot share {counts} heads: use method='ring'")
    order = _order(axis.size)

    def whole(a: TensorProxy) -> TensorProxy:
        return _chunks_in(prims.wait(prims.all_to_all(a, axis, heads, sequence)), order, sequence)

    attend = symbol_of(F.scaled_dot_product_attention)
    y = attend(whole(query), whole(key), whole(value), is_causal=is_causal, scale=scale, enable_gqa=gqa)
    return prims.wait(prims.all_to_all(_chunks_in(y, _reverse(order), sequence), axis, sequence, heads))


def _chunks_in(a: TensorProxy, order: list[int], dim: int) -> TensorProxy:
    chunks = lang.chunk(a, len(order), dim)
    return lang.cat([chunks[i] for i in order], dim)


def _positions(trace: Trace, lengths: set[Any]) -> Iterator[str]:
    """Yield what a program does as if it had whole sequences."""
    inputs = {p.name for p in trace.inputs}
    way_out = "or pass context_parallel(check=False) if it has nothing to do with positions"
    for bound in trace.bound_symbols:
        made = bound.output
        if not isinstance(made, TensorProxy) or not lengths & set(made.shape):
            continue
        if bound.symbol is symbol_of(torch.arange):
            yield (
                f"{_where(bound)} counts the positions of a sequence from 0, and each process has a part of it: pass "
                f"positions to the model, sequence_part(torch.arange(length), mesh, 0), {way_out}"
            )
        read = bound.args[0] if bound.args else None
        if (
            isinstance(read, TensorProxy)
            and read.name in inputs
            and bound.symbol is symbol_of(torch.Tensor.__getitem__)
        ):
            yield (
                f"{_where(bound)} takes the first entries of {read.name}, {read.type_string}, and each process has a "
                f"part of the sequence: name it in context_parallel(buffers=...), {way_out}"
            )
        if bound.symbol in (symbol_of(torch.softmax), symbol_of(F.softmax), symbol_of(torch.Tensor.softmax)):
            yield (
                f"{_where(bound)} may be one over a sequence, of which each process has a part: use "
                f"scaled_dot_product_attention, {way_out}"
            )


def _where(bound: BoundSymbol) -> str:
    return f"{bound.symbol.name} at {bound.location}" if bound.location is not None else bound.symbol.name


__all__ = ["ContextParallel", "attention_over", "context_parallel", "sequence_part", "whole_sequence"]
