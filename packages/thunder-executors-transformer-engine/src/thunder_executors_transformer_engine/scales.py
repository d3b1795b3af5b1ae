"""What recipes keep for layers: scales, and the history they follow from. They belong to the weights of modules."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

import torch
from torch.utils.weak import WeakIdKeyDictionary

from thunder_executors_transformer_engine import library

Recipe = Any
"""The name of a class of the library's recipes, or an instance of one."""
PARTS = ("forward", "backward")
TENSORS = ("scale", "amax_history")


class Quantizers:
    """The quantizers of a layer on a device.

    Args:
        recipe: by which they scale.
        device: of the layer.
    """

    def __init__(self, recipe: Recipe, device: torch.device) -> None:
        found = library.engine()
        self.recipe = found.recipe(recipe) if isinstance(recipe, str) else recipe
        self.forward = found.state(self.recipe, mode="forward", num_quantizers=2, device=device)
        self.backward = found.state(self.recipe, mode="backward", num_quantizers=1, device=device)
        self.input, self.weight = self.forward.make_quantizers()
        (self.gradient,) = self.backward.make_quantizers()

    def updated(self, forward: bool) -> None:
        """Let a recipe whose scales follow from what was seen before see what was seen now."""
        if self.recipe.delayed():
            state = self.forward if forward else self.backward
            found = library.engine()
            largest = found.largest(self.recipe, forward)
            found.update(state.amax_history, state.scale, largest, self.recipe)

    def tensors(self) -> dict[str, torch.Tensor]:
        """Return what is kept from one call to the next, by name: the tensors themselves."""
        parts = {part: getattr(self, part) for part in PARTS}
        found = {f"{part}.{name}": getattr(state, name, None) for part, state in parts.items() for name in TENSORS}
        return {name: tensor for name, tensor in found.items() if isinstance(tensor, torch.Tensor)}


class Kept:
    """Quantizers by recipe and device."""

    def __init__(self) -> None:
        self._made: dict[tuple[Recipe | int, torch.device], Quantizers] = {}

    def of(self, recipe: Recipe, device: torch.device) -> Quantizers:
        """Return those of a recipe on a device; made when they are first asked for."""
        key = (recipe if isinstance(recipe, str) else id(recipe), device)  # instances may be changed: no value is equal
        if key not in self._made:
            self._made[key] = Quantizers(recipe, device)
        return self._made[key]

    def all(self) -> list[Quantizers]:
        """Return all that were made."""
        return list(self._made.values())


_OF_WEIGHTS: MutableMapping[torch.Tensor, Kept] = WeakIdKeyDictionary()


def kept_for(weight: torch.Tensor) -> Kept | None:
    """Return what is kept for a parameter, by all programs that multiply by it; ``None`` for what is computed."""
    if not isinstance(weight, torch.nn.Parameter):
        return None
    return _OF_WEIGHTS.setdefault(weight, Kept())


def scales(module: torch.nn.Module) -> dict[str, dict[str, torch.Tensor]]:
    """Return copies of what delayed recipes keep for the layers of a module, to be saved beside its ``state_dict``.

    Args:
        module: whose layers were run.

    Returns:
        for each parameter's name the tensors, by name.

    Raises:
        ValueError: a layer was run by several recipes, or on several devices.

    Example:
        >>> import torch
        >>> from thunder_executors_transformer_engine import scales
        >>> scales(torch.nn.Linear(16, 16))  # which was not run in eight bits
        {}
    """
    found = {}
    for name, parameter in module.named_parameters():
        made = _OF_WEIGHTS[parameter].all() if parameter in _OF_WEIGHTS else []
        kept = [tensors for quantizers in made if (tensors := quantizers.tensors())]
        if len(kept) > 1:
            raise ValueError(f"{name} was multiplied by with several recipes, or on several devices")
        if kept:
            found[name] = {key: tensor.clone() for key, tensor in kept[0].items()}
    return found


def load_scales(
    module: torch.nn.Module, saved: Mapping[str, Mapping[str, torch.Tensor]], recipe: Recipe = "DelayedScaling"
) -> None:
    """Let layers of a module go on with what :func:`scales` returned.

    Args:
        module: whose parameters have the names.
        saved: what it returned.
        recipe: with which the layers will be run.

    Raises:
        KeyError: there is no parameter of a name, or the recipe keeps other tensors.
    """
    parameters = dict(module.named_parameters())
    for name, tensors in saved.items():
        kept = kept_for(parameters[name])
        assert kept is not None
        mine = kept.of(recipe, parameters[name].device).tensors()
        if mine.keys() != tensors.keys():
            raise KeyError(f"{name} has {', '.join(tensors)}, and the recipe keeps {', '.join(mine) or 'nothing'}")
        for key, tensor in tensors.items():
            mine[key].copy_(tensor)


__all__ = ["Kept", "Quantizers", "Recipe", "kept_for", "load_scales", "scales"]
