"""What a model has to be before it is distributed. Nothing is changed where it is not."""

from __future__ import annotations

from collections.abc import Container, Iterable

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

from thunder_distributed.axes import Axis, timeout_of
from thunder_distributed.ledger import LATEST
from thunder_distributed.modules import PARALLEL
from thunder_frontend import ThunderModule, compiled_function

ONCE = "apply one of them, once; for replicas of shards pass fsdp() a mesh of two dimensions"


def check_plain(model: torch.nn.Module, kind: str, advice: str = ONCE) -> None:
    """Refuse a model that is trained in parallel already, or of which a part is compiled by itself.

    Args:
        model: not compiled.
        kind: what is about to be applied, for messages.
        advice: what to do if ``ddp`` or ``fsdp`` was applied.

    Raises:
        TypeError: a part is compiled, or PyTorch distributes it.
        ValueError: it is trained in parallel.
    """
    for name, module in model.named_modules():
        what = repr(name) if name else "itself"
        held = compiled_function(module).function if isinstance(module, ThunderModule) else module
        if PARALLEL in held.__dict__:
            before = held.__dict__[PARALLEL].kind
            raise ValueError(
                f"{kind}() of a model that {before}() was applied to already ({name or 'the model itself'}): {advice}"
            )
        if isinstance(module, ThunderModule):
            raise TypeError(
                f"{kind}() of a model with a part, {what}, that is compiled by itself: leave thunder.jit out there; "
                f"{kind}() compiles the whole model"
            )
        if isinstance(module, DistributedDataParallel):
            raise TypeError(
                f"{kind}() of a model with a DistributedDataParallel, {what}: put the module that it wraps, its "
                ".module, in its place"
            )
    found = next((name for name, p in model.named_parameters() if isinstance(p, DTensor)), None)
    if found is not None:
        raise TypeError(
            f"{kind}() of a model whose {found} is a DTensor, as fully_shard() and parallelize_module() of PyTorch "
            "make them: pass the model as it was before; or leave it to PyTorch, and compile it by thunder.jit alone"
        )


def check_devices(devices: Iterable[torch.device], kind: str) -> None:
    """Refuse a model on several devices.

    Raises:
        ValueError: it is.
    """
    found = sorted(set(map(str, devices)))
    if len(found) > 1:
        raise ValueError(f"{kind}() of a model on {', '.join(found)}: put all of it on one device, model.to(device)")


def check_backend(devices: Iterable[torch.device], axis: Axis, kind: str) -> None:
    """Refuse a model on a device whose tensors the processes cannot send each other.

    Raises:
        ValueError: it is.
    """
    if axis.group is None:
        return
    backends = dist.distributed_c10d.get_backend_config(axis.process_group)
    known = {"meta", *[pair.partition(":")[0] for pair in backends.split(",")]}
    missing = sorted({device.type for device in devices} - known)
    if missing:
        raise ValueError(
            f"{kind}() of a model on {missing[0]}, and the process group of axis {axis.name!r} has the backends "
            f"{backends}: put the model on a device of theirs, or give the group a backend for it, as "
            "init_process_group('cpu:gloo,cuda:nccl') does"
        )


def check_memory(model: torch.nn.Module, cut: Container[str], kind: str) -> None:
    """Refuse parameters that share memory and are not one parameter: cut, each would have a value of its own.

    Args:
        model: whose parameters.
        cut: the names of those that will be cut.
        kind: what is about to be applied, for messages.

    Raises:
        ValueError: there are some.
    """
    known: dict[int, list[tuple[str, torch.Tensor]]] = {}
    for name, parameter in model.named_parameters():
        tensor = parameter.detach()
        if type(tensor) is not torch.Tensor or tensor.is_meta or not tensor.numel():
            continue
        others = known.setdefault(tensor.untyped_storage().data_ptr(), [])
        either = [(other, before) for other, before in others if other in cut or name in cut]
        shared = next((other for other, before in either if _overlap(before, tensor)), None)
        if shared is not None:
            raise ValueError(
                f"{kind}() of a model whose {shared} and {name} share memory and are two parameters, which would no "
                "longer be equal: let both modules have one parameter, or copy one of them"
            )
        others.append((name, tensor))


def _overlap(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors of one storage have an element in common."""
    if max(_ends(a)[0], _ends(b)[0]) >= min(_ends(a)[1], _ends(b)[1]):
        return False  # as of parameters that lie in one buffer one after the other
    seen = torch.zeros(a.untyped_storage().nbytes(), dtype=torch.bool)
    _bytes_of(a, seen).fill_(True)
    return bool(_bytes_of(b, seen).any())


def _ends(tensor: torch.Tensor) -> tuple[int, int]:
    """Return at which byte of its storage a tensor begins, and the one after its last."""
    first, size = int(tensor.storage_offset()), tensor.element_size()
    last = first + sum([(int(n) - 1) * int(step) for n, step in zip(tensor.shape, tensor.stride(), strict=True)])
    return first * size, (last + 1) * size


def _bytes_of(tensor: torch.Tensor, storage: torch.Tensor) -> torch.Tensor:
    """Return the entries of ``storage``, of one for each byte, that are a tensor's."""
    size = tensor.element_size()
    strides = [step * size for step in tensor.stride()]
    return storage.as_strided((*tensor.shape, size), (*strides, 1), tensor.storage_offset() * size)


def check_same(model: torch.nn.Module, axis: Axis, kind: str) -> None:
    """Make sure that all processes have parameters of the same names, shapes and dtypes; all call it.

    Raises:
        DisagreementError: they have not, or another process does not call it.
    """
    if axis.group is None or axis.size == 1:
        return
    held = [*model.named_parameters(), *model.named_buffers()]
    lines = [f"{name}: {str(t.dtype).removeprefix('torch.')}{list(t.shape)}" for name, t in held]
    group = axis.process_group
    ranks = ",".join(map(str, dist.get_process_group_ranks(group)))
    limit = min(timeout_of(group), 3600.0) / LATEST
    axis.ledger.agree(f"{axis.name}:{ranks}", lines, f"the model that {kind}() is given", limit, "Parameter or buffer")


__all__ = ["ONCE", "check_backend", "check_devices", "check_memory", "check_plain", "check_same"]
