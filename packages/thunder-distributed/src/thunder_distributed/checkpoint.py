"""State dicts of models that are trained in parallel: sharded, as DTensors, or whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Shard

from thunder_distributed.axes import Axis
from thunder_distributed.modules import CutTwice, parallel_of
from thunder_distributed.parameters import Part, Sharded, rows_of


def get_model_state_dict(model: torch.nn.Module, *, full: bool = False, cpu_offload: bool = False) -> dict[str, Any]:
    """Return a model's state under the names of the model as it was.

    Args:
        model: what ``fsdp`` or ``ddp`` returned, or was applied to.
        full: whether to gather whole tensors, the same in all processes; otherwise parameters that are cut are
            DTensors over what this process holds, which ``torch.distributed.checkpoint`` saves, and loads into, for
            any number of processes.
        cpu_offload: whether whole tensors are put on the CPU.
    """
    hows = parallel_of(model)
    found: dict[str, Any] = {}
    for name, value in model.state_dict(keep_vars=False).items():
        found[name] = _as_saved(value, hows.get(_first_name(model, name)), full, cpu_offload)
    return found


def load_model_state_dict(model: torch.nn.Module, state: Mapping[str, Any], *, strict: bool = True) -> None:
    """Give a model the values of a state dict, whole or sharded.

    Args:
        model: what ``fsdp`` or ``ddp`` returned, or was applied to.
        state: from :func:`get_model_state_dict`, or of the model as it was before, in one process.
        strict: whether every name must be there, and no other.

    Raises:
        KeyError: names are missing, or unknown.
        ValueError: a tensor has another shape.
    """
    hows = parallel_of(model)
    own = model.state_dict(keep_vars=False)
    if strict and own.keys() != state.keys():
        missing, unknown = sorted(own.keys() - state.keys()), sorted(state.keys() - own.keys())
        raise KeyError(
            f"the state dict lacks {missing} and has {unknown}, which the model has not; or pass strict=False"
        )
    with torch.no_grad():
        for name, value in own.items():
            if name in state:
                _load(name, value, state[name], hows.get(_first_name(model, name)))


def get_optimizer_state_dict(
    model: torch.nn.Module, optimizer: torch.optim.Optimizer, *, full: bool = False
) -> dict[str, Any]:
    """Return an optimizer's state by the names of parameters, sharded as they are, or whole.

    Args:
        model: whose parameters the optimizer has.
        optimizer: any of PyTorch's, or like them: what has the shape of a part is taken for a part.
        full: see :func:`get_model_state_dict`.
    """
    hows, names = parallel_of(model), {id(p): name for name, p in model.named_parameters()}
    state = {}
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            name = names[id(parameter)]
            how = hows.get(name)
            state[name] = {
                key: _as_saved(value, how if _is_part(value, parameter) else None, full, False)
                for key, value in optimizer.state.get(parameter, {}).items()
            }
    groups = [
        {**{k: v for k, v in group.items() if k != "params"}, "params": [names[id(p)] for p in group["params"]]}
        for group in optimizer.param_groups
    ]
    return {"state": state, "param_groups": groups}


def load_optimizer_state_dict(
    model: torch.nn.Module, optimizer: torch.optim.Optimizer, state: Mapping[str, Any]
) -> None:
    """Give an optimizer the state that :func:`get_optimizer_state_dict` returned, in any number of processes.

    Args:
        model: whose parameters the optimizer has.
        optimizer: of the kind whose state it is.
        state: whole or sharded.
    """
    hows, parameters = parallel_of(model), dict(model.named_parameters())
    with torch.no_grad():
        for name, entries in state["state"].items():
            parameter = parameters[name]
            loaded = optimizer.state[parameter]
            for key, value in entries.items():
                how = hows.get(name)
                if (
                    isinstance(how, (Sharded, Part))
                    and isinstance(value, torch.Tensor)
                    and tuple(value.shape) == how.whole_shape
                ):
                    part = torch.zeros_like(parameter, dtype=value.dtype)
                    _load(name, part, value, how)
                    loaded[key] = part
                else:
                    loaded[key] = value.clone() if isinstance(value, torch.Tensor) else value
    for group, saved in zip(optimizer.param_groups, state["param_groups"], strict=True):
        group.update({k: v for k, v in saved.items() if k != "params"})


def _is_part(value: Any, parameter: torch.Tensor) -> bool:
    return isinstance(value, torch.Tensor) and value.shape == parameter.shape


def _first_name(model: torch.nn.Module, name: str) -> str:
    """Return the first name of a parameter that may be tied."""
    path, _, key = name.rpartition(".")
    parameter = model.get_submodule(path)._parameters.get(key)
    if parameter is None:
        return name
    return next((first for first, p in model.named_parameters() if p is parameter), name)


def _there(part: torch.Tensor, how: Sharded | Part, axis: Axis) -> torch.Tensor:
    """Return what of a part is no padding, a view."""
    size = how.shape[how.dim]
    rows = rows_of(size, axis.size)
    start = min(axis.rank * rows, size)
    return part.narrow(how.dim, 0, min(rows, size - start))


def _check_cut_once(how: Any) -> None:
    if isinstance(how, CutTwice):
        names = " and ".join([repr(axis.name) for axis in how.cut_over])
        raise NotImplementedError(
            f"state of parameters that are cut over {names} is neither saved nor loaded: save each process's "
            "model.state_dict() by itself"
        )


def _mesh(axis: Axis, device: str) -> DeviceMesh:
    return DeviceMesh.from_group(axis.process_group, device)


def _as_saved(value: Any, how: Any, full: bool, cpu_offload: bool) -> Any:
    _check_cut_once(how)
    if not isinstance(value, torch.Tensor) or not isinstance(how, (Sharded, Part)):
        return value.cpu() if cpu_offload and isinstance(value, torch.Tensor) else value
    axis = how.axis
    if not full:
        mesh = _mesh(axis, value.device.type)
        stride = torch.empty(how.shape, device="meta").stride()
        return DTensor.from_local(
            _there(value, how, axis),
            mesh,
            [Shard(how.dim)],
            run_check=False,
            shape=torch.Size(how.shape),
            stride=stride,
        )
    whole = whole_of_part(value, how)
    return whole.cpu() if cpu_offload else whole


def whole_of_part(value: torch.Tensor, how: Sharded | Part) -> torch.Tensor:
    """Return the whole of which each process has a part; all processes call it.

    Raises:
        NotImplementedError: it is cut over two dimensions of a mesh.
    """
    _check_cut_once(how)
    axis = how.axis
    parts = [torch.empty_like(value) for _ in range(axis.size)]
    dist.all_gather(parts, value.contiguous(), group=axis.process_group)
    whole = torch.cat(parts, how.dim).narrow(how.dim, 0, how.shape[how.dim])
    return whole.reshape(how.whole_shape).contiguous()


def _load(name: str, value: torch.Tensor, given: Any, how: Any) -> None:
    _check_cut_once(how)
    if not isinstance(how, (Sharded, Part)):
        if given.shape != value.shape:
            raise ValueError(f"{name} has shape {list(value.shape)}, and the state dict {list(given.shape)}")
        value.copy_(given)
        return
    if tuple(given.shape) not in (how.shape, how.whole_shape):
        raise ValueError(f"{name} has shape {list(how.whole_shape)}, and the state dict {list(given.shape)}")
    there = _there(value, how, how.axis)
    if isinstance(given, DTensor):
        local = given.to_local()
        if given.placements == (Shard(how.dim),) and local.shape == there.shape:
            if local.data_ptr() != there.data_ptr() or not local.numel():
                there.copy_(local)
            return
        given = given.full_tensor()
    load_part(value, given, how)


def load_part(value: torch.Tensor, whole: torch.Tensor, how: Sharded | Part) -> None:
    """Give a part the values that a whole tensor has there."""
    there = _there(value, how, how.axis)
    rows = rows_of(how.shape[how.dim], how.axis.size)
    start = min(how.axis.rank * rows, how.shape[how.dim])
    there.copy_(whole.reshape(how.shape).narrow(how.dim, start, there.shape[how.dim]))


__all__ = [
    "get_model_state_dict", "get_optimizer_state_dict", "load_model_state_dict", "load_optimizer_state_dict",
    "load_part", "whole_of_part",
]  # fmt: skip
