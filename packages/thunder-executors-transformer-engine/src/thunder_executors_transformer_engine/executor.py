"""The executor of Transformer Engine."""

from __future__ import annotations

import itertools
import math
from typing import Any

import torch

from thunder_executors import Declined, OperatorExecutor, takes_dtypes, takes_tensors
from thunder_executors_transformer_engine._version import __version__
from thunder_executors_transformer_engine.availability import missing
from thunder_executors_transformer_engine.layers import Layer
from thunder_executors_transformer_engine.scales import Recipe
from thunder_ir import OpTags, TensorProxy, dtypes
from thunder_torch import symbol_of

FLOATS = (dtypes.float32, dtypes.float16, dtypes.bfloat16)
RECIPES = {"DelayedScaling": (8, 16), "Float8CurrentScaling": (8, 16), "MXFP8BlockScaling": (32, 32)}
"""For the names of recipes, what the numbers of rows, and of the elements of each, have to be multiples of."""


class TransformerEngineExecutor(OperatorExecutor):
    """Runs linear layers in eight-bit floats. What they compute is not what eager computes: hence it is asked by name.

    Args:
        name: under which it is asked for.
        recipe: ``"DelayedScaling"``, ``"Float8CurrentScaling"`` or ``"MXFP8BlockScaling"``: classes of the library; or
            an instance of one of them.
        devices: the types of devices whose tensors it takes.

    Raises:
        ValueError: there is no such recipe.

    Example:
        >>> from thunder_executors_transformer_engine import TransformerEngineExecutor
        >>> TransformerEngineExecutor("mine", recipe="Scaling")
        Traceback (most recent call last):
        ValueError: there is no recipe 'Scaling': there are DelayedScaling, Float8CurrentScaling, MXFP8BlockScaling
    """

    options = ("fp8_recipe",)

    def __init__(self, name: str, recipe: Recipe = "DelayedScaling", devices: tuple[str, ...] = ("cuda",)) -> None:
        self.kind = recipe if isinstance(recipe, str) else type(recipe).__name__
        if self.kind not in RECIPES:
            raise ValueError(f"there is no recipe {recipe!r}: there are {', '.join(RECIPES)}")
        super().__init__(
            name, version=__version__, missing=missing, install="pip install 'transformer-engine[pytorch]'",
            default=False, priority=20,
        )  # fmt: skip
        self.recipe = recipe
        self.devices = devices
        self._variants = [self]
        self._numbers = itertools.count()
        self.runs_by_rule(symbol_of(torch.nn.functional.linear), self.linear, self.takes)

    def configured(self, **options: Any) -> TransformerEngineExecutor:
        """Return the executor with another recipe; the same one for the same recipe.

        Args:
            options: ``fp8_recipe``, as ``recipe`` of the class.
        """
        recipe = options["fp8_recipe"]
        for known in self._variants:
            if known.recipe is recipe or isinstance(recipe, str) and known.recipe == recipe:
                return known
        self._variants.append(TransformerEngineExecutor(self.name, recipe, self.devices))
        return self._variants[-1]

    def takes(self, input: TensorProxy, weight: TensorProxy, bias: Any = None) -> bool | Declined:
        """Whether it takes this layer: on the device, of one dtype, of sizes that are multiples of what is needed."""
        answer = takes_tensors(input, weight, bias, on=self.devices) and takes_dtypes(input, of=FLOATS)
        if not answer:
            return answer
        if weight.ndim != 2 or input.ndim < 2:
            return Declined("it takes inputs of at least two dimensions, and weights of two")
        if any([t is not None and t.dtype is not input.dtype for t in (weight, bias)]):
            return Declined("weight and bias have another dtype than the input")
        rows, columns = RECIPES[self.kind]
        sizes = {"rows of the input": (math.prod(input.shape[:-1]), rows), "features": (input.shape[-1], columns)}
        sizes["outputs"] = (weight.shape[0], columns)
        for name, (size, multiple) in sizes.items():
            if size == 0 or size % multiple:
                return Declined(f"{name} are {size}, and {self.kind} needs a multiple of {multiple}")
        return True

    def linear(self, input: TensorProxy, weight: TensorProxy, bias: Any = None) -> tuple[Any, Any]:
        """Save the operands."""
        layer, number = Layer(self.recipe), next(self._numbers)
        forward = self.register_operator(
            f"linear_{number}",
            meta=lambda x, w, b: x.like(shape=(*x.shape[:-1], w.shape[0])),
            fn=layer.forward,
            tags=(OpTags.MATMUL,),
        )
        backward = self.register_operator(
            f"linear_gradient_{number}",
            meta=lambda dy, x, w, has_bias: (
                x.like(requires_grad=False),
                w.like(requires_grad=False),
                *([w.like(shape=w.shape[:1], requires_grad=False)] if has_bias else []),
            ),
            fn=layer.backward,
            tags=(OpTags.MATMUL,),
        )

        def pullback(dy: TensorProxy) -> tuple[Any, ...]:
            found: tuple[Any, ...] = backward(dy, input, weight, bias is not None)
            return found

        return forward(input, weight, bias), pullback


executor = TransformerEngineExecutor("transformer_engine")

__all__ = ["RECIPES", "TransformerEngineExecutor", "executor"]
