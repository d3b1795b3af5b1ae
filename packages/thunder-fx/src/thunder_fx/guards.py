"""Which sizes a graph with symbolic sizes is right for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch


def fits_of(values: Sequence[Any]) -> Callable[..., bool]:
    """Return whether a graph is right for given integers: a function of these.

    Args:
        values: those in ``meta["val"]`` of the graph's placeholders, once it is made; the integers among them are what
            the function takes, in order.
    """
    sizes = [value for value in values if isinstance(value, torch.SymInt)]
    if not sizes:
        return lambda: True
    shapes: Any = sizes[0].node.shape_env
    guards = shapes.produce_guards_expression(sizes)
    if guards is None:
        return lambda *integers: True
    code = compile(guards, "<guards of symbolic sizes>", "eval")  # once: it evaluates text and code alike
    return lambda *integers: bool(shapes.evaluate_guards_expression(code, integers))


__all__ = ["fits_of"]
