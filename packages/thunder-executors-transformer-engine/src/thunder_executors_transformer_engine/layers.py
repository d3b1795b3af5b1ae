"""Linear layers in eight-bit floats: each place in a program that calls one has its scales."""

from __future__ import annotations

import torch

from thunder_executors_transformer_engine import library


class Layer:
    """One place that calls a linear layer, and what its recipe keeps for it: scales, and the history they follow from.

    Args:
        recipe: the name of a class of recipes.
    """

    def __init__(self, recipe: str) -> None:
        self.recipe_name = recipe
        self._made: dict[torch.device, _Quantizers] = {}

    def forward(self, input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        """Return ``input @ weight.T + bias``, the product of operands in eight bits."""
        state = self._state(input.device)
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
        state = self._state(input.device)
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

    def _state(self, device: torch.device) -> _Quantizers:
        if device not in self._made:
            self._made[device] = _Quantizers(self.recipe_name, device)
        return self._made[device]


class _Quantizers:
    """The quantizers of a layer on a device."""

    def __init__(self, recipe: str, device: torch.device) -> None:
        found = library.engine()
        self.recipe = found.recipe(recipe)
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


__all__ = ["Layer"]
