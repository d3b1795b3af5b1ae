"""What classes and operators are, whoever asks: the special methods of operators, and which classes can be edited."""

from __future__ import annotations

import operator
import types
from typing import Any

import torch

from thunder_guards.own_code import OF_ACQUISITION, package_of
from thunder_ir import NumberProxy
from thunder_tracing.tensors.run_arrays import RunArray
from thunder_tracing.tensors.run_texts import RunText
from thunder_tracing.tensors.sizes import SymbolicSize
from thunder_tracing.tensors.traced_tensor import TracedTensor

IMMUTABLE_TYPE = 1 << 8
"""Flag of classes whose attributes cannot be set."""

BINARY = {
    name: name.strip("_") for name in "add and_ floordiv lshift matmul mul mod or_ pow rshift sub truediv xor".split()
}
"""By the names of functions of :mod:`operator`: those of special methods."""
COMPARISONS = {"lt": "gt", "le": "ge", "eq": "eq", "ne": "ne", "gt": "lt", "ge": "le"}

GIVEN_AS_THEY_ARE = frozenset({
    types.FunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, types.GetSetDescriptorType,
    types.MemberDescriptorType, property,
})  # fmt: skip
"""What a class gives as it is when it is asked for an attribute."""


SPECIAL_METHODS: dict[Any, tuple[tuple[str, ...], ...]] = {
    **{getattr(operator, name): ((f"__{n}__",), (f"__r{n}__",)) for name, n in BINARY.items()},
    **{getattr(operator, f"i{n}"): ((f"__i{n}__", f"__{n}__"), (f"__r{n}__",)) for n in BINARY.values()},
    **{getattr(operator, a): ((f"__{a}__",), (f"__{b}__",)) for a, b in COMPARISONS.items()},
    operator.ne: (("__ne__", "__eq__"), ("__ne__", "__eq__")),
    **{getattr(operator, n): ((f"__{n}__",),) for n in ("neg", "pos", "invert", "getitem", "setitem", "delitem")},
    **{f: ((f"__{f.__name__}__",),) for f in (len, abs, next, hash, repr, format, reversed, round)},
    **dict.fromkeys((operator.truth, operator.not_, bool), (("__bool__", "__len__"),)),
    operator.contains: (("__contains__", "__iter__"),),
    operator.length_hint: (("__len__", "__length_hint__"),),
    iter: (("__iter__", "__getitem__"),),
    float: (("__float__", "__index__"),),
    int: (("__int__", "__index__", "__trunc__"),),
    str: (("__str__", "__repr__"),),
    callable: (("__call__",),),
}
"""For each operator, the special methods that decide what it does: of its first operand, of its second one."""

IN_PLACE = frozenset([getattr(operator, f"i{n}") for n in BINARY.values()])
ARITHMETIC = frozenset([getattr(operator, name) for name in BINARY]) | IN_PLACE
"""Operators that do not ask their second operand if it is of the class of the first one."""


def is_ours(made: object) -> bool:
    """Whether a class or a function belongs to the acquisition itself."""
    return package_of(made.__module__) in OF_ACQUISITION


def is_mutable(cls: type) -> bool:
    """Whether attributes of a class may be set or deleted by other code."""
    return not cls.__flags__ & IMMUTABLE_TYPE and not is_ours(cls)


def type_of(value: Any, cls: type) -> type:
    """Return what the type of a value is to the program: of what it stands for, where it is a stand-in."""
    if isinstance(value, TracedTensor):
        return value._stands_for
    if cls is SymbolicSize:
        return torch.Size
    if cls is RunText:
        return str
    if cls is RunArray:
        return type(value.example)
    return value.python_type if isinstance(value, NumberProxy) else cls


def class_of(value: object) -> type:
    """Return the class of a value as the program sees it."""
    return value._stands_for if isinstance(value, TracedTensor) else type(value)
