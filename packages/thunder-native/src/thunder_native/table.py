"""Steps of a call, as native code walks them, but for where values are: names stand for that."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

import torch

from thunder_native.layout import offset_of_tensors
from thunder_native.runtime import torch_address


class CannotExpress(Exception):
    """A call is none that native code can make; the message says why."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a tensor is that has no name in the program, and that does not outlive its call.

    Args:
        name: of the slot, a number: no value of a program has such a name.
    """

    name: str


@dataclass(frozen=True, slots=True)
class Words:
    """Words that a step is given the address of.

    Args:
        values: numbers, and names of values for the slots that they will be in.
    """

    values: tuple[Word, ...]


Word: TypeAlias = "int | str | Words"
"""What a step is given: a number, the slot of the value of that name, or the address of words."""

TEXTS = 4096
"""How many texts are shared between tables."""


@lru_cache(TEXTS)
def _text(value: str) -> tuple[ctypes.Array[ctypes.c_char], int]:
    memory = ctypes.create_string_buffer(value.encode())
    return memory, ctypes.addressof(memory)


@dataclass(slots=True)
class Table:
    """The steps of one call in the making.

    Args:
        inner: whether nobody outside can see the memory of the call's results.
        steps: function and words of each, in order.
        memory: what the words point to.
        asks: whether autograd is asked, which notes the views and writes that somebody outside can see.
    """

    inner: bool = False
    steps: list[tuple[str, tuple[Word, ...]]] = field(default_factory=list)
    memory: list[object] = field(default_factory=list)
    asks: bool = False
    _slots: int = 0

    def new(self) -> Slot:
        """Return a slot that nothing is in yet; what the call puts there it has to release."""
        self._slots += 1
        return Slot(str(self._slots))

    def constant(self, value: torch.Tensor) -> Slot:
        """Return the slot of a tensor that nobody outside may see or write to."""
        self.memory.append(value)
        slot = self.new()
        self.step("constant", id(value) + offset_of_tensors(), slot.name)
        return slot

    def number(self, value: float) -> Slot:
        """Return the slot of a tensor without dimensions that holds a number."""
        return self.constant(torch.tensor(value, dtype=torch.float64))

    def release(self, *slots: Slot) -> None:
        """Append the step that forgets tensors."""
        self.step("release", len(slots), *[slot.name for slot in slots])

    def step(self, function: str, *words: Word) -> None:
        """Append a step.

        Args:
            function: its kind, an export of :mod:`thunder_native.machine_code`.
            words: slots, bits of numbers, addresses.
        """
        self.steps.append((function, words))

    def text(self, value: str) -> int:
        """Return the address of a text."""
        memory, address = _text(value)
        self.memory.append(memory)
        return address


def listed(values: Sequence[Word]) -> Words:
    """Return words with their number in front."""
    return Words((len(values), *values))


def imported(name: str) -> int:
    """Return the address of a function of PyTorch's C interface that a table names.

    Raises:
        CannotExpress: this PyTorch does not export it.
    """
    address = torch_address(name)
    if address is None:
        raise CannotExpress(f"PyTorch does not export {name}")
    return address


def bits(value: float) -> int:
    """Return the word that holds a floating-point number."""
    (word,) = struct.unpack("<q", struct.pack("<d", value))
    return int(word)
