"""State dicts of models that are trained in parallel: sharded, as DTensors, or whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.distributed.tensor import DTensor

from thunder_distributed.cuts import (
    CUT,
    Cut,
    Distributing,
    is_distributed,
    load_distributed,
    load_part,
    whole_of_part,
)
from thunder_distributed.modules import CutTwice, parallel_of
from thunder_distributed.optimizers import state_of


def get_model_state_dict(model: torch.nn.Module, *, full: bool = False, cpu_offload: bool = False) -> dict[str, Any]:
    """Return a model's state under the names of the model as it was.

    Args:
        model: what ``fsdp`` or ``ddp`` returned, or was applied to.
        full: whether to gather whole tensors, the same in all processes; otherwise parameters that are cut are
            DTensors over what this process holds, which ``torch.distributed.checkpoint`` saves, and loads into, for
            any number of processes.
        cpu_offload: whether whole tensors are put on the CPU.
    """
    hows, distributing = parallel_of(model), None if full else Distributing()
    found: dict[str, Any] = {}
    for name, value in model.state_dict(keep_vars=False).items():
        found[name] = _as_saved(value, hows.get(_first_name(model, name)), distributing, cpu_offload)
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

    Of an optimizer that has made no step yet it is what a checkpoint is loaded into; the optimizer stays as it is.

    Args:
        model: whose parameters the optimizer has.
        optimizer: any of PyTorch's, or like them: what has the shape of a part is taken for a part.
        full: see :func:`get_model_state_dict`.
    """
    distributing = None if full else Distributing()
    hows, names = parallel_of(model), {id(p): name for name, p in model.named_parameters()}
    kept = state_of(optimizer)
    state = {}
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            name = names[id(parameter)]
            how = hows.get(name)
            state[name] = {
                key: _as_saved(value, how if _is_part(value, parameter) else None, distributing, False)
                for key, value in kept.get(parameter, {}).items()
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
                if isinstance(how, CUT) and isinstance(value, torch.Tensor) and tuple(value.shape) in _shapes(how):
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


def _as_saved(value: Any, how: Any, distributing: Distributing | None, cpu_offload: bool) -> Any:
    if isinstance(value, torch.Tensor) and isinstance(how, CUT):
        if distributing is not None and is_distributed(how):
            return distributing.distributed(value, how)
        value = whole_of_part(value, how)
    return value.cpu() if cpu_offload and isinstance(value, torch.Tensor) else value


def _load(name: str, value: torch.Tensor, given: Any, how: Any) -> None:
    if not isinstance(how, CUT):
        if given.shape != value.shape:
            raise ValueError(f"{name} has shape {list(value.shape)}, and the state dict {list(given.shape)}")
        value.copy_(given)
        return
    if tuple(given.shape) not in _shapes(how):
        raise ValueError(f"{name} has shape {list(how.whole_shape)}, and the state dict {list(given.shape)}")
    if isinstance(given, DTensor):
        load_distributed(value, given, how)
    else:
        load_part(value, given, how)


def _shapes(how: Cut) -> tuple[tuple[int, ...], ...]:
    """Return the shapes under which a parameter is saved: as distributed one it has a dimension."""
    return (how.whole_shape, (how.part if isinstance(how, CutTwice) else how).shape)


__all__ = [
    "get_model_state_dict", "get_optimizer_state_dict", "load_model_state_dict", "load_optimizer_state_dict",
]  # fmt: skip
