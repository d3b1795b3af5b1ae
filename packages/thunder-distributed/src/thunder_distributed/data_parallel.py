"""Data parallelism: each process has the whole model and a part of the batch."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import torch
import torch.distributed as dist

import thunder_distributed.used  # noqa: F401  (whose pass synchronises gradients that others may not have)
from thunder_distributed.axes import MEGABYTE, Axis, axis_of
from thunder_distributed.checks import check_backend, check_devices, check_plain, check_same
from thunder_distributed.compiled import compiled_again, original_of
from thunder_distributed.modules import Parallel, install, part_alone
from thunder_distributed.parameters import Home, Part, Replicated
from thunder_distributed.prims import USED_ANYWHERE
from thunder_distributed.synchronised_buffers import SynchroniseBuffers
from thunder_frontend import ThunderModule
from thunder_torch import from_torch_dtype


def ddp(
    model: torch.nn.Module,
    *,
    broadcast_from: int | None = 0,
    bucket_size_in_mb: float = 25.0,
    process_group: Any = None,
    gradient_dtype: torch.dtype | None = None,
    find_unused_parameters: bool = False,
    broadcast_buffers: bool = True,
) -> ThunderModule:
    """Let each process compute the gradients of its part of the batch, and use the mean of all.

    The model runs compiled; the means are computed while the rest of the backward program runs. Every process calls
    the model with a batch of its own, then ``loss.backward()`` and the optimizer's step as for one process.

    Args:
        model: a module, or what ``thunder.jit`` made of one. It is changed in place.
        broadcast_from: the rank whose parameters and buffers all begin with; ``None`` to leave them as they are.
        bucket_size_in_mb: gradients are sent together until they are this large; 0 sends each by itself.
        process_group: a group, a one-dimensional ``DeviceMesh``, or an :class:`~thunder_distributed.Axis`; all
            processes if not given.
        gradient_dtype: in which gradients are sent, such as ``torch.bfloat16``; their own if not given.
        find_unused_parameters: whether processes may use other parameters than others in a step, as where a branch
            depends on the batch. Gradients are sent at the end of the backward program then: of the parameters that
            any process has used, with zeros from the others. Those that none has used keep ``grad`` as it is.
        broadcast_buffers: whether buffers that a call writes where gradients are enabled, such as the statistics of a
            batch norm, become those of the first process in all.

    Returns:
        The compiled module; ``with module.no_sync():`` adds gradients up without sending them.

    Raises:
        AxisError: ``torch.distributed`` is not initialised.
        DisagreementError: the processes' models have other parameters.
        TypeError: a part of the model is compiled by itself, or distributed by PyTorch.
        ValueError: the model is trained in parallel already, has parameters on several devices, on ``meta``, or on one
            that the group has no backend for.
    """
    original = original_of(model, "ddp")
    check_plain(original, "ddp")
    axis = axis_of(process_group, bucket_bytes=round(bucket_size_in_mb * MEGABYTE))
    devices = [parameter.device for parameter in original.parameters()]
    if torch.device("meta") in [*devices, *[buffer.device for buffer in original.buffers()]]:
        raise ValueError("ddp() of a model on the meta device: give it values first, model.to_empty(device='cpu')")
    check_devices(devices, "ddp")
    check_backend(devices, axis, "ddp")
    alone = _parts_alone(original, axis)
    check_same(original, axis, "ddp")
    if broadcast_from is not None:
        broadcast_state(original, axis, broadcast_from, {id(p) for p in alone})
    parallel = Parallel("ddp")
    dtype = None if gradient_dtype is None else from_torch_dtype(gradient_dtype)
    hows: dict[str, dict[str, Any]] = {}
    known: dict[int, Replicated] = {}
    bucket = USED_ANYWHERE if find_unused_parameters else ""
    for name, module in original.named_modules():
        for key, parameter in module._parameters.items():
            if parameter is None:
                continue
            if parameter in alone:
                hows.setdefault(name, {})[key] = alone[parameter]
                continue
            how = known.get(id(parameter))
            if how is None:
                how = Replicated(axis, (bucket, len(known)), dtype, Home(module._parameters, key, parallel.hows))
                known[id(parameter)] = how
                parallel.hows[f"{name}.{key}" if name else key] = how
            hows.setdefault(name, {})[key] = how
    install(original, parallel, hows)
    synchronises = broadcast_buffers and axis.size > 1
    return compiled_again(model, original, [SynchroniseBuffers(axis, find_unused_parameters)] if synchronises else [])


def _parts_alone(model: torch.nn.Module, axis: Axis) -> dict[torch.nn.Parameter, Part]:
    """Return the parameters of which no other process of the axis has the same part, and how they are cut."""
    found = {}
    for name, module in model.named_modules():
        for key, parameter in module._parameters.items():
            part = None if parameter is None else part_alone(f"{name}.{key}", module, key, axis)
            if parameter is not None and part is not None:
                found[parameter] = part
    return found


def broadcast_state(model: torch.nn.Module, axis: Axis, source: int, without: Collection[int] = frozenset()) -> None:
    """Give all processes the parameters and buffers of one.

    Args:
        model: of the same structure in each process.
        axis: over which processes.
        source: rank on the axis.
        without: the ids of parameters that are left as they are.

    Raises:
        ValueError: there is no such rank.
    """
    if not 0 <= source < axis.size:
        raise ValueError(f"broadcast_from={source}, and axis {axis.name!r} has ranks 0..{axis.size - 1}")
    parameters = [p for p in model.parameters() if id(p) not in without]
    broadcast_tensors([*parameters, *model.buffers()], axis, source)


def broadcast_tensors(tensors: Iterable[torch.Tensor], axis: Axis, source: int) -> None:
    """Give all processes the values of one.

    Args:
        tensors: of the same shapes and dtypes in each process.
        axis: over which processes.
        source: rank on the axis.
    """
    root = axis.global_rank(source)
    with torch.no_grad():
        sent = [(t, t.detach().contiguous()) for t in tensors]
        works = [dist.broadcast(c, root, group=axis.process_group, async_op=True) for _, c in sent]
        for (tensor, copy), work in zip(sent, works, strict=True):
            work.wait()
            if copy.data_ptr() != tensor.data_ptr():
                tensor.copy_(copy)


__all__ = ["broadcast_state", "broadcast_tensors", "ddp"]
