"""A region as a program in native code: its table, and the function that runs it."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import torch
from torch.autograd import forward_ad

from thunder_executors import Region
from thunder_ir import BoundSymbol, IntegerProxy, Proxy, TensorProxy
from thunder_ir.passes import leading_to
from thunder_native.forms import Facts
from thunder_native.kernels import Elsewhere
from thunder_native.registry import Written, is_inner, makes_new, row_of, written
from thunder_native.runtime import Runtime, address_of
from thunder_native.table import CannotExpress, Words

_LEVEL = "_current_level"
"""Where PyTorch keeps the level of derivatives in forward mode: -1 outside of all."""

STEPS, ELEMENTS = 32, 4096
"""Steps, and elements of tensors, that take microseconds: Python's lock, which costs more than a call, is kept."""

NOTHING: Mapping[int, Written] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Program:
    """A region in native code.

    What runs it takes the inputs, and returns a tuple of the outputs, or an integer if it did not run: -1 if an input
    is no plain tensor of the CPU or somebody has to see the calls, else the step that failed. It raises where Python
    is interrupted in a step. It holds nothing afterwards, either way.

    Args:
        head: its words, those of :data:`thunder_native.machine_code.PROGRAM`.
        memory: what they point to.
        steps: how many steps there are.
        elsewhere: what Python does for its steps.
        held: of which inputs a call has a handle of its own, by their numbers: operators copy them.
    """

    head: array[int]
    memory: tuple[object, ...] = field(repr=False)
    steps: int
    elsewhere: tuple[Elsewhere, ...] = ()
    held: tuple[int, ...] = ()


@dataclass(slots=True)
class Code:
    """Steps in memory: function, number of words, whether autograd is asked, and words of each.

    Args:
        slots: of values, by name: those of integers are negative, in front of those of tensors.
        count: how many slots of tensors there are.
        steps: how many there are.
        words: of all of them.
        pointers: where words are, the address of which a word shall be, that word's place, and the names that texts
            in them are numbers of.
        memory: what words point to.
    """

    slots: dict[str, int]
    count: int = 0
    steps: int = 0
    words: list[int] = field(default_factory=list)
    pointers: list[tuple[int, Words, tuple[str, ...]]] = field(default_factory=list)
    memory: list[object] = field(default_factory=list)

    def slot(self, name: str) -> int:
        """Return the slot of a value, a new one if it has none."""
        found = self.slots.get(name)
        if found is None:
            found = self.slots[name] = self.count
            self.count += 1
        return found

    def call(self, written: Written) -> None:
        """Append the steps of a call, with slots for names; addresses are filled in by :meth:`array`."""
        form, names, made, slots = written.form, written.names, self.words, self.slots
        start = len(made)
        made += form.words
        for place, number in form.slots:
            slot = slots.get(names[number])
            made[start + place] = self.slot(names[number]) if slot is None else slot
        for place, pointed in form.pointers:
            self.pointers.append((start + place, pointed, names))
        self.steps += form.count
        self.memory += form.memory

    def release(self, function: int, names: Sequence[str], asks: bool) -> None:
        """Append the step that forgets values; say whether autograd is asked in it."""
        self.steps += 1
        self.words += (function, 1 + len(names), asks, len(names), *map(self.slot, names))

    def array(self) -> array[int]:
        """Return all of it; what words point to stands behind the steps."""
        places = []
        for place, pointed, names in self.pointers:  # it grows where those point to others
            places.append((place, len(self.words)))
            for word in pointed.values:
                if isinstance(word, Words):
                    self.pointers.append((len(self.words), word, names))
                    self.words.append(0)
                else:
                    self.words.append(self.slot(names[int(word)]) if isinstance(word, str) else word)
        made = array("q", self.words)
        base, size = made.buffer_info()[0], made.itemsize
        for place, target in places:
            made[place] = base + size * target
        return made


