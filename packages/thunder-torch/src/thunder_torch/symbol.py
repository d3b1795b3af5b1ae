"""The decorator that makes a symbol of a PyTorch function, and the table that finds it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from thunder_ir import DuplicateRuleError, IntegerProxy, Language, OpTags, Symbol, TensorProxy
from thunder_ir.builder import current_builder
from thunder_lang.language import core

from thunder_torch.metadata import metadata_of, tensors_of
from thunder_torch.opaque import LTORCH


class _Symbols(dict[Any, Symbol]):
    """The table from PyTorch's callables to symbols; it refuses a second definition."""

    def define(self, function: Any, symbol: Symbol) -> None:
        before = self.get(function)
        if before is not None and before is not symbol:
            raise DuplicateRuleError(f"{function} is defined already, as {before.id}")
        self[function] = symbol


SYMBOLS = _Symbols()


def torchsymbol(
    *callables: Any,
    name: str = "",
    tags: Iterable[OpTags] = (),
    meta: Callable[..., Any] | None = None,
    language: Language = core,
) -> Callable[[Callable[..., Any]], Symbol]:
    """Make the decorated function the decomposition of PyTorch functions.

    Args:
        callables: the functions and methods that it stands for, all of the same signature. The first is what runs it
            whole and what its metadata are asked of; where methods take their sizes one by one, that is the method.
        name: of the symbol, if not the decorated function's.
        tags: traits that passes rely on.
        meta: computes metadata more cheaply than PyTorch does. It may return ``NotImplemented`` for calls that it does
            not know.
        language: what operators mean inside the decomposition.

    Returns:
        A decorator that returns the symbol.

    Raises:
        DuplicateRuleError: one of the callables has a symbol already.

    Example:
        >>> import torch
        >>> from thunder_torch import find_symbol
        >>> find_symbol(torch.Tensor.add) is find_symbol(torch.add)
        True
    """
    origin = callables[0] if callables else None

    def make(decomposition: Callable[..., Any]) -> Symbol:
        symbol = Symbol(
            name or decomposition.__name__,
            LTORCH,
            meta=_meta(origin, decomposition, meta, language),
            decomposition=decomposition,
            tags=frozenset(tags),
            language=language,
            origin=origin,
            doc=decomposition.__doc__ or "",
        )
        for function in callables:
            SYMBOLS.define(function, symbol)
        return symbol

    return make


def _meta(
    origin: Any, decomposition: Callable[..., Any], quick: Callable[..., Any] | None, language: Language
) -> Callable[..., Any] | None:
    """Return the meta function: the quick one if it knows, the decomposition for symbolic shapes, else PyTorch."""
    if origin is None:
        return quick

    def meta(*args: Any, **kwargs: Any) -> Any:
        if quick is not None:
            output = quick(*args, **kwargs)
            if output is not NotImplemented:
                return output
        if _has_symbols(args) or (kwargs and _has_symbols(tuple(kwargs.values()))):
            return _by_decomposition(decomposition, language, args, kwargs)
        return metadata_of(origin, args, kwargs)

    return meta


def _has_symbols(values: Any) -> bool:
    """Whether a symbolic integer is among arguments or the dimensions of tensors among them."""
    for value in values:
        cls = value.__class__
        if cls is TensorProxy:
            for dimension in value.shape:
                if dimension.__class__ is not int:
                    return True
        elif cls is IntegerProxy or ((cls is tuple or cls is list) and _has_symbols(value)):
            return True
    return False


def _by_decomposition(
    decomposition: Callable[..., Any], language: Language, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    builder = current_builder()
    before = builder.recording, builder.language
    builder.recording, builder.language = False, language
    try:
        output = decomposition(*args, **kwargs)
    finally:
        builder.recording, builder.language = before
    if not torch.is_grad_enabled() or not any(t.requires_grad for t in tensors_of(args, kwargs)):
        return output
    return output


def find_symbol(function: Any) -> Symbol | None:
    """Return the symbol that a PyTorch function, method or property is defined as, or ``None``.

    Example:
        >>> import torch
        >>> from thunder_torch import find_symbol
        >>> find_symbol(torch.nn.functional.linear)
        <Symbol ltorch.linear>
    """
    try:
        return SYMBOLS.get(function)
    except TypeError:  # unhashable
        return None


__all__ = ["SYMBOLS", "find_symbol", "torchsymbol"]
