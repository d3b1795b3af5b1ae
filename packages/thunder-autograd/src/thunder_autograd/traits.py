"""What derivative passes need to know of an operation, read off tags: never off names."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from thunder_ir import BoundSymbol, Names, OpTags, Proxy, TensorProxy, value_of

CHEAP_TAGS = frozenset(
    {OpTags.ELEMENTWISE, OpTags.SHAPE_OP, OpTags.REDUCTION, OpTags.CREATION, OpTags.CAST, OpTags.VIEW}
)
EFFECTS = frozenset({OpTags.DONT_DCE, OpTags.IN_PLACE, OpTags.COLLECTIVE})
FIXED_TAGS = EFFECTS | {OpTags.RANDOM, OpTags.DEVICE_SYNC}


FUSION = 3.0  # how many times less traffic one kernel causes than the operations that it stands for, one by one


class Trait(IntEnum):
    """How willingly an operation is computed a second time; a composite counts as the worst of its parts."""

    VIEW = 0  # moves no data
    MAYBE_VIEW = 1  # a view where strides allow that, which are not known, and otherwise a copy
    CHEAP = 2  # bound by memory traffic: elementwise, casts, reductions
    UNKNOWN = 3  # no tag says anything of it, or its author says that it costs more than it seems
    HEAVY = 4  # matmul, convolution, attention
    FIXED = 5  # draws random numbers, communicates or has effects: runs once

    @property
    def may_view(self) -> bool:
        """Whether the result may share memory with the first argument."""
        return self <= Trait.MAYBE_VIEW


@dataclass(frozen=True, slots=True)
class InPlaceOf:
    """The tag of a call that an executor's rule makes in the place of a composite: what that one's parts say of it.

    Args:
        trait: of the composite.
        effort: how many times as much traffic its parts cause as the whole.
        draws: whether one of its parts draws random numbers.
        effects: whether one of its parts communicates or has an effect.
        fails: whether one of its parts raises for some values.
    """

    trait: Trait
    effort: float
    draws: bool = False
    effects: bool = False
    fails: bool = False


def _gathers_again(tags: frozenset[Any], fixed: frozenset[Any]) -> bool:
    """Whether a call does no more than communicate, and is said to be made again: all processes make it again."""
    return OpTags.RECOMPUTE in tags and fixed == {OpTags.COLLECTIVE}


UNDESCRIBED = InPlaceOf(Trait.UNKNOWN, 1.0)


class Traits:
    """Classifies bound symbols; composites by their decomposition, which is recorded once per kind of call."""

    __slots__ = ("_known", "_of_calls")

    def __init__(self) -> None:
        self._known: dict[Any, InPlaceOf] = {}
        self._of_calls: dict[BoundSymbol, InPlaceOf] = {}

    def of(self, bound: BoundSymbol) -> Trait:
        """Return the trait of a call."""
        tags = bound.symbol.tags | bound.tags if bound.tags else bound.symbol.tags
        if tags:
            fixed = tags & FIXED_TAGS
            if OpTags.DONT_RECOMPUTE in bound.tags or (fixed and not _gathers_again(tags, fixed)):
                return Trait.FIXED
            if fixed:
                return Trait.HEAVY
            if OpTags.MATMUL in tags:
                return Trait.HEAVY
            if OpTags.DONT_RECOMPUTE in tags:
                return Trait.UNKNOWN
            if bound.symbol.is_prim and tags & CHEAP_TAGS:
                if OpTags.VIEW not in tags:
                    return Trait.CHEAP
                return Trait.MAYBE_VIEW if OpTags.MAY_COPY in tags else Trait.VIEW
        return self.parts_of(bound).trait

    def effort(self, bound: BoundSymbol) -> float:
        """Return how many passes over its data a call takes for one that it would take at best, by its parts."""
        known = self.parts_of(bound)
        return max(1.0, known.effort / FUSION) if known.trait is Trait.CHEAP else 1.0

    def draws(self, bound: BoundSymbol) -> bool:
        """Whether a call draws random numbers, in its decomposition if not by its tags."""
        return bound.has_tag(OpTags.RANDOM) or self.parts_of(bound).draws

    def has_effects(self, bound: BoundSymbol) -> bool:
        """Whether a call communicates or has an effect, in its decomposition if not by its tags."""
        return any([bound.has_tag(tag) for tag in EFFECTS]) or self.parts_of(bound).effects

    def may_fail(self, bound: BoundSymbol) -> bool:
        """Whether a call raises for some values of its arguments, in its decomposition if not by its tags."""
        return bound.has_tag(OpTags.MAY_FAIL) or self.parts_of(bound).fails

    def parts_of(self, bound: BoundSymbol) -> InPlaceOf:
        """Return what the decomposition of a call says of it; that of the composite in whose place it stands."""
        for tag in bound.tags:
            if isinstance(tag, InPlaceOf):
                return tag
        if bound.symbol.is_prim:
            return UNDESCRIBED
        known = self._of_calls.get(bound)
        if known is None:
            known = self._of_calls[bound] = self._of_kind(bound)
        return known

    def _of_kind(self, bound: BoundSymbol) -> InPlaceOf:
        key = (bound.symbol, _kind(bound.args), _kind(tuple(bound.kwargs.items())))
        try:
            known = self._known.get(key)
        except TypeError:  # an argument that has no hash: nothing to remember it by
            return self._of_parts(bound)
        if known is None:
            known = self._known[key] = self._of_parts(bound)
        return known

    def _of_parts(self, bound: BoundSymbol) -> InPlaceOf:
        names = Names([p.name for p in bound.inputs])
        parts, _ = bound.decomposed(names)
        traits = [self.of(part) for part in parts]
        moved = sum([traffic(p) * self.effort(p) for p, t in zip(parts, traits, strict=True) if not t.may_view])
        return InPlaceOf(
            max(traits, default=Trait.VIEW),
            moved / max(traffic(bound), 1),
            any([self.draws(part) for part in parts]),
            any([self.has_effects(part) for part in parts]),
            any([self.may_fail(part) for part in parts]),
        )


def _kind(value: Any) -> Any:
    """What of an argument can decide which operations a decomposition makes: all but the sizes of tensors."""
    if isinstance(value, TensorProxy):
        return (value.ndim, value.dtype.name)
    if isinstance(value, Proxy):
        return type(value)
    if isinstance(value, (tuple, list)):
        return tuple([_kind(item) for item in value])
    if isinstance(value, slice):
        return (slice, _kind(value.start), _kind(value.stop), _kind(value.step))
    return value


def numel_of(tensor: TensorProxy) -> int:
    """Return the number of elements, with the values at hand for symbolic dimensions."""
    count = 1
    for dimension in tensor.shape:
        count *= dimension if dimension.__class__ is int else value_of(dimension)
    return count


def bytes_of(value: Proxy) -> int:
    """Return how many bytes it takes to keep a value; 8 for what is no tensor."""
    return numel_of(value) * value.dtype.bytes if isinstance(value, TensorProxy) else 8


def traffic(bound: BoundSymbol) -> int:
    """Return the bytes that a call reads and writes."""
    read = {p.name: bytes_of(p) for p in bound.inputs}
    return sum(read.values()) + sum([bytes_of(p) for p in bound.outputs])


def is_differentiable(value: Any) -> bool:
    """Whether a value can have a derivative at all: a tensor of floating-point or complex numbers."""
    return isinstance(value, TensorProxy) and value.dtype.is_inexact


def tensor_slots(output: Any) -> list[TensorProxy | None]:
    """Return what pullbacks take a cotangent for: the tensors of an output, and ``None`` where it has no tensor."""
    if isinstance(output, TensorProxy) or output is None:
        return [output]
    if isinstance(output, (tuple, list)):
        return [slot for item in output for slot in tensor_slots(item)]
    if isinstance(output, dict):
        return tensor_slots(list(output.values()))
    return []
