"""The decorator for operations that are made of prims, which executors may run as one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from thunder_ir import OpTags, Symbol
from thunder_prims.prim import PRIMS, strict


def fused(*tags: OpTags) -> Callable[[Callable[..., Any]], Symbol]:
    """Make an operation of the decorated function, which is its decomposition into prims.

    It is not a prim: a transform that has no rule for it, and an executor that has no kernel for it, take the
    decomposition. Rules for it, where they stand below it, save what differentiating the decomposition would waste.

    Args:
        tags: traits that passes rely on.

    Returns:
        A decorator that returns the symbol; its name is the function's.
    """

    def make(body: Callable[..., Any]) -> Symbol:
        return Symbol(
            body.__name__, PRIMS, decomposition=body, tags=frozenset(tags), language=strict, doc=body.__doc__ or ""
        )

    return make
