"""Which objects users replace between calls: a program that insisted on the one it found would serve no other call."""

from __future__ import annotations

import functools
import types

import torch

from thunder_frontend._external_state.function_reads import is_made_anew
from thunder_guards.kinds import CODE, EXACT_CONTAINERS, HEAP_TYPE, is_of_library, is_value
from thunder_guards.own_code import name_in
from thunder_guards.sources import Source

OF_MODULES = frozenset(vars(torch.nn.Module()))
"""Under which names a module keeps its parts and its hooks, in containers that are always the same."""
LOOSE = frozenset({*EXACT_CONTAINERS, types.SimpleNamespace, types.MethodType, functools.partial})
"""Library classes of objects that are no more than what they hold."""
KNOWN = (*CODE, torch.nn.Module, torch.Tensor, torch.optim.Optimizer)
"""What programs insist on, whoever made its class."""


def may_be_replaced(value: object, base: Source, key: object) -> bool:
    """Whether a program need not insist on an object of a user's, or a container, but on what it reads of it.

    Modules, classes and lasting functions it has to know, and so what a class or a library keeps.

    Args:
        value: what was found.
        base: what it was found in.
        key: where in it.
    """
    cls = type(value)
    if cls is types.FunctionType:
        if not is_made_anew(value):
            return False
    elif cls not in LOOSE and (not _is_of_user(cls) or isinstance(value, KNOWN) or is_value(value)):
        return False
    return not (type(key) is str and key in OF_MODULES) and not _keeps(base.held)


def _is_of_user(cls: type) -> bool:
    """Whether Python code other than a library's made a class, and none whose instances are descriptors."""
    made = cls.__flags__ & HEAP_TYPE and not is_of_library(cls.__module__)
    return bool(made) and not any(["__get__" in base.__dict__ for base in cls.__mro__])


def _keeps(owner: object) -> bool:
    """Whether something is a class', a library's or an optimizer's, which see to what they keep themselves."""
    if isinstance(owner, types.ModuleType):
        return is_of_library(name_in(vars(owner)))
    return isinstance(owner, (type, types.MappingProxyType, torch.optim.Optimizer))
