"""Sharded data parallelism: each process keeps a part of every parameter, and gathers the whole when it is needed."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from enum import Enum
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import CPUOffloadPolicy, OffloadPolicy

from thunder_distributed.axes import Axis, AxisError, axis_of
from thunder_distributed.checks import check_backend, check_devices, check_memory, check_plain, check_same
from thunder_distributed.compiled import compiled_again, original_of
from thunder_distributed.data_parallel import broadcast_tensors
from thunder_distributed.modules import PARTS, Parallel, install, part_alone
from thunder_distributed.parameters import Home, Part, Sharded, part_of
from thunder_frontend import ThunderModule
from thunder_ir import Device
from thunder_torch import from_torch_device, from_torch_dtype


class FSDPType(Enum):
    """What is kept between the forward and the backward program.

    ``ZERO2``: parameters, once gathered. ``ZERO3``: parts alone; the backward program gathers again.
    """

    ZERO2 = "zero2"
    ZERO3 = "zero3"


class FSDPBucketingStrategy(Enum):
    """Which parameters are gathered together: each alone, those of a layer, or those of a block of layers."""

    NONE = "none"
    LAYER = "layer"
    BLOCK = "block"


def fsdp(
    model: torch.nn.Module,
    *,
    device: torch.device | str | None = None,
    broadcast_from: int | None = None,
    sharding_strategy: FSDPType = FSDPType.ZERO2,
    bucketing_strategy: FSDPBucketingStrategy = FSDPBucketingStrategy.NONE,
    device_mesh: Any = None,
    shard_dim: Callable[[str, torch.nn.Parameter], int] | None = None,
    param_dtype: torch.dtype | None = None,
    reduce_dtype: torch.dtype | None = None,
    ignored_params: Iterable[torch.nn.Parameter] = (),
    init: Callable[[torch.nn.Module], Any] | None = None,
    ahead_in_mb: float = 0.0,
    gather_group: Any = None,
    offload_policy: OffloadPolicy | None = None,
) -> ThunderModule:
    """Shard a model's parameters, gradients and, with them, the optimizer's state over processes.

    Parameters keep their names. Each becomes this process's part, padded so that all processes have as much; make the
    optimizer after this call. Programs gather them where they are needed and give every process its part of the mean
    gradient.

    Args:
        model: a module, or what ``thunder.jit`` made of one. It is changed in place. Parameters on the ``meta`` device
            get their values module by module: from ``init``, or ``reset_parameters`` of the module.
        device: where the parts are put; where the parameters are, or the CPU for those on ``meta``, if not given.
        broadcast_from: the rank whose parameters and buffers all begin with; they are taken to be equal if not given.
        sharding_strategy: see :class:`FSDPType`.
        bucketing_strategy: see :class:`FSDPBucketingStrategy`.
        device_mesh: a mesh of one dimension, a group or an axis; or a mesh of two: parts are replicated over the first
            and cut over the second. All processes if not given.
        shard_dim: for a parameter's name and value the dimension along which it is cut; 0 if not given.
        param_dtype: in which parameters are gathered and computed with; their own if not given.
        reduce_dtype: in which gradients are sent; that of the gradients if not given.
        ignored_params: left as they are, and their gradients, too.
        init: gives a module whose own parameters are on ``meta`` their values.
        ahead_in_mb: how much may be gathered ahead of its use, or be sent of gradients, at a time, where that is more
            than the largest tensor, or bucket. More hides slow links, and takes memory.
        gather_group: another process group of the same processes, over which parameters are gathered, such as
            ``dist.new_group()``: so gathers do not wait for gradients that are sent.
        offload_policy: PyTorch's ``CPUOffloadPolicy()``: parts, their gradients and the optimizer's state are in the
            memory of the host. Programs copy parts to ``device`` before they gather them, and gradients back. State
            and norms are then communicated on the host: make the group with ``"cpu:gloo,cuda:nccl"``. On a CPU there
            is nothing to copy.

    Returns:
        The compiled module; ``with module.no_sync():`` adds gradients up without sending them.

    Raises:
        AxisError: ``torch.distributed`` is not initialised, or the mesh has more than two dimensions.
        DisagreementError: the processes' models have other parameters.
        TypeError: a part of the model is compiled by itself, distributed by PyTorch, or keeps its weights in a list.
        ValueError: the model is trained in parallel already, has parameters on several devices, on one that the group
            has no backend for, or that share memory; or the group for gathers has other processes.
    """
    original = original_of(model, "fsdp")
    check_plain(original, "fsdp")
    if not isinstance(sharding_strategy, FSDPType) or not isinstance(bucketing_strategy, FSDPBucketingStrategy):
        raise TypeError(
            "fsdp() takes an FSDPType as sharding_strategy and an FSDPBucketingStrategy as bucketing_strategy, not "
            f"{sharding_strategy!r} and {bucketing_strategy!r}"
        )
    if not isinstance(offload_policy, OffloadPolicy | None):
        raise TypeError(
            "fsdp() takes a CPUOffloadPolicy of torch.distributed.fsdp as offload_policy, or None, not "
            f"{offload_policy!r}"
        )
    replicas, axis = axes_of_mesh(device_mesh, round(ahead_in_mb * 1024 * 1024))
    gathers = None if gather_group is None else _for_gathers(gather_group, axis)
    ignored = _ignored(original, ignored_params)
    cut = [p for p in original.parameters() if id(p) not in ignored]
    given = torch.empty(0, device=device or "cpu").device  # which names an index, too
    check_devices([given if p.is_meta else p.device for p in cut], "fsdp")
    check_backend([given if p.is_meta or device is not None else p.device for p in cut], axis, "fsdp")
    check_memory(original, {name for name, p in original.named_parameters() if id(p) not in ignored}, "fsdp")
    parallel = Parallel("fsdp")
    sharder = _Sharder(axis, replicas, device, broadcast_from, init, shard_dim, offload_policy)
    alone, dims = sharder.checked(original, ignored)
    for one in (replicas, axis):
        if one is not None:
            check_same(original, one, "fsdp")
    hows: dict[str, dict[str, Any]] = {}
    known: dict[int, tuple[Any, torch.nn.Parameter]] = {}
    alive: list[torch.nn.Parameter] = []  # so that ids stay theirs
    for name, module in original.named_modules():
        sharder.materialise(original, name, module)
        for key, parameter in module._parameters.items():
            if parameter is None or id(parameter) in ignored:
                continue
            full = f"{name}.{key}" if name else key
            if full in alone:
                hows.setdefault(name, {})[key] = alone[full]
                continue
            if id(parameter) not in known:
                bucket = _bucket(original, name, bucketing_strategy) or full
                how = Sharded(
                    axis, tuple(parameter.shape) or (1,), dims[full],
                    (bucket, len(known)), sharding_strategy is FSDPType.ZERO3,
                    _dtype_for(parameter, param_dtype), _dtype_for(parameter, reduce_dtype),
                    parameter.ndim == 0, replicas, gathers,
                    sharder.computed_on(parameter), Home(module._parameters, key, parallel.hows),
                )  # fmt: skip
                alive.append(parameter)
                known[id(parameter)] = how, sharder.part(parameter, how)
                parallel.hows[full] = how
            how, part = known[id(parameter)]
            module._parameters[key] = part
            hows.setdefault(name, {})[key] = how
    sharder.send_buffers(original)
    install(original, parallel, hows)
    return compiled_again(model, original)


def _for_gathers(group: Any, axis: Axis) -> Axis:
    made = axis_of(group, f"{axis.name}_gathers", bucket_bytes=axis.bucket_bytes, ahead_bytes=axis.ahead_bytes)
    here, there = (dist.get_process_group_ranks(a.process_group) for a in (axis, made))
    if here != there:
        raise ValueError(
            f"gather_group has the processes {there}, and parameters are cut over {here}: pass dist.new_group({here})"
        )
    return made


def _ignored(model: torch.nn.Module, parameters: Iterable[torch.nn.Parameter]) -> set[int]:
    """Return the ids of the parameters that are left as they are.

    Raises:
        ValueError: one is not the model's.
    """
    own, found = {id(p) for p in model.parameters()}, set()
    for given in parameters:
        if id(given) not in own:
            what = repr(given) if isinstance(given, str) else f"a {type(given).__name__}"
            raise ValueError(
                f"ignored_params has {what} that is no parameter of the model: pass parameters, such as "
                "model.get_parameter(name), as they are before fsdp()"
            )
        found.add(id(given))
    return found


def _check_not_replicated(name: str, replicas: Axis | None) -> None:
    if replicas is not None:
        raise NotImplementedError(
            f"{name} is cut over the processes that share the other parameters, and replicated over axis "
            f"{replicas.name!r}: pass fsdp() a mesh of one dimension, over which experts are cut"
        )


def axes_of_mesh(mesh: Any, ahead_bytes: int = 0) -> tuple[Axis | None, Axis]:
    """Return the axis over which parts are replicated, if there is one, and that over which they are cut.

    Raises:
        AxisError: the mesh has more than two dimensions.
    """
    if not isinstance(mesh, DeviceMesh) or mesh.ndim == 1:
        return None, axis_of(mesh, "shard", ahead_bytes=ahead_bytes)
    if mesh.ndim != 2:
        raise AxisError(
            f"fsdp() takes a mesh of one dimension, or of two to replicate over the first, and this has {mesh.ndim}: "
            "pass a slice of it, mesh['replicate', 'shard']"
        )
    names = mesh.mesh_dim_names or ("replicate", "shard")
    return (
        axis_of(mesh.get_group(0), names[0]),
        axis_of(mesh.get_group(1), names[1], ahead_bytes=ahead_bytes),
    )


def _dtype_for(parameter: torch.Tensor, dtype: torch.dtype | None) -> Any:
    return None if dtype is None or not parameter.is_floating_point() else from_torch_dtype(dtype)


def _bucket(model: torch.nn.Module, name: str, strategy: FSDPBucketingStrategy) -> str | None:
    """Return the name of the bucket of a module's own parameters."""
    if strategy is FSDPBucketingStrategy.NONE:
        return None
    if strategy is FSDPBucketingStrategy.LAYER or not name:
        return name or "model"
    steps = name.split(".")
    for i in range(1, len(steps) + 1):
        holder = model.get_submodule(".".join(steps[: i - 1]))
        if isinstance(holder, (torch.nn.ModuleList, torch.nn.Sequential)):
            return ".".join(steps[:i])
    return steps[0]


