"""What programs make dynamic: sizes and numbers that are marked, or differed from an earlier call's; what they replace.

Sizes and the numbers among the arguments are dynamic with ``cache="symbolic values"``, and with ``cache="auto"`` once
they were seen to change. So are the sizes of tensors that are found elsewhere, such as the keys and values that a model
keeps of the tokens before, but for its parameters. A number that the program itself sets to another one, such as a
counter of calls, is dynamic in any case, from the second program on, as is which object it finds where it, or a user
between two calls, puts another: a program that fixed them would serve no other call.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import torch

from thunder_frontend._external_state.replaced import may_be_replaced
from thunder_guards import same_value
from thunder_guards.errors import BeginAgain
from thunder_guards.kinds import is_numpy_number
from thunder_guards.sources import Place, Source


def mark_dynamic(tensor: torch.Tensor, dims: int | Sequence[int]) -> torch.Tensor:
    """Mark dimensions of a tensor as ones that will change from call to call; return the tensor.

    With ``cache="symbolic values"``, and with ``cache="auto"``, one program serves all sizes of them that meet the
    constraints it recorded. The mark that ``torch._dynamo.mark_dynamic`` leaves counts as well. What is not marked is
    dynamic from the second size on that a program is compiled for; :func:`mark_static` says that it never is.

    Args:
        tensor: an argument of a compiled function.
        dims: which, counted from the front or, if negative, from the back.

    Returns:
        the tensor itself.

    Raises:
        IndexError: the tensor has no such dimension; nothing is marked then.

    Example:
        >>> import torch
        >>> from thunder_frontend import cache_misses, jit, mark_dynamic
        >>> compiled = jit(lambda x: x.sum() / x.shape[0], cache="symbolic values")
        >>> [compiled(mark_dynamic(torch.ones(n), 0)).item() for n in (2, 3, 4)], cache_misses(compiled)
        ([1.0, 1.0, 1.0], 1)
    """
    return _marked(tensor, dims, DYNAMIC, STATIC)


def mark_static(tensor: torch.Tensor, dims: int | Sequence[int]) -> torch.Tensor:
    """Mark dimensions of a tensor as ones each size of which gets a program of its own; return the tensor.

    They are never dynamic, however often they change. The mark that ``torch._dynamo.mark_static`` leaves counts as
    well. Of :func:`mark_dynamic` and this the one called last holds.

    Args:
        tensor: an argument of a compiled function.
        dims: which, counted from the front or, if negative, from the back.

    Returns:
        the tensor itself.

    Raises:
        IndexError: the tensor has no such dimension; nothing is marked then.

    Example:
        >>> import torch
        >>> from thunder_frontend import cache_misses, jit, mark_static
        >>> compiled = jit(lambda x: x.sum() / x.shape[0], cache="auto")
        >>> [compiled(mark_static(torch.ones(n), 0)).item() for n in (2, 3, 4)], cache_misses(compiled)
        ([1.0, 1.0, 1.0], 3)
    """
    return _marked(tensor, dims, STATIC, DYNAMIC)


DYNAMIC, STATIC = "_dynamo_dynamic_indices", "_dynamo_static_indices"
"""The attributes of tensors by which PyTorch's own functions mark dimensions."""


def _marked(tensor: torch.Tensor, dims: int | Sequence[int], mark: str, other: str) -> torch.Tensor:
    given = [dims] if isinstance(dims, int) else list(dims)
    for dim in given:
        if not -tensor.dim() <= dim < tensor.dim():
            raise IndexError(f"a tensor of shape {tuple(tensor.shape)} has no dimension {dim} to mark")
    those = {d % tensor.dim() for d in given}
    setattr(tensor, mark, getattr(tensor, mark, set()) | those)
    if hasattr(tensor, other):
        setattr(tensor, other, getattr(tensor, other) - those)
    return tensor


def dynamic_dims(tensor: torch.Tensor) -> frozenset[int]:
    """Return the dimensions of a tensor that are marked as changing; sizes 0 and 1 are never dynamic."""
    marked: set[int] = getattr(tensor, DYNAMIC, set()) - getattr(tensor, STATIC, set())
    return frozenset(d for d in marked if d < tensor.dim() and tensor.shape[d] > 1)  # it may have lost some since


def _any_marked(value: Any) -> bool:
    """Whether dimensions are marked as changing of a tensor, or of one that tuples, lists and dicts hold."""
    if isinstance(value, torch.Tensor):
        return bool(getattr(value, DYNAMIC, ()))
    if type(value) in (tuple, list, dict):
        return any(map(_any_marked, value.values() if type(value) is dict else value))
    return False


