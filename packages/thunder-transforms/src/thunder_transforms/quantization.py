"""Weight-only quantisation of linear layers: weights are kept small, and computed with in the dtype they had."""

from __future__ import annotations

from typing import Any

import torch

from thunder_frontend import ThunderModule, Transform
from thunder_transforms.layers import Changed, Where, change, everywhere, linear_layers
from thunder_transforms.weights import Format, Parts, format_called

PREFIX = "weight_"


class Quantised(Changed):
    """A linear layer whose weight is kept quantised: ``weight`` is what is computed with, made of it on each call."""

    _thunder_format: Format
    _thunder_dtype: torch.dtype
    in_features: int
    _buffers: dict[str, torch.Tensor]

    @property
    def weight(self) -> torch.Tensor:
        """The weight that the layer computes with, of shape ``(out_features, in_features)``; a constant to autograd."""
        return self._thunder_format.restored(self.kept(), self.in_features, self._thunder_dtype)

    def kept(self) -> Parts:
        """Return what is kept of the weight."""
        return {n.removeprefix(PREFIX): t for n, t in self._buffers.items() if n.startswith(PREFIX)}

    def quantise(self, weight: torch.Tensor) -> None:
        """Keep this weight from now on."""
        for name, part in self._thunder_format.quantised(weight.detach()).items():
            self._buffers[PREFIX + name] = part

    def reset_parameters(self) -> None:
        """Draw new parameters, as a linear layer does."""
        bias = getattr(self, "bias", None)
        device = self.kept()["codes"].device
        fresh = torch.nn.Linear(self.in_features, self.out_features, bias is not None, device, self._thunder_dtype)  # type: ignore[attr-defined]
        self.quantise(fresh.weight)
        if bias is not None:
            with torch.no_grad():
                bias.copy_(fresh.bias)


class Quantise(Transform):
    """Keep the weights of linear layers quantised.

    The layers stay what they are to all who hold them, but ``weight`` is no parameter any more: it is computed of the
    buffers that hold it. Biases and what else the model has are left as they are, so that gradients reach the inputs.
    Where bitsandbytes is installed, its kernel restores weights in ``"nf4"``; what is kept is the same without it.

    Args:
        format: ``"int8"`` (a scale a row), ``"int4"`` or ``"nf4"`` (a scale for each 64 weights).
        where: tells, of each linear layer's name in the model and itself, whether it is quantised.

    Raises:
        ValueError: there is no such format.

    Example:
        >>> import torch
        >>> from thunder_frontend import jit
        >>> from thunder_transforms import Quantise
        >>> model = jit(torch.nn.Sequential(torch.nn.Linear(64, 64)), transforms=[Quantise("int8")])
        >>> model[0].weight_codes.dtype, len(list(model.parameters()))
        (torch.int8, 1)
        >>> model(torch.ones(1, 64)).shape
        torch.Size([1, 64])
    """

    def __init__(self, format: str = "int8", where: Where = everywhere) -> None:
        self.format, self.where = format_called(format), where

    def transform_module(self, model: ThunderModule) -> None:
        for layer in linear_layers(model, self.where):
            if isinstance(layer, Quantised):
                continue
            weight = layer._parameters.pop("weight")
            assert weight is not None
            for name, part in self.format.quantised(weight.detach()).items():
                layer.register_buffer(PREFIX + name, part)
            layer.__dict__.update(_thunder_format=self.format, _thunder_dtype=weight.dtype)
            change(layer, Quantised)

    def transform_state_dict_for_submodule(
        self, model: ThunderModule, submodule_name: str, state_dict: dict[str, Any]
    ) -> dict[str, Any]:
        layer = model.get_submodule(submodule_name)
        if not isinstance(layer, Quantised) or "weight" not in state_dict:
            return state_dict
        kept = {n: t for n, t in state_dict.items() if n != "weight"}
        parts = self.format.quantised(state_dict["weight"])
        return {**{PREFIX + n: t for n, t in parts.items()}, **kept}

    def reverse_transform_state_dict_for_submodule(
        self, model: ThunderModule, submodule_name: str, state_dict: dict[str, Any]
    ) -> dict[str, Any]:
        layer = model.get_submodule(submodule_name)
        return with_weight(layer, state_dict) if isinstance(layer, Quantised) else state_dict


def with_weight(layer: Quantised, entries: Parts) -> Parts:
    """Return entries of the state of a layer with the weight in place of what is kept of it."""
    parts = {n.removeprefix(PREFIX): t for n, t in entries.items() if n.startswith(PREFIX)}
    if not parts:
        return entries
    kept = {n: t for n, t in entries.items() if not n.startswith(PREFIX)}
    return {"weight": layer._thunder_format.restored(parts, layer.in_features, layer._thunder_dtype), **kept}