class _Sharder:
    """Cuts parameters, one after the other, so that no more than one module is whole at a time."""

    def __init__(
        self,
        axis: Axis,
        replicas: Axis | None,
        device: Any,
        broadcast_from: int | None,
        init: Callable[[torch.nn.Module], Any] | None,
        shard_dim: Callable[[str, torch.nn.Parameter], int] | None,
        offload_policy: OffloadPolicy | None,
    ) -> None:
        self.axis, self.replicas, self.broadcast_from = axis, replicas, broadcast_from
        self.device = None if device is None else torch.device(device)
        self.init, self.shard_dim = init, shard_dim
        self.offloads = isinstance(offload_policy, CPUOffloadPolicy)
        self.pins = isinstance(offload_policy, CPUOffloadPolicy) and offload_policy.pin_memory
        self.holders: dict[int, list[tuple[str, torch.nn.Module]]] = {}
        self.meta: list[torch.Tensor] = []  # so that ids stay theirs
        self.made: dict[int, torch.Tensor] = {}
        self.valued: set[str] = set()

    def checked(self, model: torch.nn.Module, ignored: Container[int]) -> tuple[dict[str, Part], dict[str, int]]:
        """Return parameters of which no other process has this part, and along which dimension all others are cut.

        Raises:
            TypeError: a module keeps its parameters in lists of its own, which no property can answer for.
            ValueError: a parameter cannot be cut, or there is no way to its values.
        """
        if self.broadcast_from is not None:
            count = self.axis.size * (1 if self.replicas is None else self.replicas.size)
            if not 0 <= self.broadcast_from < count:
                raise ValueError(f"broadcast_from={self.broadcast_from}, and there are the ranks 0..{count - 1}")
        alone, dims = {}, {}
        for name, module in model.named_modules():
            self.check_values(name, module)
            for key, parameter in module._parameters.items():
                if parameter is None or id(parameter) in ignored:
                    continue
                if isinstance(module, torch.nn.RNNBase):
                    raise TypeError(
                        f"{name or 'the model'} is a {type(module).__name__}, which keeps its weights in a list of its "
                        "own; leave it out of fsdp() by ignored_params, or use ddp()"
                    )
                full = f"{name}.{key}" if name else key
                part = part_alone(full, module, key, self.axis)
                if part is not None:
                    _check_not_replicated(full, self.replicas)
                    alone[full] = part
                    continue
                dims[full] = 0 if self.shard_dim is None else self.shard_dim(full, parameter)
                if not 0 <= dims[full] < max(parameter.ndim, 1):
                    raise ValueError(f"shard_dim says {dims[full]} for {full}, of shape {list(parameter.shape)}")
        return alone, dims

    def check_values(self, name: str, module: torch.nn.Module) -> None:
        """Refuse a module that has parameters without values, and no way to them.

        Raises:
            ValueError: it is such a module.
        """
        own = [*module._parameters.values(), *module._buffers.values()]
        if self.init is not None or not any([tensor is not None and tensor.is_meta for tensor in own]):
            return
        described = f"{name or 'the model'}, a {type(module).__name__},"
        if PARTS in module.__dict__:
            raise ValueError(
                f"{described} was cut on the meta device, and its reset_parameters() would take the part for the "
                "whole; pass fsdp(init=...), or give the model its values before parallelize()"
            )
        if not hasattr(type(module), "reset_parameters"):
            raise ValueError(
                f"{described} has parameters on the meta device and no reset_parameters(); pass fsdp(init=...), a "
                "function that gives a module's own parameters their values"
            )

    def computed_on(self, parameter: torch.nn.Parameter) -> Device | None:
        """Return the device to which parts on the host are copied; ``None`` if they stay where they are."""
        device = self.device or parameter.device
        return from_torch_device(device) if self.offloads and device.type != "cpu" else None

    def materialise(self, model: torch.nn.Module, name: str, module: torch.nn.Module) -> None:
        """Give the module's own parameters and buffers values if they have none.

        Modules that share one of them get theirs first, in the order of the model: the last one's is the value.
        """
        if not self.holders:
            for key, holder in model.named_modules():
                for tensor in [*holder._parameters.values(), *holder._buffers.values()]:
                    if tensor is not None and tensor.is_meta:
                        self.holders.setdefault(id(tensor), []).append((key, holder))
                        self.meta.append(tensor)
        for tensor in [*module._parameters.values(), *module._buffers.values()]:
            for key, holder in self.holders.get(id(tensor), ()):
                if key not in self.valued:
                    self.valued.add(key)
                    self.value(holder)

    def value(self, module: torch.nn.Module) -> None:
        """Give what a module has on the meta device memory, and values."""
        device = self.device or torch.device("cpu")
        for table in (module._parameters, module._buffers):
            for key, tensor in table.items():
                if tensor is None or not tensor.is_meta:
                    continue
                made = self.made.get(id(tensor))
                if made is None:
                    made = torch.empty_like(tensor, device=device)
                    if isinstance(tensor, torch.nn.Parameter):
                        made = torch.nn.Parameter(made, tensor.requires_grad)
                    self.made[id(tensor)] = made
                table[key] = made  # type: ignore[assignment]
        with torch.no_grad():
            (self.init or type(module).reset_parameters)(module)  # type: ignore[attr-defined]

    def part(self, parameter: torch.nn.Parameter, how: Sharded) -> torch.nn.Parameter:
        """Return this process's part, padded with zeros."""
        whole = parameter.detach().reshape(how.shape)
        if self.broadcast_from is not None:
            self.send([whole])
        part = part_of(whole, how, self.axis.rank)
        if how.computed_on is not None:
            part = part.to("cpu")
            part = part.pin_memory() if self.pins else part
        elif self.device is not None:
            part = part.to(self.device)
        made = torch.nn.Parameter(part, requires_grad=parameter.requires_grad)
        made.__dict__.update(parameter.__dict__)
        return made

    def send(self, tensors: list[torch.Tensor]) -> None:
        """Give all processes the values of one."""
        assert self.broadcast_from is not None
        if self.replicas is None:
            broadcast_tensors(tensors, self.axis, self.broadcast_from)
            return
        row, column = divmod(self.broadcast_from, self.axis.size)
        broadcast_tensors(tensors, self.axis, column)
        broadcast_tensors(tensors, self.replicas, row)

    def send_buffers(self, model: torch.nn.Module) -> None:
        """Put buffers where the parts are, and give all processes those of one."""
        for module in model.modules():
            for key, buffer in module._buffers.items():
                if buffer is not None and self.device is not None:
                    module._buffers[key] = buffer.to(self.device)
        if self.broadcast_from is not None:
            self.send(list(model.buffers()))


__all__ = ["FSDPBucketingStrategy", "FSDPType", "axes_of_mesh", "fsdp"]
