"""Sizes that are known only when the program runs: whether there are any, what stands for them, sums of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from thunder_ir import (
    IntegerProxy,
    NumberProxy,
    TensorProxy,
    Unknown,
    flat_proxies,
    is_unknown,
    number_proxy,
    value_of,
)
from thunder_ir.unknown import Terms

TYPICAL = 1021
"""What an unknown size counts as in estimates; a prime, so that it is no accident where sizes agree."""

STAND_INS: tuple[dict[type, Any], ...] = (
    {float: 0.25, bool: True, complex: 0.25j},
    {float: 2.0, bool: False, complex: 2.0 + 1.0j},
    {float: 0.0, bool: False, complex: 0j},
    {float: 1.0, bool: True, complex: 1.0 + 0j},
)
"""Values for numbers that are no integers, where an operation is asked what it would return: usual ones, and those of
which it may return an argument itself, as ``dropout`` does of zero."""

SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)


def has_unknown_sizes(tensors: Sequence[Any]) -> bool:
    """Whether a dimension of one of these tensors is known only when the program runs."""
    proxies = [t for t in tensors if isinstance(t, TensorProxy)]
    return any([d.__class__ is not int and is_unknown(d) for p in proxies for d in p.shape])


def rests_on_unknown(tree: Any) -> bool:
    """Whether a number, or a dimension of a tensor, in a tree is known only when the program runs."""
    found = flat_proxies(tree)
    return any([isinstance(p, NumberProxy) and is_unknown(p) for p in found]) or has_unknown_sizes(found)


def sum_of(terms: Terms, what: str, lower: float) -> IntegerProxy:
    """Return a size that is a sum of products of others, without a name."""
    estimate = sum([count * math.prod([value_of(f) for f in factors]) for factors, count in terms])
    return IntegerProxy(estimate, "", Unknown(what, lower, terms=terms))


def fresh_number(pattern: Any, made: dict[int, Any]) -> Any:
    """Return a number as in a remembered result, for another result: one of its own for each unknown in it.

    Args:
        pattern: a plain integer or a proxy; one that has a name stays, unless another takes its place.
        made: what stands for the unknowns already, by the identity of their patterns.
    """
    if not is_unknown(pattern):
        return pattern
    found = made.get(id(pattern))
    if found is None:
        if pattern.name:
            return pattern
        unknown, terms = pattern.unknown, None
        if unknown.terms is not None:
            terms = tuple([(tuple([fresh_number(f, made) for f in factors]), n) for factors, n in unknown.terms])
        copied = Unknown(unknown.what, unknown.lower, unknown.upper, terms)
        found = made[id(pattern)] = number_proxy(pattern.value, unknown=copied)
    return found
