"""Numbers that a program makes dynamic, among the arguments of torch functions."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache
from types import FunctionType
from typing import Any

import torch

from thunder_guards.errors import BeginAgain
from thunder_ir import NumberProxy, TensorProxy, is_unknown, map_values
from thunder_torch.names import path_of, schemas_of
from thunder_torch.places import KEYED
from thunder_torch.torch_versions import LISTS_OF_ONE_TENSOR
from thunder_torch.traits import Trait, has_trait


class NumbersMet(BeginAgain):
    """User code got hold of a number that only the run of the program tells: acquisition begins again, prepared."""


T = torch.Tensor
NAMED_INTEGERS = frozenset({"size", "pad", "output_size", "shape", "stride", "dim", "dim0", "dim1", "normalized_shape"})
"""Names of arguments that are integers, whatever function takes them."""

NOWHERE: frozenset[int] = frozenset()
_INTEGER_TYPES = frozenset({"int", "Optional[int]", "List[int]", "Optional[List[int]]"})


def integers_of(function: object) -> tuple[Collection[int], Collection[str]]:
    """Return at which positions, and under which names, a function of PyTorch's takes integers and nothing else.

    Example:
        >>> import torch
        >>> from thunder_tracing.tensors.symbolic_numbers import integers_of
        >>> integers_of(torch.topk)[0], integers_of(torch.add)[0]
        (frozenset({1, 2}), frozenset())
    """
    return _integers_of(function) if path_of(function) else (NOWHERE, NAMED_INTEGERS)


@cache
def _integers_of(function: object) -> tuple[Collection[int], Collection[str]]:
    kinds: dict[str, set[str]] = {}
    places: dict[int, set[str]] = {}
    for schema in schemas_of(function):
        positional = [a for a in schema.arguments if not a.kwarg_only]
        for i, argument in enumerate(positional):
            kinds.setdefault(argument.name, set()).add(str(argument.type))
            places.setdefault(i, set()).add(str(argument.type))
    names = frozenset({name for name, types in kinds.items() if types <= _INTEGER_TYPES})
    if isinstance(function, FunctionType):  # whose order may be another than the schema's
        parameters = function.__code__.co_varnames[: function.__code__.co_argcount]
        found = {i for i, name in enumerate(parameters) if name in names}
    else:
        found = {i for i, types in places.items() if types <= _INTEGER_TYPES}
        last = len(places) - 1
        if not LISTS_OF_ONE_TENSOR:
            found -= {i for i in found if i != last and all("List" in kind for kind in places[i])}
        if last in found and any("List" in kind for kind in places[last]):  # whose items may be given one by one
            found |= set(range(last, 99))
    if has_trait(function, Trait.TAKES_INTEGERS):
        found |= set(range(1, 99))
    return frozenset(found), names | NAMED_INTEGERS


def with_numbers(
    function: object, args: tuple[Any, ...], kwargs: dict[str, Any], number_of: Callable[[Any], Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call with numbers in place of tensors of one integer, where PyTorch takes these so.

    A sequence is one of integers if it holds any. Tensors in an index stay.

    Args:
        function, args, kwargs: the call.
        number_of: makes a number of a tensor.
    """
    positions, names = integers_of(function)

    def numbers(given: object, integers: bool) -> Any:
        if isinstance(given, T):
            return number_of(given) if integers and _is_one_integer(given) else given
        if given.__class__ not in (tuple, list) or not any([isinstance(item, T) for item in given]):
            return given
        if not integers and (function in KEYED or not any([isinstance(item, (int, NumberProxy)) for item in given])):
            return given
        return given.__class__([numbers(item, True) for item in given])

    if not positions and not any([a.__class__ in (tuple, list) for a in args]) and not kwargs:
        return args, kwargs
    args = tuple([numbers(a, i in positions) for i, a in enumerate(args)])
    return args, {k: numbers(v, k in names) for k, v in kwargs.items()}


def _is_one_integer(tensor: torch.Tensor) -> bool:
    with torch._C.DisableTorchFunction():
        return not tensor.shape and not tensor.is_floating_point() and not tensor.is_complex()


def at_hand(tree: object) -> Any:
    """Return arguments with the values at hand in place of symbolic ones, for questions that fix nothing."""
    return map_values(_at_hand, tree)


def _at_hand(value: object) -> Any:
    if isinstance(value, NumberProxy):
        return value if is_unknown(value) else value.value
    if isinstance(value, TensorProxy) and any([isinstance(d, NumberProxy) for d in value.shape]):
        return value.like(shape=at_hand(value.shape))
    return value
