"""Torch functions that ask for the values of a tensor: answered where these are known, and else refused."""

from __future__ import annotations

from numbers import Number
from typing import Any

import torch

from thunder_guards.errors import DataDependentError
from thunder_ir import NumberProxy
from thunder_torch.traits import Trait, state
from thunder_torch.unknown_sizes import has_unknown_sizes
from thunder_tracing.tensors._handlers import answers, answers_each
from thunder_tracing.tensors.calls import Calls
from thunder_tracing.tensors.sizes import SymbolicSize

T = torch.Tensor

VALUE = (
    "Python needs the value of a tensor here, which is known only when the program runs. Keep the choice in tensors "
    "(torch.where, masks), pass the number as an argument, or compile the parts before and after it on their own."
)


def handed_out(calls: Calls, numbers: object) -> Any:
    """Return numbers for user code, which may be known only when the program runs."""
    if numbers.__class__ is SymbolicSize or isinstance(numbers, NumberProxy):
        calls.hand_out_number()
    return numbers


@answers(T.item)
def _item(calls: Calls, tensor: T) -> Any:
    known = calls.known_value(tensor)
    if known is not None:
        return known.item()
    return handed_out(calls, calls.on_values(T.item, (calls.value(calls.traced(tensor)),), {}))


state(T.tolist, traits=(Trait.SPLITS,))


@answers(T.tolist)
def _to_list(calls: Calls, tensor: T) -> Any:
    known = calls.known_value(tensor)
    if known is not None:
        return known.tolist()
    value = calls.value(calls.traced(tensor))
    if has_unknown_sizes([value]):
        raise DataDependentError(VALUE)
    calls.hand_out_number()
    return calls.on_values(T.tolist, (value,), {})


@answers_each(T.equal, torch.equal, T.allclose, torch.allclose)
def _question(function: Any, calls: Calls, *args: Any, **kwargs: Any) -> Any:
    known = [calls.known_value(a) if isinstance(a, T) else a for a in args]
    if all(k is not None for k in known):
        return function(*known, **kwargs)
    return handed_out(calls, calls.on_values(function, calls.values(args), calls.values(kwargs)))


@answers_each(T.__int__, T.__float__)
def _plain_number(function: Any, calls: Calls, tensor: T) -> Any:
    """Python asks for a plain number; user code that does so by ``float`` or ``int`` gets a symbolic one."""
    known = calls.known_value(tensor)
    if known is not None:
        return function(known)
    if not calls.allows_unknown:
        calls.hand_out_number()
    known = calls.known_truth(tensor)
    if known is None:
        raise DataDependentError(VALUE)
    return function(known)


_ARRAY = (
    "NumPy would get the values of a tensor, which are known only when the program runs. Use PyTorch's function "
    "instead, with tensors made of arrays (torch.as_tensor), or return the tensor and go on with NumPy outside"
)
_TEXT = (
    "the text of a tensor shows its values, which are known only when the program runs. Print the tensor itself, "
    "as in print('x is', x), which each call does; or return it, and make the text outside"
)
_WHY_NOT: dict[Any, str] = {T.__array__: _ARRAY, T.__repr__: _TEXT, T.__format__: _TEXT}


@answers_each(T.__complex__, T.__index__, *_WHY_NOT)
def _look(function: Any, calls: Calls, tensor: T, *args: Any, **kwargs: Any) -> Any:
    known = calls.known_truth(tensor)
    value = calls.value(tensor)
    if function is T.__index__ and (value.dtype.is_inexact or value.numel != 1):
        raise TypeError("only integer tensors of a single element can be converted to an index")
    if known is None:
        raise DataDependentError(_WHY_NOT.get(function, VALUE))
    return function(known, *args, **kwargs)


@answers(T.__bool__, T.is_nonzero, torch.is_nonzero)
def _truth(calls: Calls, tensor: T) -> Any:
    truth = calls.truth(tensor)
    if truth is None:
        raise DataDependentError(VALUE)
    return truth


@answers(T.__contains__)
def _contains(calls: Calls, tensor: T, element: object) -> Any:
    if not isinstance(element, (T, Number, NumberProxy)):
        return T.__contains__(torch.empty(0), element)  # which raises what eager raises
    return _truth(calls, calls(T.any, (calls(T.eq, (tensor, element), {}),), {}))


@answers(T.data_ptr, T.storage, T.untyped_storage, T._typed_storage)
def _value(calls: Calls, *args: Any, **kwargs: Any) -> Any:
    raise DataDependentError(VALUE)
