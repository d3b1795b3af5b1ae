"""Low-rank adaptation: linear layers whose weights stay, with a product of two small matrices added that is trained."""

from __future__ import annotations

import math
from typing import Any

import torch

from thunder_frontend import Transform
from thunder_transforms.layers import Changed, Where, change, everywhere, linear_layers, original
from thunder_transforms.quantization import PREFIX, Quantised, with_weight


class Adapted(Changed):
    """A linear layer with ``(alpha / r) * lora_b @ lora_a`` added to its weight."""

    lora_a: torch.nn.Parameter
    lora_b: torch.nn.Parameter
    _thunder_scale: float
    _thunder_dropout: float
    training: bool

    def forward(self, x: torch.Tensor) -> Any:
        dropped = torch.nn.functional.dropout(x, self._thunder_dropout, self.training)
        low = torch.nn.functional.linear(dropped, self.lora_a)
        return super().forward(x) + torch.nn.functional.linear(low, self.lora_b) * self._thunder_scale  # type: ignore[misc]

    def reset_parameters(self) -> None:
        """Draw new parameters, as the layer does, and such that nothing is added."""
        super().reset_parameters()  # type: ignore[misc]
        _start(self.lora_a, self.lora_b)

    def added(self) -> torch.Tensor:
        """Return what is added to the weight, of its shape."""
        return (self.lora_b @ self.lora_a).detach() * self._thunder_scale


def _start(a: torch.Tensor, b: torch.Tensor) -> None:
    torch.nn.init.kaiming_uniform_(a, a=math.sqrt(5))
    torch.nn.init.zeros_(b)


class LORATransform(Transform):
    """Train two small matrices beside each linear layer, and nothing else.

    All parameters that the model had are frozen. Layers whose weights are quantised are adapted, too: with
    ``transforms=[Quantise("nf4"), LORATransform(r=8)]`` that is QLoRA.

    Args:
        r: the rank of what is added.
        lora_alpha: what is added is scaled by ``lora_alpha / r``.
        lora_dropout: the share of inputs that training leaves out of it.
        where: tells, of each linear layer's name in the model and itself, whether it is adapted.

    Raises:
        ValueError: the rank is no positive number.

    Example:
        >>> import torch
        >>> from thunder_frontend import jit
        >>> from thunder_transforms import LORATransform
        >>> model = jit(torch.nn.Sequential(torch.nn.Linear(16, 4)), transforms=[LORATransform(r=2)])
        >>> [name for name, parameter in model.named_parameters() if parameter.requires_grad]
        ['0.lora_a', '0.lora_b']
    """

    def __init__(self, *, r: int, lora_alpha: float = 1, lora_dropout: float = 0.0, where: Where = everywhere) -> None:
        if r < 1:
            raise ValueError(f"r={r} is no rank: it is at least 1")
        self.r, self.alpha, self.dropout, self.where = r, lora_alpha, lora_dropout, where

    def transform_module(self, model: torch.nn.Module) -> None:
        layers = [layer for layer in linear_layers(model, self.where) if not isinstance(layer, Adapted)]
        if not layers:  # a copy of a model that is adapted
            return
        for parameter in original(model).parameters():
            parameter.requires_grad_(False)
        for layer in layers:
            weight = layer.weight
            a = torch.empty(self.r, layer.in_features, dtype=weight.dtype, device=weight.device)
            b = torch.empty(layer.out_features, self.r, dtype=weight.dtype, device=weight.device)
            _start(a, b)
            layer.lora_a, layer.lora_b = torch.nn.Parameter(a), torch.nn.Parameter(b)
            layer.__dict__.update(_thunder_scale=self.alpha / self.r, _thunder_dropout=self.dropout)
            change(layer, Adapted)

    def transform_state_dict_for_submodule(
        self, model: torch.nn.Module, submodule_name: str, state_dict: dict[str, Any]
    ) -> dict[str, Any]:
        """What is loaded is computed as it stands: nothing is added to it at first."""
        layer = model.get_submodule(submodule_name)
        if not isinstance(layer, Adapted) or "weight" not in state_dict and PREFIX + "codes" not in state_dict:
            return state_dict
        a, b = (
            torch.empty_like(p, device=next(iter(state_dict.values())).device) for p in (layer.lora_a, layer.lora_b)
        )
        _start(a, b)
        return {**state_dict, "lora_a": a, "lora_b": b}

    def reverse_transform_state_dict_for_submodule(
        self, model: torch.nn.Module, submodule_name: str, state_dict: dict[str, Any]
    ) -> dict[str, Any]:
        """What is added becomes part of the weight."""
        layer = model.get_submodule(submodule_name)
        if not isinstance(layer, Adapted) or "lora_a" not in state_dict:
            return state_dict
        kept = with_weight(layer, state_dict) if isinstance(layer, Quantised) else dict(state_dict)
        added = (kept.pop("lora_b") @ kept.pop("lora_a")) * layer._thunder_scale
        return {**kept, "weight": kept["weight"] + added}