NUMBERS = (int, float)


def is_number(value: object) -> TypeGuard[float]:
    """Whether something is a number that may be dynamic, or a scalar of NumPy's that is, among the arguments, too."""
    return type(value) in NUMBERS or is_numpy_number(value)


def is_loaded(value: object) -> bool:
    """Whether something may be dynamic where interpreted code loads it, and is guarded there: a number or a text."""
    return is_number(value) or type(value) is str


def has_loaded(value: object) -> bool:
    """Whether something is of a kind that may be, or may have such among its parts."""
    return is_loaded(value) or type(value) in (slice, functools.partial) or holds_numbers(value)


def holds_numbers(value: object) -> TypeGuard[tuple[Any, ...]]:
    """Whether something is a shape, or a tuple of numbers."""
    if not isinstance(value, tuple) or type(value) not in (torch.Size, tuple):
        return False
    return bool(value) and all([type(number) in NUMBERS for number in value])


class FirstDynamic(BeginAgain):
    """A program is the first in which something is dynamic: its acquisition begins again, prepared for that."""


class DynamicValues:
    """Tells what a program is to make dynamic.

    Args:
        symbolic: whether sizes, and numbers among the arguments, are: ``cache="symbolic values"``.
        follows: whether calls are compared; parameters of modules never are.
        waits: whether nothing is dynamic until a program was made, and then what changed alone: ``cache="auto"``.
    """

    def __init__(self, symbolic: bool, follows: bool = True, waits: bool = False) -> None:
        self.symbolic = symbolic
        self._waits = waits
        self._follows = follows
        self._seen: dict[Any, Any] = {}
        self._changing: dict[Any, set[int]] = {}
        self._exchanged: dict[Place, type] = {}
        self._objects: dict[Place, int] = {}
        self._ways: dict[int, Place] = {}
        self._arrays: set[str] = set()
        self._any_dynamic = symbolic
        self._has_dynamic = False
        self._fixes_numpy = False
        self._has_numpy = False

    def __bool__(self) -> bool:
        """Whether anything may be dynamic at all."""
        return self.symbolic or self._waits or bool(self._exchanged)

    def is_made(self) -> None:
        """Note that there is a program: from the next one on, what changed is dynamic."""
        self.symbolic = self.symbolic or self._waits

    def sees(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Note what a call is given: where dimensions are marked as changing, the first program makes them dynamic."""
        if self._waits and not self.symbolic and _any_marked((args, kwargs)):
            self.is_made()

    def any_numbers(self) -> bool:
        """Whether a program is to be prepared for sizes or numbers that are dynamic."""
        return self._any_dynamic or any([kind in NUMBERS for kind in self._exchanged.values()])

    def _begin_with_symbolic(self) -> None:
        self._has_dynamic = True
        if not self.any_numbers():
            self._any_dynamic = True
            raise FirstDynamic

    def fixing_more(self) -> list[DynamicValues | None]:
        """Return what makes ever less dynamic, at last nothing, for programs that cannot be had otherwise."""
        changed = bool(self._exchanged) or any(self._changing.values())
        if self._has_numpy and not self._fixes_numpy:
            self._fixes_numpy = True  # from now on
            return [self, *self.fixing_more()]
        if not (self._has_dynamic or self._waits and self.symbolic or changed):
            return []
        fewer: list[DynamicValues | None] = []
        if self.symbolic and not self._waits:
            marks = [self._but(symbolic=True, follows=False, waits=waits) for waits in (False, True)]
            fewer += marks if changed else marks[1:]  # with numbers, without
        if self._exchanged:  # a program that fixed these, too, would serve no other call
            fewer.append(self._but(symbolic=False))
        return [*fewer, None]

    def _but(self, symbolic: bool, follows: bool = True, waits: bool = False) -> DynamicValues:
        """Return what makes other sizes and numbers dynamic, but for what programs exchange."""
        made = DynamicValues(symbolic, follows, waits)
        made._exchanged = self._exchanged
        return made

    def exchanged(self, places: Mapping[Place, type]) -> None:
        """Note where a program puts other numbers and objects than it finds."""
        self._exchanged.update(places)

    def dims(self, tensor: torch.Tensor, source: Source) -> frozenset[int]:
        """Return the dimensions of a tensor that is found at ``source`` which are to be dynamic.

        Raises:
            FirstDynamic: they are the first.
        """
        found = self._dims(tensor, source)
        if found:
            self._begin_with_symbolic()
        return found

    def _dims(self, tensor: torch.Tensor, source: Source) -> frozenset[int]:
        if not self:
            return frozenset()
        if not self._follows or isinstance(tensor, torch.nn.Parameter):
            return dynamic_dims(tensor)
        place = str(source) if source.is_of_the_call() else source.question
        if place is None:
            return dynamic_dims(tensor)
        place, shape = (place, tensor.dim()), tuple(tensor.shape)
        changing = self._changing.setdefault(place, set())
        changing.update([d for d, before in enumerate(self._seen.get(place, shape)) if before != shape[d]])
        self._seen[place] = shape
        if not self.symbolic:
            return frozenset()
        changed = frozenset([d for d in changing if shape[d] > 1])
        return dynamic_dims(tensor) | (changed - getattr(tensor, STATIC, set()))

    def argument(self, value: float, source: Source) -> bool:
        """Whether to make dynamic a number among the arguments of the call.

        Raises:
            FirstDynamic: it is the first.
        """
        is_scalar = type(value) not in NUMBERS
        if is_scalar and self._fixes_numpy:
            return False
        if not self._waits:
            if self.symbolic:
                self._has_numpy |= is_scalar
                self._begin_with_symbolic()
            return self.symbolic
        place = str(source)
        before = self._seen.setdefault(place, value)
        if type(before) is not type(value) or not same_value(before, value):
            self._changing.setdefault(place, set()).add(0)
        if not (self.symbolic and self._changing.get(place)) or value in (0, 1):
            return False
        self._has_numpy |= is_scalar
        self._begin_with_symbolic()
        return True

    def fixes(self, array: Any, source: Source) -> None:
        """Note an array among the arguments of the call, for the elements of which a program is about to be compiled.

        Raises:
            FirstDynamic: an earlier program was compiled for others: now there is one for whatever each call brings.
        """
        if not self or not self._follows or self._fixes_numpy or not source.is_of_the_call():
            return
        place, elements = str(source), hash((array.shape, array.dtype.str, array.tobytes()))
        if self._seen.setdefault(("array", place), elements) != elements and self.symbolic:
            self._arrays.add(place)
            self._has_dynamic = self._any_dynamic = self._has_numpy = True
            raise FirstDynamic

    def opens(self, source: Source) -> bool:
        """Whether to compute with the elements that an array at ``source`` has on each call."""
        return str(source) in self._arrays and not self._fixes_numpy

    def text(self, value: str, source: Source) -> bool:
        """Whether to make dynamic a text that is found in an argument of the call: programs hand such on, unseen.

        Raises:
            FirstDynamic: it is the first.
        """
        if not self or not self._follows or not source.is_of_the_call():
            return False
        place = str(source)
        if self._seen.setdefault(place, value) != value:
            self._changing.setdefault(place, set()).add(0)
        if not (self.symbolic and self._changing.get(place)):
            return False
        self._begin_with_symbolic()
        return True

    def number(self, value: float, source: Source) -> bool:
        """Whether to make dynamic a number that is found at ``source``, beside the arguments of the call.

        Raises:
            FirstDynamic: it is the first.
        """
        place = source.place
        if place is None or self._exchanged.get(place) in NUMBERS:
            return place is not None
        if bool(self) and self._follows and not same_value(self._seen.setdefault(self._way(place), value), value):
            if not self.symbolic:
                return False
            first = not self.any_numbers()
            self._exchanged[place] = type(value)
            if first:
                raise FirstDynamic
            return True
        return False

    def is_exchanged(self, value: object, base: Source, kind: str, key: object) -> bool:
        """Whether an object is one of many that programs, or users, put at a place: ``key`` of ``base``."""
        follows = self._follows and may_be_replaced(value, base, key)
        if type(value) in NUMBERS or not (follows or self._exchanged):
            return False
        place = Source(base, kind, key).place
        if place is None:
            return False
        if follows:
            self._ways[id(value)] = self._way(place)
            if self._objects.setdefault(place, id(value)) != id(value):
                self._exchanged[place] = type(value)
        return self._exchanged.get(place) is type(value)

    def _way(self, place: Place) -> Place:
        """Return the place as it is once nothing holds the object on the way that users may replace."""
        return (*self._ways.get(place[0], place[:1]), *place[1:])
