"""Forms: the words of calls that differ in nothing but which values they are of, written once in a process."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from types import EllipsisType, NoneType
from typing import Any

import torch

from thunder_executors_llvm import runner as llvm
from thunder_ir import BoundSymbol, TensorProxy
from thunder_native.kernels import Elsewhere
from thunder_native.table import Table, Word, Words


@dataclass(frozen=True, slots=True)
class Form:
    """The steps of a call, with numbers in place of names.

    Args:
        count: how many steps there are.
        words: of all of them, each with its function, the number of its words, and whether autograd is asked in front;
            0 where the word is a slot, or the address of words with slots in them.
        slots: where slots belong, and the number of the name of each.
        pointers: where addresses belong, and the words there; texts in these are numbers of names.
        own: names of slots that no value of the program has, numbered behind those of the call's values.
        memory: what words point to.
        asks: whether autograd is asked.
        copies: whether operators copy what the call reads.
    """

    count: int
    words: list[int]
    slots: list[tuple[int, int]]
    pointers: list[tuple[int, Words]]
    own: tuple[str, ...]
    memory: list[object]
    asks: bool
    copies: bool


MOST = 4096
"""How many forms are kept: beyond, all are made anew."""

_forms: dict[Hashable, Form] = {}

Facts = dict[str, Hashable]
"""What forms depend on of the tensors of a program, by their names."""


def form_of(
    bound: BoundSymbol,
    names: Sequence[str],
    inner: bool,
    facts: Facts,
    addresses: Mapping[str, int],
    write: Callable[[], Table],
) -> Form:
    """Return the form of a call.

    Args:
        bound: the call.
        names: of its values, as they are numbered.
        inner: whether nobody outside can see the memory of its results.
        facts: of tensors of the program, to which those of the call are added.
        addresses: of the functions that steps name.
        write: writes its steps.
    """
    key = _key_of(bound, names, inner, facts)
    found = None if key is None else _forms.get(key)
    if found is not None:
        return found
    found = _made(write(), names, addresses)
    if key is not None and not any([isinstance(m, Elsewhere) for m in found.memory]):  # which is of one region
        if len(_forms) >= MOST:
            _forms.clear()
        _forms[key] = found
    return found


def _made(table: Table, names: Sequence[str], addresses: Mapping[str, int]) -> Form:
    numbers, memory = {name: number for number, name in enumerate(names)}, list(table.memory)
    made: list[int] = []
    slots: list[tuple[int, int]] = []
    pointers: list[tuple[int, Words]] = []
    for function, words in table.steps:
        made += (addresses[function], len(words), table.asks)
        for word in words:
            numbered = _numbered(word, numbers, memory)
            if isinstance(numbered, str):
                slots.append((len(made), int(numbered)))
            elif isinstance(numbered, Words):
                pointers.append((len(made), numbered))
            made.append(numbered if isinstance(numbered, int) else 0)
    copies = any([function == "dispatched" for function, _ in table.steps])
    own = tuple(numbers)[len(names) :]
    return Form(len(table.steps), made, slots, pointers, own, memory, table.asks, copies)


def _numbered(word: Word, numbers: dict[str, int], memory: list[object]) -> Word:
    """Return a word with numbers for names; of words without names, which are the same in each call, their address."""
    if isinstance(word, str):
        return str(numbers.setdefault(word, len(numbers)))
    if not isinstance(word, Words):
        return word
    values = [_numbered(value, numbers, memory) for value in word.values]
    numbers_alone = [value for value in values if isinstance(value, int)]
    if len(numbers_alone) < len(values):
        return Words(tuple(values))
    held = array("q", numbers_alone or [0])
    memory.append(held)
    return held.buffer_info()[0]


# --- which calls have the same form -----------------------------------------------------------------------------------

_THEMSELVES = frozenset({int, bool, str, NoneType, EllipsisType, torch.dtype, torch.device, torch.memory_format})
"""Classes whose instances are equal where they are the same, for those of one class."""


class _UnknownError(Exception):
    """Raised for an argument of which a form may depend on more than is known here."""


def _key_of(bound: BoundSymbol, names: Sequence[str], inner: bool, facts: Facts) -> Hashable | None:
    """Return what calls of one form have in common; ``None`` where that is not known, as where sizes are symbolic."""
    if isinstance(bound.symbol.implementation, llvm.Runner):
        return None
    found: list[Hashable] = [bound.symbol, inner]
    try:
        _write(found, bound.args, facts)
        if bound.kwargs:
            _write(found, tuple(bound.kwargs.items()), facts)
        _write(found, bound.output, facts)
    except _UnknownError:
        return None
    read = bound.inputs
    if len(names) != len(read) + len(bound.outputs):  # a value occurs twice
        found.append(tuple([names.index(p.name) for p in (*read, *bound.outputs)]))
    return tuple(found)


def _write(found: list[Hashable], value: Any, facts: Facts) -> None:
    cls = value.__class__
    if cls is TensorProxy:
        fact = facts.get(value.name)
        if fact is None:
            fact = facts[value.name] = _fact_of(value)
        found.append(fact)
    elif cls is tuple or cls is list or cls is torch.Size:
        found += (cls, len(value))
        for item in value:
            _write(found, item, facts)
    elif cls in _THEMSELVES:
        found += (cls, value)
    elif cls is float:
        found += (cls, value.hex())  # zeros have signs, and no NaN is equal to another
    elif cls is slice:
        found.append(cls)
        _write(found, (value.start, value.stop, value.step), facts)
    else:
        raise _UnknownError


def _fact_of(tensor: TensorProxy) -> Hashable:
    if not all([size.__class__ is int for size in tensor.shape]):
        raise _UnknownError
    return tensor.shape, tensor.dtype, tensor.device
