"""Batching rules by the kind of operation, and what such rules are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from thunder_ir import OpTags, Symbol, TensorProxy
from thunder_prims.prim import Prim, Printer, R, prim
from thunder_prims.shape import batch_first
from thunder_vmap import batching_rule

__all__ = ["batch_first", "batches_elementwise", "elementwise_prim"]


def elementwise_prim(
    *tags: OpTags, method: str | tuple[str, ...] = (), printer: Printer | None = None
) -> Callable[[Callable[..., R]], Prim[R]]:
    """Make the decorated meta function an elementwise prim, which has its batching rule.

    Args:
        tags: traits that passes rely on, besides that it is elementwise.
        method, printer: see :func:`thunder_prims.prim.prim`.

    Returns:
        A decorator that returns the symbol; its name is the function's.
    """
    make = prim(OpTags.ELEMENTWISE, *tags, method=method, printer=printer)

    def make_batched(meta: Callable[..., R]) -> Prim[R]:
        symbol = make(meta)
        batches_elementwise(symbol)
        return symbol

    return make_batched


def batches_elementwise(*symbols: Symbol) -> None:
    """Give elementwise operations their batching rule.

    Where all tensors have their batch dimension at one place it stays there; else it comes to the front, and tensors
    without one are repeated along it.
    """
    for symbol in symbols:
        _register(symbol)


def _register(symbol: Symbol) -> None:
    def rule(size: Any, args: tuple[Any, ...], dims: tuple[Any, ...]) -> tuple[Any, Any]:
        places = {dim for a, dim in zip(args, dims, strict=True) if isinstance(a, TensorProxy)}
        if len(places) == 1:
            (place,) = places
            output = symbol(*args)
        else:
            place = 0
            output = symbol(
                *[batch_first(a, d, size) if isinstance(a, TensorProxy) else a for a, d in zip(args, dims, strict=True)]
            )
        return output, (place,) * len(output) if isinstance(output, tuple) else place

    rule.__name__ = rule.__qualname__ = f"{symbol.name}_batching"
    rule.__doc__ = f"Apply ``{symbol.name}`` to whole batches."
    batching_rule(symbol)(rule)
