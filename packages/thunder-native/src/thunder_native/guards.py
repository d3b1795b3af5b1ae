"""Guards in native code: whether many tensors are as they were when PyTorch's check passed, and facts still hold."""

from __future__ import annotations

import gc
from array import array
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cache
from types import FunctionType, MappingProxyType
from typing import Any

import torch

from thunder_guards import HeldFacts, shared_row, snapshots, tells_apart, tells_facts
from thunder_native.layout import WORD, items_of, offset_of_code, offset_of_order
from thunder_native.runtime import is_at_hand, runtime
from thunder_native.schema import dtype_word
from thunder_native.table import CannotExpress

WORTH = 1_000_000
"""Tensors checked by Python, in about the time in which native code is made that was not at hand."""


@snapshots
def unchanged(
    tensors: tuple[torch.Tensor, ...], others: int, checks: int = 0
) -> Callable[[tuple[Any, ...]], bool] | None:
    """Return what tells whether tensors are the same objects as now, of the same class, dispatch keys, dtype, device,
    sizes and strides, and require gradients as they do now.

    Args:
        tensors: all that are to be apart from each other.
        others: how many of them, the first ones, may be different objects at each call.
        checks: how often they were checked without this.

    Returns:
        It takes a tuple. ``None`` where native code is not at hand and not worth being made, cannot run, does not know
        a dtype, or a tensor is not a strided one.
    """
    if not is_at_hand() and checks * len(tensors) < WORTH:
        return None
    try:
        made = runtime()
    except RuntimeError:
        return None
    words = [len(tensors) - others, others, made.layout.tensor, made.layout.keys]
    try:
        for t in tensors[others:]:
            keys = torch._C._dispatch_keys(t).raw_repr()
            if t.layout is not torch.strided:
                return None
            device = -1 if t.device.index is None else t.device.index  # of which the keys do not tell
            words += (id(t), id(type(t)), _signed(keys), device, dtype_word(t.dtype), int(t.requires_grad), t.ndim)
            words += (*t.shape, *t.stride())
    except CannotExpress:
        return None
    head = array("q", words)
    return made.callable_of("unchanged", head.buffer_info()[0], (head,))


@tells_apart
def apart(*tensors: torch.Tensor) -> bool:
    """Return whether it is known that no two tensors share a storage: not where native code is not in memory."""
    return bool(runtime.cache_info().currsize) and _apart()(*tensors)


@cache
def _apart() -> Callable[..., bool]:
    made = runtime()
    head = array("q", [made.layout.tensor, made.layout.storage, id(torch.Tensor), id(torch.nn.Parameter)])
    return made.callable_of("apart", head.buffer_info()[0], (head,))


def _signed(word: int) -> int:
    return word - 2**64 if word >= 2**63 else word


@tells_facts(is_at_hand)
def as_found(facts: HeldFacts) -> Callable[..., bool] | None:
    """Return what tells, of the tensors of a call that are looked at, that facts hold; ``None`` where native code is
    not at hand, or a fact is about another container than a dictionary.
    """
    expected = items_of(facts.expected)
    if expected is None or not is_at_hand():
        return None
    rows = [_dicts(facts.containers), _dicts(facts.without), _dicts(facts.holders)]
    parts = _parts(facts)
    if None in rows or parts is None:
        return None
    containers, without, holders = (shared_row(row or ()) for row in rows)
    made = runtime()
    memory: list[Any] = [facts]
    words: list[int] = []
    for kind in ((containers, facts.keys), (without, facts.names), (holders, facts.empty)):
        words += (len(kind[0]), *[row.addresses.buffer_info()[0] for row in kind])
        memory += kind
    given = facts.classes, facts.attributes, facts.given
    for rows_of in (parts, (facts.owners.addresses, facts.dicts.addresses), [row.addresses for row in given]):
        words += (len(rows_of[0]), *[addresses.buffer_info()[0] for addresses in rows_of])
        memory += rows_of
    kinds = array("q", [word for kind, keys in facts.tensors for word in (id(kind), _signed(keys))])
    words += (id(dict), id(OrderedDict), facts.modes, made.layout.tensor, made.layout.keys)
    head = array("q", [*words[:3], expected, *words[3:], len(facts.tensors), kinds.buffer_info()[0]])
    return made.callable_of("as_found", head.buffer_info()[0], (head, kinds, memory))


def _parts(facts: HeldFacts) -> tuple[array[int], array[int]] | None:
    """Return addresses whose second word is the address of a part, and those of the parts: objects and their types,
    where functions have their code, and classes their order. ``None`` where one is another kind of function.
    """
    code, order = offset_of_code(), offset_of_order()
    if facts.functions and (code is None or any([type(f) is not FunctionType for f in facts.functions])):
        return None
    if facts.ordered and order is None:
        return None
    places = array("q", [address + (code or 0) - WORD for address in facts.functions.addresses])
    places.extend([address + (order or 0) - WORD for address in facts.ordered.addresses])
    return facts.typed.addresses + places, facts.types.addresses + facts.codes.addresses + facts.orders.addresses


def _dicts(containers: Sequence[Any]) -> list[dict[Any, Any]] | None:
    """Return the dictionaries that containers are, or show; ``None`` if one does something else when it is read."""
    found = []
    for container in containers:
        if container.__class__ is MappingProxyType:
            (container,) = gc.get_referents(container)
        kind = type(container)
        if not isinstance(container, dict) or kind.__getitem__ is not dict.__getitem__ or hasattr(kind, "__missing__"):
            return None
        if kind.__contains__ is not dict.__contains__:
            return None
        found.append(container)
    return found
