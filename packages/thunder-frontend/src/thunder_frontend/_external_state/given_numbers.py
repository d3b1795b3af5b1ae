"""Numbers in lists and tuples that PyTorch's functions are given: read one by one, those that change are dynamic."""

from __future__ import annotations

import operator
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import torch

from thunder_frontend._external_state.guarded_state import GuardedState
from thunder_guards.own_code import package_of_callable
from thunder_ir import NumberProxy
from thunder_torch.torch_versions import OpOverload, OpOverloadPacket

MOST = 64
"""Of how many numbers a list is read one by one: those in long ones are seldom such as change."""
DEEPEST = 4
"""How deep in lists numbers are looked for."""
JOINING = frozenset({operator.add, operator.mul})
"""What makes a list of what is in others."""
INDEXING = frozenset({operator.getitem, operator.setitem})
LOOKING = frozenset({"torch", "torch._tensor", "torch.functional", "torch.nn.functional"})
"""Modules of PyTorch's functions in Python that are called as they are, and keep no list that they are given."""
LISTS = frozenset({list, tuple})
NUMBERS = frozenset({int, float, bool})
DESCRIPTORS = frozenset({types.MethodDescriptorType, types.WrapperDescriptorType})
OPERATORS = frozenset({OpOverload, OpOverloadPacket, getattr(torch.library, "CustomOpDef", OpOverload)})
"""Their schemas take lists apart: kernels, a user's own among them, get others."""
Given: TypeAlias = tuple[list[Any], dict[str, Any]]


def numbers_given(
    external: GuardedState, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Given | None:
    """Return what a call gets in place of its arguments, if lists of numbers are among them: what the program sees.

    Args:
        external: guards what is read.
        fn: what is called, which is not interpreted.
        args, kwargs: its arguments.
    """
    given = [*args, *kwargs.values()]
    if not any([value.__class__ in LISTS for value in given]):
        return None
    if fn.__class__ is types.BuiltinFunctionType and fn in JOINING:
        are_read = [value.__class__ is list and _count(value, 0) <= MOST for value in given]
    elif _only_looks(fn, args):
        if fn in INDEXING and args[1].__class__ is tuple and external.source_of(args[1]) is None:
            given[1] = tuple([_read(external, k) if _is_of_numbers(k) else k for k in args[1]])
        are_read = [_is_of_numbers(value) for value in given]
    else:
        return None
    seen = [_read(external, value) if is_read else value for value, is_read in zip(given, are_read, strict=True)]
    return seen[: len(args)], dict(zip(kwargs, seen[len(args) :], strict=True))


def _only_looks(fn: Callable[..., Any], args: Sequence[Any]) -> bool:
    """Whether code takes numbers out of the lists that it is given, also of lists in lists, and does nothing else."""
    kind = fn.__class__
    if kind in OPERATORS:
        return True
    if kind is types.FunctionType:
        return fn.__module__ in LOOKING and package_of_callable(fn) == "torch"
    if kind in DESCRIPTORS:
        return issubclass(torch.Tensor, fn.__objclass__) and fn.__objclass__ is not object  # type: ignore[attr-defined]
    if kind is not types.BuiltinFunctionType:
        return False
    if fn in INDEXING:
        return isinstance(args[0], torch.Tensor)
    return isinstance(fn.__self__, torch.Tensor) or package_of_callable(fn) == "torch"  # type: ignore[attr-defined]


def _is_of_numbers(value: Any) -> bool:
    """Whether a value is a list of a few numbers, or of such lists."""
    return value.__class__ in LISTS and _count(value, DEEPEST) <= MOST


def _count(value: Sequence[Any], depth: int) -> int:
    """Return how many numbers there are in a list and in those in it; more than the most if anything else is there."""
    count = 0
    for item in value[: MOST + 1]:
        if item.__class__ in LISTS and depth:
            count += _count(item, depth - 1)
        else:
            count += 1 if item.__class__ in NUMBERS or isinstance(item, NumberProxy) else MOST + 1
        if count > MOST:
            break
    return count


def _read(external: GuardedState, value: Any) -> Any:
    """Return a list of what the program sees in one."""
    external.containers.length(value)
    seen = [external.loaded(external.containers.item, value, index, item) for index, item in enumerate(value)]
    return value.__class__([_read(external, item) if item.__class__ in LISTS else item for item in seen])
