"""The decorator that makes a symbol of a PyTorch function, and the table that finds it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial, wraps
from typing import Any

import torch

from thunder_ir import (
    DuplicateRuleError,
    IntegerProxy,
    Language,
    OpTags,
    Symbol,
    TensorProxy,
    UnknownNumberError,
    current_builder,
)
from thunder_lang import clone, core, default_dtype
from thunder_torch.by_decomposition import told_by
from thunder_torch.convert import from_torch_dtype
from thunder_torch.metadata import metadata_of
from thunder_torch.names import LTORCH, OF_NUMPY
from thunder_torch.opaque import call_of, drawing_call, failing, opaque_call
from thunder_torch.randomness import draws
from thunder_torch.sized import TorchSymbol
from thunder_torch.traits import Trait, state
from thunder_torch.views import view_argument


class _Symbols(dict[Any, Symbol]):
    """The table from PyTorch's callables to symbols; it refuses a second definition."""

    def define(self, function: Any, symbol: Symbol) -> None:
        before = self.get(function)
        if before is not None and before is not symbol:
            raise DuplicateRuleError(f"{function} is defined already, as {before.id}")
        self[function] = symbol


SYMBOLS = _Symbols()


def BY_DECOMPOSITION(*args: Any, **kwargs: Any) -> Any:  # noqa: N802  (a mark that is passed as a meta function)
    """Mark a symbol whose metadata its decomposition tells, PyTorch's fake tensors not knowing them."""
    raise NotImplementedError("a mark, not a meta function")


