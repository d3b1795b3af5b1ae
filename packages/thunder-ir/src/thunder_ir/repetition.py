"""What a program repeats: the calls of a model's blocks, which are the same again and again, on other values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from thunder_ir.keys import key_of
from thunder_ir.proxies import Proxy
from thunder_ir.symbols import BoundSymbol, OpTags
from thunder_ir.tensor_proxies import TensorProxy

SHORTEST = 16
"""Of how many calls a part must be to be looked for: what it is called with costs as much as a few of them."""
WINDOW = 8
"""How many calls in a row must be alike to suggest a repetition."""
TIMES = 2
"""How often a part must come."""


@dataclass(frozen=True, slots=True, eq=False)
class Repetition:
    """A part of a program that comes several times in a row, each time with other names.

    Args:
        start: the place of its first call among the program's.
        length: of how many calls it is.
        given: for each time, the names of the values that it reads and does not define, in the same order.
        taken: for each time, those of the given that it frees.
        made: for each time, the names of the values that it defines and leaves behind.
    """

    start: int
    length: int
    given: tuple[tuple[str, ...], ...]
    taken: tuple[tuple[str, ...], ...]
    made: tuple[tuple[str, ...], ...]

    @property
    def end(self) -> int:
        """The place after its last call."""
        return self.start + self.length * len(self.given)


def find_repetition(calls: Sequence[BoundSymbol]) -> Repetition | None:
    """Return the part that makes up most of a program by coming again and again; ``None`` if there is none.

    Two parts are the same if they call the same symbols, from the same lines of the user's, with equal arguments but
    for the names of values, and free the same ones. The cost is linear in the number of calls.
    """
    if len(calls) < SHORTEST * TIMES:
        return None
    kinds = _kinds(calls)
    length = _period(kinds)
    if not length:
        return None
    start, end = _stretch(calls, kinds, length)
    if end - start < length * TIMES:
        return None
    template = calls[start : start + length]
    names: list[dict[str, str]] = []
    for here in range(start, end - length + 1, length):
        found = _renaming(template, calls[here : here + length])
        if found is None:
            break
        names.append(found)
    if len(names) < TIMES:
        return None
    given, taken, made = _interface(template)
    if len(given) + len(made) > length // 2:
        return None
    each = [tuple([tuple([n[name] for name in those]) for n in names]) for those in (given, taken, made)]
    return Repetition(start, length, *each)


def _kinds(calls: Sequence[BoundSymbol]) -> str:
    """Return a letter for each call; calls with different letters are not the same."""
    letters: dict[Any, str] = {}
    kinds = [(id(b.symbol), len(b.inputs), len(b.outputs)) for b in calls]
    return "".join([letters.get(kind) or letters.setdefault(kind, chr(len(letters) + 1)) for kind in kinds])


def _period(kinds: str) -> int:
    """Return after how many calls most of them are alike; 0 if that is less than :data:`SHORTEST`, or never."""
    last: dict[str, int] = {}
    distances: Counter[int] = Counter()
    for here in range(len(kinds) - WINDOW + 1):
        window = kinds[here : here + WINDOW]
        before = last.get(window)
        if before is not None:
            distances[here - before] += 1
        last[window] = here
    length, times = max(distances.items(), key=lambda item: item[1], default=(0, 0))
    return length if length >= SHORTEST and times >= length * (TIMES - 1) - WINDOW else 0


def _stretch(calls: Sequence[BoundSymbol], kinds: str, length: int) -> tuple[int, int]:
    """Return where the longest stretch begins and ends in which calls are alike after ``length`` ones.

    It begins where the fewest values that the program made are in use, such as between two blocks of a model.
    """
    start = end = begun = 0
    for here in range(len(kinds) - length + 1):
        if here == len(kinds) - length or kinds[here] != kinds[here + length]:
            if here - begun > end - start:
                start, end = begun, here
            begun = here + 1
    made = {p.name for bound in calls[: start + length] for p in bound.outputs}
    in_use, fewest, best = 0, 0, start
    for here in range(start, min(start + length, end)):
        bound = calls[here]
        if OpTags.FREES in bound.symbol.tags:
            in_use -= sum([p.name in made for p in bound.inputs])
        else:
            in_use += len(bound.outputs)
        if in_use < fewest:
            fewest, best = in_use, here + 1
    return best, end + length


def _renaming(template: Sequence[BoundSymbol], calls: Sequence[BoundSymbol]) -> dict[str, str] | None:
    """Return what the values of a part are called where it comes again; ``None`` if that is not the same part."""
    names: dict[str, str] = {}
    for a, b in zip(template, calls, strict=True):
        if a.symbol is not b.symbol or not (a.location is b.location or a.location == b.location):
            return None
        if not (_same(a.args, b.args) and _same(a.output, b.output)):
            return None
        if (a.kwargs or b.kwargs) and not _same(a.kwargs, b.kwargs):
            return None
        for p, q in zip(a.inputs + a.outputs, b.inputs + b.outputs, strict=True):
            if names.setdefault(p.name, q.name) != q.name:
                return None
    return names if len(set(names.values())) == len(names) else None


def _same(a: Any, b: Any) -> bool:
    """Whether two arguments are the same but for the values of the program in them."""
    if a is b:
        return True
    cls = a.__class__
    if cls is not b.__class__:
        return False
    if cls is TensorProxy:
        return True
    if cls is tuple or cls is list:
        if len(a) != len(b):
            return False
        for x, y in zip(a, b, strict=True):
            if x is not y and not (x.__class__ is TensorProxy is y.__class__) and not _same(x, y):
                return False
        return True
    if cls is dict:
        return list(a) == list(b) and _same(list(a.values()), list(b.values()))
    return isinstance(a, Proxy) or key_of(a) == key_of(b)


def _interface(calls: Sequence[BoundSymbol]) -> tuple[list[str], list[str], list[str]]:
    """Return the names that a part is given, those of them that it frees, and those that it leaves behind."""
    given: dict[str, None] = {}
    made: dict[str, None] = {}
    taken: list[str] = []
    for bound in calls:
        names = [p.name for p in bound.inputs]
        given.update(dict.fromkeys([name for name in names if name not in made and name not in given]))
        if OpTags.FREES in bound.symbol.tags:
            taken += [name for name in names if name in given]
            for name in names:
                made.pop(name, None)
        made.update(dict.fromkeys([p.name for p in bound.outputs]))
    return list(given), taken, list(made)


__all__ = ["Repetition", "find_repetition"]
