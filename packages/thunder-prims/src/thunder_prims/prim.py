"""The decorator that makes a prim of its meta function, and the language in which rules are written."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any, Generic, TypeVar

from thunder_ir import BoundSymbol, Language, Namespace, Symbol, provide_default_language

R = TypeVar("R")
Printer = Callable[[BoundSymbol, Any], list[str]]

PRIMS = Namespace("prims", "thunder_prims")

strict = Language("prims")
"""Operators for which operands must have equal shapes and dtypes, or be numbers: nothing is hidden in a rule."""

provide_default_language(strict)


class Prim(Symbol, Generic[R]):
    """A symbol whose calls are recorded with all arguments, positional ones only, however they are written.

    So rules, executors and passes find every argument at its place.
    """

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> R:
        """Record a call and return its output proxies.

        Raises:
            TypeError: an argument is missing, given twice or not known.
        """
        assert self.meta is not None, "a prim has a meta function"
        if kwargs or len(args) != _count_parameters(self.meta):
            args = _positional(self.name, self.meta, args, kwargs)
        found: R = super().__call__(*args)
        return found


@cache
def _count_parameters(meta: Callable[..., Any]) -> int:
    return len(inspect.signature(meta).parameters)


def _positional(
    operation: str, meta: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, ...]:
    try:
        bound = inspect.signature(meta).bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{operation}: {error}") from None
    bound.apply_defaults()
    return bound.args


def prim(
    *tags: Any, method: str | tuple[str, ...] = (), printer: Printer | None = None, namespace: Namespace = PRIMS
) -> Callable[[Callable[..., R]], Prim[R]]:
    """Make the decorated meta function a prim.

    Args:
        tags: traits that passes rely on.
        method: under which names proxies have it as a method or operator in the strict language.
        printer: prints a call of it as lines of code, where that is not an ordinary call.
        namespace: where generated code finds it: another package has one of its own.

    Returns:
        A decorator that returns the symbol; its name is the function's.
    """

    def make(meta: Callable[..., R]) -> Prim[R]:
        symbol: Prim[R] = Prim(
            meta.__name__,
            namespace,
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
