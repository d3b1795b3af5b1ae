"""Thunder's own operations called in a program: symbols, those of executors too, and functions of the languages."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch

from thunder_frontend._acquiring import Acquiring
from thunder_frontend._library_code.native_code import is_of_language
from thunder_guards.own_code import name_in
from thunder_ir import OpTags, Symbol, TensorProxy, flat_proxies, map_values, substitute
from thunder_lang import core
from thunder_lang.numpy import numpy
from thunder_torch.convert import from_torch_device, from_torch_dtype
from thunder_tracing import FOLLOWS

LANGUAGES = {"thunder_lang.numpy": numpy, "thunder_lang": core}
"""What operators mean in the functions of packages, the innermost first."""


def own_operation(acquisition: Acquiring, function: Any) -> Callable[..., Any] | None:
    """Return what a call of one of Thunder's own operations does; ``None`` for all other callables.

    A symbol that stands for a function of PyTorch's does what that does. All others compute values: what they return
    shares no memory with anything, however it is made.
    """
    if isinstance(function, Symbol):
        if function.origin is not None and function.executor is None:
            return functools.partial(_as_torch, acquisition, function)
        return functools.partial(_call_symbol, acquisition, function)
    if is_of_language(function):
        return functools.partial(_call_function, acquisition, function)
    return None


def in_place_of(acquisition: Acquiring, symbol: Symbol) -> Callable[..., Any]:
    """Return what a call of a function does that an executor replaces by an operator of its own."""

    def called(*args: Any, **kwargs: Any) -> Any:
        with torch._C.DisableTorchFunction():
            values, named = acquisition.handed_over(symbol.name, (args, kwargs))
            return acquisition.wrapped(acquisition.on_values(symbol, values, named), args)

    return called


def _as_torch(acquisition: Acquiring, symbol: Symbol, *args: Any, **kwargs: Any) -> Any:
    """Do what the function of PyTorch's does that a symbol stands for."""
    with torch._C.DisableTorchFunction():
        return acquisition(symbol.origin, *acquisition.handed_over(symbol.name, (args, kwargs), acquisition.traced))


def _call_symbol(acquisition: Acquiring, symbol: Symbol, *args: Any, **kwargs: Any) -> Any:
    """Record a call of a symbol."""
    with torch._C.DisableTorchFunction():
        given = acquisition.handed_over(symbol.name, (args, kwargs))
        if symbol.executor is None:
            given = map_values(_in_own_types, given)
        made = _computed(acquisition, given, lambda: acquisition.on_values(symbol, *given))
        if FOLLOWS in symbol.tags:
            for tensor in (*args, made):
                if isinstance(tensor, torch.Tensor):
                    acquisition.traced(tensor)._memory.lent = True
        return made


def _call_function(acquisition: Acquiring, function: types.FunctionType, *args: Any, **kwargs: Any) -> Any:
    """Record what a function of a language does."""
    builder = acquisition.builder
    module = name_in(function.__globals__)
    with torch._C.DisableTorchFunction(), ExitStack() as stack:
        values, named = map_values(_in_own_types, acquisition.handed_over(function.__name__, (args, kwargs)))
        if acquisition.levels.gone:
            acquisition.levels.check((values, named))
        if not torch.is_grad_enabled():
            stack.enter_context(builder.tagged(OpTags.CONSTANT_FOR_DERIVATIVE))
        stack.callback(setattr, builder, "language", builder.language)
        builder.language = next(found for start, found in LANGUAGES.items() if module.startswith(start))
        recorded = functools.partial(acquisition.settled, lambda: function(*values, **named))
        return _computed(acquisition, (values, named), recorded)


def _computed(acquisition: Acquiring, given: object, record: Callable[[], Any]) -> Any:
    """Return traced tensors for what is recorded, each with memory of its own, without gaps where it was a view."""
    recorded = acquisition.builder.bound_symbols
    count = len(recorded)
    output = record()
    shared = {p.name for p in flat_proxies(given)}
    for bound in recorded[count:]:
        views = bound.has_tag(OpTags.VIEW) and bound.inputs and bound.inputs[0].name in shared
        shared.update([p.name for p in bound.outputs if views])
    copies = {
        p.name: acquisition.on_values(torch.clone, (p,), {"memory_format": torch.contiguous_format})
        for p in flat_proxies(output)
        if isinstance(p, TensorProxy) and p.name in shared
    }
    return acquisition.wrapped(substitute(output, copies), ())


def _in_own_types(value: object) -> Any:
    """Return what Thunder has in the place of a dtype or device of PyTorch's."""
    if isinstance(value, torch.dtype):
        return from_torch_dtype(value)
    return from_torch_device(value) if isinstance(value, torch.device) else value
