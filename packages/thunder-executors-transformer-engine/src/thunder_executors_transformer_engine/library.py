"""What is called of Transformer Engine: none of it is promised to stay, so signatures are looked at before."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

FORWARD = ("bias", "dtype", "with_quantized_compute", "input_quantizer", "weight_quantizer")
BACKWARD = (
    "input_requires_grad", "weight_requires_grad", "dtype", "with_quantized_compute", "input_quantizer",
    "weight_quantizer", "grad_output_quantizer",
)  # fmt: skip


class InterfaceError(ImportError):
    """Transformer Engine is of a version that lacks what is called of it; the message says what."""


@dataclass(frozen=True, slots=True)
class Engine:
    """The functions that are called.

    Args:
        forward: computes a linear layer.
        backward: computes its gradients.
        state: makes what a recipe keeps for the quantizers of a layer.
        update: brings the scales of a delayed recipe up to date.
        largest: the largest number of a recipe's format.
        recipes: the module of recipes.
    """

    forward: Callable[..., Any]
    backward: Callable[..., Any]
    state: Callable[..., Any]
    update: Callable[..., Any]
    largest: Callable[..., Any]
    recipes: Any

    def recipe(self, name: str) -> Any:
        """Return a new recipe by its class's name, such as ``"DelayedScaling"``.

        Raises:
            InterfaceError: there is none.
        """
        found = getattr(self.recipes, name, None)
        if found is None:
            raise InterfaceError(f"Transformer Engine has no recipe {name}")
        return found()


@cache
def engine() -> Engine:
    """Return the functions; the first call imports the library.

    Raises:
        InterfaceError: one of them is missing, or does not take what it is called with.
    """
    torch_part = import_module("transformer_engine.pytorch")
    try:
        states = import_module("transformer_engine.pytorch.quantization")
    except ModuleNotFoundError:  # before 2.9
        states = import_module("transformer_engine.pytorch.fp8")
    return of_modules(torch_part, states, import_module("transformer_engine.common.recipe"))


def of_modules(torch_part: Any, states: Any, recipes: Any) -> Engine:
    """Return the functions of these modules of the library."""
    try:
        linear = torch_part.ops.BasicLinear
        found = Engine(
            linear._functional_forward, linear._functional_backward, states.RecipeState.create,
            states._amax_and_scale_update, states.get_fp8_max, recipes,
        )  # fmt: skip
    except AttributeError as error:
        raise InterfaceError(f"Transformer Engine lacks what is called of it: {error}") from error
    _check(found.forward, FORWARD)
    _check(found.backward, BACKWARD)
    _check(found.state, ("mode", "num_quantizers", "device"))
    return found


def _check(function: Callable[..., Any], keywords: Collection[str]) -> None:
    lacking = sorted(set(keywords) - inspect.signature(function).parameters.keys())
    if lacking:
        raise InterfaceError(
            f"{getattr(function, '__name__', function)} of Transformer Engine takes no {', '.join(lacking)}"
        )


__all__ = ["BACKWARD", "FORWARD", "Engine", "InterfaceError", "engine", "of_modules"]
