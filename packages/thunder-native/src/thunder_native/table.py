"""Tables of steps: what native code walks."""

from __future__ import annotations

import ctypes
import struct
from array import array
from dataclasses import dataclass, field

import torch

from thunder_ir import IntegerProxy, Proxy
from thunder_native.runtime import Runtime, torch_address


class CannotExpress(Exception):
    """A call is none that native code can make; the message says why."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a tensor is that has no name in the program.

    Args:
        index: of the slot.
    """

    index: int


@dataclass(slots=True)
class Table:
    """A program in the making.

    Args:
        runtime: whose addresses it holds.
        inner: names of values whose memory nobody outside can see.
        slots: the slot of each value, by name: those of integers are negative, in front of those of tensors.
        steps: function and words of each, in order.
        memory: what the words point to.
        count: how many slots of tensors there are.
        numbers: how many of integers.
    """

    runtime: Runtime
    inner: frozenset[str] = frozenset()
    slots: dict[str, int] = field(default_factory=dict)
    steps: list[tuple[int, array[int]]] = field(default_factory=list)
    memory: list[object] = field(default_factory=list)
    count: int = 0
    numbers: int = 0

    def new(self) -> int:
        """Return a slot that nothing is in yet."""
        self.count += 1
        return self.count - 1

    def take(self, proxy: Proxy) -> None:
        """Give a slot to an input of the program."""
        if isinstance(proxy, IntegerProxy):
            self.numbers += 1
            self.slots[proxy.name] = -self.numbers
        else:
            self.make(proxy)

    def make(self, proxy: Proxy) -> int:
        """Return the slot for a value that is computed now."""
        found = self.slots[proxy.name] = self.new()
        return found

    def read(self, value: Proxy | Slot) -> int:
        """Return the slot of a value."""
        return value.index if isinstance(value, Slot) else self.slots[value.name]

    def constant(self, value: torch.Tensor) -> Slot:
        """Return the slot of a tensor that nobody outside may see or write to."""
        self.memory.append(value)
        slot = self.new()
        self.step("constant", id(value) + self.runtime.layout.tensor, slot)
        return Slot(slot)

    def number(self, value: float) -> Slot:
        """Return the slot of a tensor without dimensions that holds a number."""
        return self.constant(torch.tensor(value, dtype=torch.float64))

    def release(self, *slots: Slot) -> None:
        """Append the step that forgets tensors."""
        self.step("release", len(slots), *[slot.index for slot in slots])

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

    def words(self, values: list[int], count: int | None = None) -> int:
        """Return the address of a number with words behind it: of how many there are, or another one."""
        return self.keep((ctypes.c_int64 * (len(values) + 1))(len(values) if count is None else count, *values))

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