def torchsymbol(
    *callables: Any,
    name: str = "",
    tags: Iterable[OpTags] = (),
    meta: Callable[..., Any] | None = None,
    language: Language = core,
    traits: Iterable[Trait] = (),
) -> Callable[[Callable[..., Any]], Symbol]:
    """Make the decorated function the decomposition of PyTorch functions.

    Args:
        callables: the functions and methods that it stands for, all of the same signature. The first is what runs it
            whole and what its metadata are asked of; where methods take their sizes one by one, that is the method.
        name: of the symbol, if not the decorated function's.
        tags: traits that passes rely on.
        meta: computes metadata more cheaply than PyTorch does. It may return ``NotImplemented`` for calls that it does
            not know. With :func:`BY_DECOMPOSITION` only the decomposition is asked.
        language: what operators mean inside the decomposition.
        traits: what is so of the functions whatever they decompose into, and their schemas do not say.

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
    tags = frozenset(tags)
    state(*callables, traits=(*traits, *([Trait.DRAWS] if OpTags.RANDOM in tags else [])))

    def make(body: Callable[..., Any]) -> Symbol:
        decomposition = _decomposition(origin, body)
        symbol = TorchSymbol(
            name or body.__name__,
            LTORCH,
            meta=_meta(origin, decomposition, meta, language, tags),
            decomposition=decomposition,
            tags=tags,
            language=language,
            origin=origin,
            doc=body.__doc__ or "",
        )
        for function in callables:
            SYMBOLS.define(function, symbol)
        return symbol

    return make


_FIRST = ("input", "self", "x")


def _decomposition(origin: Any, body: Callable[..., Any]) -> Callable[..., Any]:
    """Return the body as a decomposition: it takes PyTorch's other names of arguments, and runs under its defaults.

    A body that returns ``NotImplemented`` for some arguments leaves these calls to PyTorch, and so does one that would
    have to know a size which only the run of the program tells. One that returns what it was given, because it has
    nothing to do for such sizes, returns a copy where PyTorch does.
    """

    @cache  # of most operations nobody asks
    def copies() -> bool:
        return origin is not None and view_argument(origin) is None

    @cache
    def parameters_of_body() -> Mapping[str, inspect.Parameter]:
        return inspect.signature(body).parameters

    def renamed(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        parameters = parameters_of_body()
        takes_any = any([p.kind is p.VAR_KEYWORD for p in parameters.values()])
        kwargs = {OF_NUMPY.get(k, k): v for k, v in kwargs.items() if k != "out" or v is not None}
        for name in _FIRST:
            if name in kwargs and name not in parameters and not takes_any:
                args = (kwargs.pop(name), *args)
        if "other" in kwargs and "other" not in parameters and len(args) == 1:
            kwargs[list(parameters)[1] if len(parameters) > 1 else ""] = kwargs.pop("other")
        return args, kwargs

    def run(*args: Any, **kwargs: Any) -> Any:
        given, named = renamed(args, kwargs) if kwargs else (args, kwargs)
        count = len(current_builder().bound_symbols)
        try:
            output = body(*given, **named)
        except UnknownNumberError:
            if origin is None:
                raise
            output = NotImplemented
            del current_builder().bound_symbols[count:]
        if output is NotImplemented and origin is not None:
            call, values = call_of(origin, args, kwargs)
            with current_builder().tagged(*failing(origin)):
                return (drawing_call if draws(origin, args, kwargs) else opaque_call)(call, *values)
        return _of_its_own(output, (*args, *kwargs.values())) if copies() else output

    @wraps(body)
    def decomposition(*args: Any, **kwargs: Any) -> Any:
        if torch.get_default_dtype() is torch.float32:
            return run(*args, **kwargs)
        with default_dtype(from_torch_dtype(torch.get_default_dtype())):
            return run(*args, **kwargs)

    return decomposition


def _of_its_own(output: Any, given: Sequence[Any]) -> Any:
    """Return ``output`` with copies of the tensors in it that were given themselves."""
    if isinstance(output, TensorProxy):
        for value in given:
            if output is value or isinstance(value, (tuple, list)) and any([output is item for item in value]):
                return clone(output)
    elif isinstance(output, tuple):
        items = [_of_its_own(item, given) for item in output]
        if any([item is not before for item, before in zip(items, output, strict=True)]):
            return output._make(items) if hasattr(output, "_make") else output.__class__(items)
    return output


def getter(name: str) -> Callable[..., Any]:
    """Return what reads an attribute of tensors, as PyTorch names it to ``__torch_function__``."""
    read: Callable[..., Any] = getattr(torch.Tensor, name).__get__
    return read


def structured(kind: Callable[..., Any], values: Sequence[TensorProxy]) -> Any:
    """Return several results under the names that PyTorch gives them; its type is said to hold tensors alone."""
    return kind(values)


def composed(
    function: Callable[..., Any],
    *callables: Any,
    tags: Iterable[OpTags] = (),
    name: str = "",
    traits: Iterable[Trait] = (),
) -> Symbol:
    """Return the symbol of PyTorch functions that a function of the core language computes as it is.

    Args:
        function: of :mod:`thunder_lang`, with PyTorch's arguments in PyTorch's order.
        callables: as for :func:`torchsymbol`.
        tags: traits that passes rely on.
        name: of the symbol, if not the function's.
        traits: as for :func:`torchsymbol`.
    """

    @wraps(function)
    def of_tensors(*args: Any, **kwargs: Any) -> Any:
        if any([isinstance(a, TensorProxy) for a in args]) or any(
            [isinstance(a, TensorProxy) for a in kwargs.values()]
        ):
            return function(*args, **kwargs)
        return NotImplemented  # of two numbers PyTorch makes a tensor, too

    return torchsymbol(*callables, name=name or function.__name__, tags=tags, traits=traits)(of_tensors)


def requires_gradient(*values: Any) -> bool:
    """Whether a derivative may go through a call with these arguments: PyTorch refuses some of which there is none."""
    return any([isinstance(v, TensorProxy) and v.requires_grad and v.dtype.is_inexact for v in values])


def _meta(
    origin: Any,
    decomposition: Callable[..., Any],
    quick: Callable[..., Any] | None,
    language: Language,
    tags: frozenset[OpTags],
) -> Callable[..., Any] | None:
    """Return the meta function: the quick one if it knows, the decomposition for symbolic shapes, else PyTorch."""
    if origin is None or quick is BY_DECOMPOSITION:
        return None if quick is BY_DECOMPOSITION else quick

    @cache
    def quickly() -> Callable[..., Any] | None:
        return told_by(partial(_by_decomposition, decomposition, language), origin, tags)

    def meta(*args: Any, **kwargs: Any) -> Any:
        if quick is not None:
            try:
                output = quick(*args, **kwargs)
            except UnknownNumberError:
                output = NotImplemented
            if output is not NotImplemented:
                return output
        if _has_symbols(args) or (kwargs and _has_symbols(tuple(kwargs.values()))):
            return _by_decomposition(decomposition, language, *args, **kwargs)
        return metadata_of(origin, args, kwargs, quickly())

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


def _by_decomposition(decomposition: Callable[..., Any], language: Language, /, *args: Any, **kwargs: Any) -> Any:
    builder = current_builder()
    before = builder.recording, builder.language
    builder.recording, builder.language = False, language
    try:
        return decomposition(*args, **kwargs)
    finally:
        builder.recording, builder.language = before


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
