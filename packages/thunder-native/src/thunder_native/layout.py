"""Where PyTorch and Python keep what native code reads of a tensor, as tensors at hand show."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache

import torch

OBJECT_WORDS = 8
"""How many words of a Python object that holds a tensor are looked at."""

FUNCTION_WORDS = 16
"""How many words of a function of Python are looked at; it is of as many at least."""

CLASS_WORDS = 64
"""How many words of a class are looked at, which has more of them."""

TENSOR_WORDS = 32
"""How many words of PyTorch's tensor are looked at."""

WORD = ctypes.sizeof(ctypes.c_uint64)


@dataclass(frozen=True, slots=True)
class Layout:
    """Offsets in bytes, and the dispatch keys of tensors that are nothing but memory of the CPU.

    Args:
        tensor: of the pointer to PyTorch's tensor in Python's object.
        keys: of the dispatch keys in PyTorch's tensor.
        storage: of the pointer to its storage there.
        plain: these keys.
        inference: these keys of tensors that were made in inference mode.
        records: the key by which autograd records calls.
        views: the key by which views and writes are noted.
    """

    tensor: int
    keys: int
    storage: int
    plain: int
    inference: int
    records: int
    views: int


def _words(address: int, count: int) -> list[int]:
    return list((ctypes.c_uint64 * count).from_address(address))


def _keys(tensor: torch.Tensor) -> int:
    found: int = torch._C._dispatch_keys(tensor).raw_repr()
    return found


def _offset(addresses: list[int], values: list[int], count: int) -> int | None:
    """Return at which offset each address has its value; ``None`` if that is at none, or at several."""
    read = [_words(address, count) for address in addresses]
    found = [i for i in range(count) if [words[i] for words in read] == values]
    return found[0] * WORD if len(found) == 1 else None


@cache
def layout() -> Layout | str:
    """Return the layout in this process, or why it cannot be told."""
    plain = torch.zeros(3)
    tensors = [
        plain, torch.nn.Parameter(torch.ones(2, 2)), torch._neg_view(torch.ones(2)), torch.empty(2, device="meta"),
        torch.ones(2, dtype=torch.complex64).conj(), torch.ones(4)[1:],
    ]  # fmt: skip
    objects = [id(t) for t in tensors]
    if [words[1] for words in [_words(o, 2) for o in objects]] != [id(type(t)) for t in tensors]:
        return "this Python keeps an object's class at another place"
    tensor = _offset(objects, [t._cdata for t in tensors], OBJECT_WORDS)
    if tensor is None:
        return "this PyTorch keeps its tensor at an unknown place of Python's object"
    keys = _offset([t._cdata for t in tensors], [_keys(t) for t in tensors], TENSOR_WORDS)
    if keys is None:
        return "this PyTorch keeps the dispatch keys of a tensor at an unknown place"
    storage = _offset([t._cdata for t in tensors], [t.untyped_storage()._cdata for t in tensors], TENSOR_WORDS)
    if storage is None:
        return "this PyTorch keeps the storage of a tensor at an unknown place"
    with torch.inference_mode():
        inference = _keys(torch.zeros(3))
    autograd = torch._C.DispatchKey.AutogradFunctionality, torch._C.DispatchKey.ADInplaceOrView
    return Layout(tensor, keys, storage, _keys(plain), inference, *[key.value for key in autograd])


@cache
def offset_of_code() -> int | None:
    """Return where a function of Python points to its code, in bytes; ``None`` if that cannot be told."""
    functions = [_words, _offset, items_of]
    return _offset([id(f) for f in functions], [id(f.__code__) for f in functions], FUNCTION_WORDS)


@cache
def offset_of_order() -> int | None:
    """Return where a class points to its order of resolution, in bytes; ``None`` if that cannot be told."""
    classes = [Layout, torch.Tensor, torch.nn.Linear, OSError]
    return _offset([id(c) for c in classes], [id(c.__mro__) for c in classes], CLASS_WORDS)


def items_of(row: list[object]) -> int | None:
    """Return where a list keeps its items as long as their number stays; ``None`` if that cannot be told."""
    if not row:
        return 0
    address = _words(id(row), 4)[3]
    known = address and _words(id(row), 3)[2] == len(row) and address % WORD == 0
    return address if known and _words(address, len(row)) == list(map(id, row)) else None


def offset_of_tensors() -> int:
    """Return where Python's object points to PyTorch's tensor.

    Raises:
        RuntimeError: that cannot be told.
    """
    found = layout()
    if isinstance(found, str):
        raise RuntimeError(found)
    return found.tensor
