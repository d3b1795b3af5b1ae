"""Tables of steps: what native code walks."""

from __future__ import annotations

import ctypes
import struct
from array import array
from dataclasses import dataclass, field

import torch

from thunder_ir import Proxy
from thunder_native.runtime import Runtime, torch_address


class CannotExpress(Exception):
    """A call is none that native code can make; the message says why."""


@dataclass(slots=True)
class Table:
    """A program in the making.

    Args:
        runtime: whose addresses it holds.
        inner: names of values whose memory nobody outside can see.
        slots: the slot of each value, by name.
        steps: function and words of each, in order.
        memory: what the words point to.
        count: how many slots there are.
    """

    runtime: Runtime
    inner: frozenset[str] = frozenset()
    slots: dict[str, int] = field(default_factory=dict)
    steps: list[tuple[int, array[int]]] = field(default_factory=list)
    memory: list[object] = field(default_factory=list)
    count: int = 0

    def new(self) -> int:
        """Return a slot that nothing is in yet."""
        self.count += 1
        return self.count - 1

    def make(self, proxy: Proxy) -> int:
        """Return the slot for a value that is computed now."""
        found = self.slots[proxy.name] = self.new()
        return found

    def read(self, proxy: Proxy) -> int:
        """Return the slot of a value."""
        return self.slots[proxy.name]

    def constant(self, value: float) -> int:
        """Return the slot of a tensor without dimensions that holds a number."""
        made = torch.tensor(value, dtype=torch.float64)
        self.memory.append(made)
        slot = self.new()
        self.step("constant", id(made) + self.runtime.layout.tensor, slot)
        return slot

    def step(self, function: str, *words: int) -> None:
        """Append a step.

        Args:
            function: its kind, an export of :mod:`thunder_native.machine_code`.
            words: slots, bits of numbers, addresses.
        """
        self.steps.append((self.runtime.addresses[function], array("q", words)))

    def text(self, value: str) -> int:
        """Return the address of a text."""
        return self.keep(ctypes.create_string_buffer(value.encode()))

    def words(self, values: list[int]) -> int:
        """Return the address of the number of words, with them behind it."""
        return self.keep((ctypes.c_int64 * (len(values) + 1))(len(values), *values))

    def keep(self, memory: ctypes.Array[ctypes.c_char] | ctypes.Array[ctypes.c_int64]) -> int:
        """Return the address of memory, which stays as long as this does."""
        self.memory.append(memory)
        return ctypes.addressof(memory)


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
