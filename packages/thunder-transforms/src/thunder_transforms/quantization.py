"""Weight-only quantisation of linear layers: weights are kept small, and computed with in the dtype they had."""

from __future__ import annotations

from typing import Any

import torch

from thunder_frontend import Transform
from thunder_transforms.layers import Changed, Where, change, everywhere, linear_layers
from thunder_transforms.weights import Format, Parts, format_called

PREFIX = "weight_"


class Quantised(Changed):
    """A linear layer whose weight is kept quantised: ``weight`` is what is computed with, made of it on each call."""

    _thunder_format: Format
    _thunder_dtype: torch.dtype
    in_features: int
    bias: torch.Tensor | None
    _buffers: dict[str, torch.Tensor]

    @property
    def weight(self) -> torch.Tensor:
        """The weight that the layer computes with, of shape ``(out_features, in_features)``; a constant to autograd."""
        return self._thunder_format.restored(self.kept(), self.in_features, self._thunder_dtype)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self._thunder_format.product(x, self.kept(), self.bias, self.in_features, self._thunder_dtype)

    def kept(self) -> Parts:
        """Return what is kept of the weight."""
        return parts_in(self._buffers)

    def check(self, parts: Parts) -> None:
        """Raise where this machine cannot compute with what is kept of a weight.

        Raises:
            RuntimeError: it was packed for another processor.
        """
        if not self._thunder_format.reads(parts):
            raise RuntimeError(
                f"these weights in {self._thunder_format.name!r} were packed for another processor: save what "
                "original_state_dict(model) returns, and load that with load_original_state_dict"
            )

    def _load_from_state_dict(self, state_dict: Parts, prefix: str, *rest: Any) -> None:
        self.check(parts_in({n.removeprefix(prefix): t for n, t in state_dict.items() if n.startswith(prefix)}))
        super()._load_from_state_dict(state_dict, prefix, *rest)  # type: ignore[misc]

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[misc]
        self.check(self.kept())

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


def parts_in(entries: Parts) -> Parts:
    """Return what is kept of a weight among the state of a layer."""
    return {n.removeprefix(PREFIX): t for n, t in entries.items() if n.startswith(PREFIX)}


class Quantise(Transform):
    """Keep the weights of linear layers quantised.

    The layers stay what they are to all who hold them, but ``weight`` is no parameter any more: it is computed of the
    buffers that hold it. Biases and what else the model has are left as they are, so that gradients reach the inputs.
    Where bitsandbytes is installed, its kernel restores weights in ``"nf4"``; what is kept is the same without it.

    Args:
        format: ``"int8"`` (a scale a row), ``"int4"`` or ``"nf4"`` (a scale for each 64 weights); ``"torchao-int4"``
            (a scale and a zero for each 64 weights), where torchao is installed, for weights of bfloat16 or float16
            on CPUs with a multiple of 16 rows and of 64 columns, for models that are not trained.
        where: tells, of each linear layer's name in the model and itself, whether it is quantised.

    Raises:
        ValueError: there is no such format, or it does not take a weight.
        RuntimeError: the library that it needs is not there.

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

    def transform_module(self, model: torch.nn.Module) -> None:
        for layer in linear_layers(model, self.where):
            if isinstance(layer, Quantised):
                continue
            if not self.format.takes(layer.weight):
                raise ValueError(
                    f"{self.format.name!r} does not take a weight of {layer.weight.dtype} and shape "
                    f"{tuple(layer.weight.shape)} on {layer.weight.device}; leave the layer out by where="
                )
            weight = layer._parameters.pop("weight")
            assert weight is not None
            for name, part in self.format.quantised(weight.detach()).items():
                layer.register_buffer(PREFIX + name, part)
            layer.__dict__.update(_thunder_format=self.format, _thunder_dtype=weight.dtype)
            change(layer, Quantised)

    def transform_state_dict_for_submodule(
        self, model: torch.nn.Module, submodule_name: str, state_dict: dict[str, Any]
    ) -> dict[str, Any]:
        layer = model.get_submodule(submodule_name)
        if not isinstance(layer, Quantised) or "weight" not in state_dict:
            return state_dict
        kept = {n: t for n, t in state_dict.items() if n != "weight"}
        parts = layer._thunder_format.quantised(state_dict["weight"])
        return {**{PREFIX + n: t for n, t in parts.items()}, **kept}

    def reverse_transform_state_dict_for_submodule(
        self, model: torch.nn.Module, submodule_name: str, state_dict: dict[str, Any]
    ) -> dict[str, Any]:
        layer = model.get_submodule(submodule_name)
        return with_weight(layer, state_dict) if isinstance(layer, Quantised) else state_dict


def with_weight(layer: Quantised, entries: Parts) -> Parts:
    """Return entries of the state of a layer with the weight in place of what is kept of it."""
    parts = parts_in(entries)
    if not parts:
        return entries
    kept = {n: t for n, t in entries.items() if not n.startswith(PREFIX)}
    return {"weight": layer._thunder_format.restored(parts, layer.in_features, layer._thunder_dtype), **kept}
