"""How much memory the tensors of a program take, line by line."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import accumulate

from thunder_executors import memory_changes
from thunder_ir import Trace


@dataclass(frozen=True, slots=True)
class Memory:
    """The bytes that a program's tensors take.

    An estimate: an operation that may return a view counts as returning one, and temporaries inside an operation are
    not counted.

    Args:
        held: for each bound symbol, the bytes held while it runs.
        given: bytes of the inputs.
    """

    held: tuple[int, ...]
    given: int

    @property
    def peak(self) -> int:
        """The most bytes held at a time."""
        return max(self.held, default=self.given)


def memory(trace: Trace) -> Memory:
    """Return what a program holds while each of its lines runs.

    A value is held from the call that makes it to the last that reads it or a view of it; outputs stay to the end.

    Args:
        trace: any stage of a program.

    Example:
        >>> from thunder_examine import memory
        >>> from thunder_ir import Symbol, Tensor, trace_of
        >>> exp = Symbol("exp", "prims", meta=lambda a: a.like())
        >>> memory(trace_of(lambda x: exp(exp(x)), Tensor((2,))))
        Memory(held=(16, 16), given=8)
    """
    count = len(trace.bound_symbols)
    taken, freed = [0] * count, [0] * (count + 1)
    given = 0
    for change in memory_changes(trace):
        if change.size < 0:
            freed[change.position + 1] += change.size
        elif change.position < 0:
            given += change.size
        else:
            taken[change.position] += change.size
    changes = [before + now for before, now in zip(freed, taken, strict=False)]
    return Memory(tuple(accumulate(changes, initial=given))[1:], given)


def get_alloc_memory(trace: Trace) -> tuple[int, dict[str, int]]:
    """Return the peak in bytes, and the bytes that each line takes or frees.

    Args:
        trace: any stage of a program; the last one has the calls that free values.

    Returns:
        the peak, and by ``"argument x"``, ``"exp t0"`` and ``"del t0"`` the bytes, negative where they are freed; their
        sum is what the outputs take.

    Example:
        >>> from thunder_examine import get_alloc_memory
        >>> from thunder_ir import Symbol, Tensor, trace_of
        >>> exp = Symbol("exp", "prims", meta=lambda a: a.like())
        >>> get_alloc_memory(trace_of(lambda x: exp(exp(x)), Tensor((2,))))
        (16, {'argument x': 8, 'exp t0': 8, 'del x': -8, 'exp t1': 8, 'del t0': -8})
    """
    found: Counter[str] = Counter()
    for change in memory_changes(trace):
        maker = "argument" if change.position < 0 else trace.bound_symbols[change.position].symbol.name
        if change.size:
            found[f"{'del' if change.size < 0 else maker} {change.name}"] += change.size
    return memory(trace).peak, dict(found)
