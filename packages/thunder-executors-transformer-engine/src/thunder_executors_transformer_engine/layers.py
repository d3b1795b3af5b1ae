"""Linear layers in eight-bit floats."""

from __future__ import annotations

import torch

from thunder_executors_transformer_engine import library
from thunder_executors_transformer_engine.scales import Kept, Quantizers, Recipe, kept_for


class Layer:
    """One place that calls a linear layer.

    What its recipe keeps belongs to the weight, if that is a parameter; else, as with weights that are cast before, to
    the place.

    Args:
        recipe: by which it scales.
    """

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self._kept = Kept()

    def forward(self, input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        """Return ``input @ weight.T + bias``, the product of operands in eight bits."""
        state = self._quantizers(weight)
        rows = input.reshape(-1, input.shape[-1])
        for quantizer in (state.input, state.weight):
            quantizer.set_usage(rowwise=True, columnwise=False)
        found = library.engine().forward(
            rows, weight, bias=bias, dtype=weight.dtype, with_quantized_compute=True,
            input_quantizer=state.input, weight_quantizer=state.weight,
        )  # fmt: skip
        state.updated(forward=True)
        out: torch.Tensor = found[0]
        return out.reshape(*input.shape[:-1], weight.shape[0])

    def backward(
        self, dy: torch.Tensor, input: torch.Tensor, weight: torch.Tensor, bias: bool
    ) -> tuple[torch.Tensor, ...]:
        """Return the gradients of input, weight and, if there is one, bias."""
        state = self._quantizers(weight)
        dy_rows, rows = dy.reshape(-1, dy.shape[-1]), input.reshape(-1, input.shape[-1])
        for quantizer, usage in (
            (state.gradient, (True, True)),
            (state.input, (False, True)),
            (state.weight, (False, True)),
        ):
            quantizer.set_usage(rowwise=usage[0], columnwise=usage[1])
        dx, dweight = library.engine().backward(
            dy_rows, rows, weight, input_requires_grad=True, weight_requires_grad=True, dtype=weight.dtype,
            with_quantized_compute=True, input_quantizer=state.input, weight_quantizer=state.weight,
            grad_output_quantizer=state.gradient,
        )  # fmt: skip
        state.updated(forward=False)
        found = (dx.reshape(input.shape), dweight)
        return (*found, dy_rows.sum(0)) if bias else found

    def _quantizers(self, weight: torch.Tensor) -> Quantizers:
        return (kept_for(weight) or self._kept).of(self.recipe, weight.device)


__all__ = ["Layer"]
