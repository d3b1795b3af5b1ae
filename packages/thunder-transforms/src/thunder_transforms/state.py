"""State dicts of compiled modules that transforms have changed, as the original has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from thunder_frontend import list_transforms

State = dict[str, torch.Tensor]


def original_state_dict(model: torch.nn.Module) -> State:
    """Return the state of a compiled module as its original would have it: what transforms changed is changed back.

    Loaded into a module of the original's class, it computes what the compiled one does, but for what was rounded.

    Args:
        model: what ``thunder.jit`` returned.

    Returns:
        tensors by the names that the original has for them.
    """
    made: State = {}
    for name, entries in _by_layer(model, model.state_dict()).items():
        for transform in reversed(list_transforms(model)):
            entries = transform.reverse_transform_state_dict_for_submodule(model, name, entries)
        made.update(_named(name, entries))
    return made


def transformed_state_dict(model: torch.nn.Module, state: Mapping[str, torch.Tensor]) -> State:
    """Return a state dict of the original as it fits the compiled module that transforms have changed."""
    made: State = {}
    for name, entries in _by_layer(model, state).items():
        for transform in list_transforms(model):
            entries = transform.transform_state_dict_for_submodule(model, name, entries)
        made.update(_named(name, entries))
    return made


def load_original_state_dict(model: torch.nn.Module, state: Mapping[str, torch.Tensor], strict: bool = True) -> Any:
    """Load a state dict of the original into a compiled module that transforms have changed.

    Args:
        model: what ``thunder.jit`` returned.
        state: tensors by the names that the original has for them.
        strict: whether each entry must have its place, and each place its entry.

    Returns:
        what ``load_state_dict`` does: the keys that were missing, and those that were too many.

    Raises:
        RuntimeError: entries do not fit.
    """
    return model.load_state_dict(transformed_state_dict(model, state), strict=strict)


def _by_layer(model: torch.nn.Module, state: Mapping[str, torch.Tensor]) -> dict[str, State]:
    """Sort the entries of a state dict by the submodule that has them."""
    found: dict[str, State] = {}
    for key, value in state.items():
        name, _, entry = key.rpartition(".")
        found.setdefault(name, {})[entry] = value
    layers = dict(model.named_modules(remove_duplicate=False))
    unknown = [name for name in found if name not in layers]
    if unknown:
        raise RuntimeError(f"the state dict has entries of {', '.join(unknown)}, which the model has not")
    return found


def _named(name: str, entries: State) -> State:
    return {f"{name}.{entry}" if name else entry: value for entry, value in entries.items()}
