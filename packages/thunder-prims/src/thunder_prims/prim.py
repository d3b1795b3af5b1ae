"""The decorator that makes a prim of its meta function, and the language in which rules are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from thunder_ir import BoundSymbol, Language, Namespace, OpTags, Symbol, provide_default_language

Printer = Callable[[BoundSymbol, Any], list[str]]

PRIMS = Namespace("prims", "thunder_prims")

strict = Language("prims")
"""Operators for which operands must have equal shapes and dtypes, or be numbers: nothing is hidden in a rule."""

provide_default_language(strict)


def prim(
    *tags: OpTags, method: str | tuple[str, ...] = (), printer: Printer | None = None
) -> Callable[[Callable[..., Any]], Symbol]:
    """Make the decorated meta function a prim.

    Args:
        tags: traits that passes rely on.
        method: under which names proxies have it as a method or operator in the strict language.
        printer: prints a call of it as lines of code, where that is not an ordinary call.

    Returns:
        A decorator that returns the symbol; its name is the function's.
    """

    def make(meta: Callable[..., Any]) -> Symbol:
        symbol = Symbol(
            meta.__name__,
            PRIMS,
            meta=meta,
            tags=frozenset(tags),
            language=strict,
            printer=printer,
            doc=meta.__doc__ or "",
        )
        for name in (method,) if isinstance(method, str) else method:
            strict.method(name)(symbol)
        return symbol

    return make