def program_of(
    region: Region, runtime: Runtime, known: Mapping[int, Written] = NOTHING, inner: frozenset[str] | None = None
) -> Program:
    """Return a region in native code.

    Args:
        region: its calls.
        runtime: what runs it.
        known: how calls are written, by their identity, if that is known.
        inner: the values whose memory nobody outside can see, with which the known ones are written, if that is known.

    Raises:
        CannotExpress: a call, an input or an output is none that it can deal with.
    """
    kinds = [isinstance(p, TensorProxy) for p in region.inputs]
    numbers = region.inputs[sum(kinds) :]
    if not all(kinds[: sum(kinds)]) or not all([isinstance(p, IntegerProxy) for p in numbers]):
        raise CannotExpress("its inputs are not tensors, and integers behind them")
    code = Code({p.name: i for i, p in enumerate(region.inputs[: sum(kinds)])})
    code.slots |= {p.name: -1 - i for i, p in enumerate(numbers)}
    code.count = sum(kinds)
    for proxy in region.outputs:
        if not isinstance(proxy, TensorProxy):
            raise CannotExpress(f"{proxy.name} is no tensor")
        if proxy.name in code.slots:
            raise CannotExpress(f"{proxy.name} is an input, which its caller owns")
    if inner is None:
        inner = inner_values(region.bound_symbols, region.outputs)
        known = {id(b): w for b in region.bound_symbols if (w := known.get(id(b))) and w.inner is is_inner(b, inner)}
    addresses, copied, facts = runtime.addresses, set[str](), Facts()
    for bound, names in zip(region.bound_symbols, _dead_after(region), strict=True):
        found = known.get(id(bound)) or written(bound, addresses, facts, inner=is_inner(bound, inner))
        code.call(found)
        if found.form.copies:
            copied.update([p.name for p in bound.inputs])
        if names:
            code.release(addresses["release"], names, found.form.asks)
    layout = runtime.layout
    outputs = array("q", [code.slot(p.name) for p in region.outputs])
    held = array("q", [i for i, p in enumerate(region.inputs[: sum(kinds)]) if p.name in copied])
    made = code.array()
    head = array("q", [
        layout.records, layout.views, sum(kinds), code.count + len(held), code.steps, address_of(made),
        len(outputs), address_of(outputs), id(torch.Tensor), id(torch.nn.Parameter),
        layout.keys, layout.plain, layout.inference, layout.tensor, len(numbers), id(int),
        len(held), address_of(held), id(forward_ad.__dict__), id(_LEVEL), id(-1),
        int(code.steps > STEPS or not _is_short(region)), 0, 0, 0,
    ])  # fmt: skip
    memory = (head, made, outputs, held, code.memory)
    elsewhere = tuple([m for m in code.memory if isinstance(m, Elsewhere)])
    return Program(head, memory, code.steps, elsewhere, tuple(held))


def is_small(tensor: TensorProxy, largest: int) -> bool:
    """Whether a tensor has at most so many elements; where sizes are open, as far as the first call tells."""
    sizes = [size if isinstance(size, int) else size.value for size in tensor.shape]
    return None not in sizes and math.prod(sizes) <= largest


def _is_short(region: Region) -> bool:
    """Whether all tensors of a region are small, at each call."""
    values = [*region.inputs, *[p for bound in region.bound_symbols for p in bound.outputs]]
    tensors = [p for p in values if isinstance(p, TensorProxy)]
    return all([all([d.__class__ is int for d in t.shape]) and is_small(t, ELEMENTS) for t in tensors])


def inner_values(calls: Sequence[BoundSymbol], outputs: Iterable[Proxy]) -> frozenset[str]:
    """Return the values whose memory nobody outside can see: neither outputs, nor what an output may be a view of.

    Args:
        calls: in the order in which they run; what one without a row reads is seen.
        outputs: of all of them.
    """
    seen = leading_to(
        calls,
        [p.name for p in outputs],
        through=lambda bound: not makes_new(bound),
        besides=lambda bound: row_of(bound) is None,
    )[1]
    return frozenset([p.name for bound in calls for p in bound.outputs if p.name not in seen])


def _dead_after(region: Region) -> list[list[str]]:
    """For each call, which of the region's own values nobody reads after it."""
    live = {p.name for p in (*region.outputs, *region.inputs)}
    backwards = []
    for bound in reversed(region.bound_symbols):
        names = [p.name for p in (*bound.inputs, *bound.outputs) if p.name not in live]
        if names:
            names = list(dict.fromkeys(names))
            live.update(names)
        backwards.append(names)
    return backwards[::-1]
