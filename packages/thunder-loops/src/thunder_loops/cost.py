"""What programs cost: operations on elements, and bytes that go to and from memory."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from thunder_ir import BoundSymbol, OpTags, TensorProxy, reached, value_of
from thunder_loops.nest import Compute, LoopProgram, Nest, Reduce, Scan, Size
from thunder_loops.operations import OPERATIONS


def operation_cost(name: str) -> float:
    """Return what an operation costs, in additions; one that is not known costs one."""
    found = OPERATIONS.get(name)
    return found.cost if found is not None else 1.0


def cost_of(name: str, producers: Mapping[str, BoundSymbol], known: Container[str]) -> float:
    """Return what an element of a value costs: all that is computed for it from memory, and from reductions.

    Args:
        name: of the value.
        producers: calls by the names of their results.
        known: names of values that are in memory.
    """

    def computed(names: Iterable[str]) -> list[BoundSymbol]:
        calls = [producers[n] for n in names if n in producers and n not in known]
        return [b for b in calls if OpTags.REDUCTION not in b.symbol.tags]

    def following(bound: BoundSymbol) -> list[BoundSymbol]:
        return computed([p.name for p in bound.inputs if isinstance(p, TensorProxy)])

    calls = reached(computed([name]), following)
    return sum([operation_cost(b.symbol.name) for b in calls if OpTags.ELEMENTWISE in b.symbol.tags])


BYTES_PER_OPERATION = 0.2
"""Bytes of memory traffic that take as long as an addition of vectors takes per element."""


def cost_again(calls: Sequence[BoundSymbol]) -> float:
    """Return what computing calls once more within a region costs, in bytes of memory traffic that take as long.

    Elements that are there cost operations only. What is reduced is swept once more, and what is read where indices
    lead comes from memory.

    Args:
        calls: prims, sizes of whose tensors are known.

    Example:
        >>> import thunder_prims as prims
        >>> from thunder_ir import Tensor, trace_of
        >>> from thunder_loops import cost_again
        >>> cost_again(trace_of(lambda a: prims.exp(prims.neg(a)), Tensor((10,))).bound_symbols)
        22.0
    """
    total = 0.0
    for bound in calls:
        tags = bound.symbol.tags
        if OpTags.ELEMENTWISE in tags:
            elements = max([math.prod(map(value_of, p.shape)) for p in bound.outputs if isinstance(p, TensorProxy)])
            total += BYTES_PER_OPERATION * operation_cost(bound.symbol.name) * elements
        elif OpTags.VIEW not in tags and OpTags.CREATION not in tags:
            tensors = [p for p in (*bound.inputs, *bound.outputs) if isinstance(p, TensorProxy)]
            total += max([p.dtype.bytes * math.prod(map(value_of, p.shape)) for p in tensors], default=0)
    return total


@dataclass(frozen=True, slots=True)
class Cost:
    """What a program costs.

    Args:
        bytes: read from and written to memory, each access for itself.
        operations: on elements, in additions.
    """

    bytes: int
    operations: float


def cost(program: LoopProgram, sizes: Mapping[str, int] | None = None) -> Cost:
    """Return what a program costs.

    Args:
        program: what is counted.
        sizes: those that are open.

    Example:
        >>> import thunder_prims as prims
        >>> from thunder_ir import Tensor, trace_of
        >>> from thunder_loops import cost, lower
        >>> cost(lower(trace_of(lambda a: prims.add(a, a), Tensor((10,)))))
        Cost(bytes=80, operations=10.0)
    """
    moved, operations = 0, 0.0
    for nest in program.nests:
        points = math.prod([_known(a.size, sizes) for a in nest.axes])
        names = [load.buffer for load in nest.loads] + [store.buffer for store in nest.stores]
        moved += sum([_bytes(program, name, sizes) for name in names])
        operations += points * _per_point(nest)
    return Cost(moved, operations)


def _per_point(nest: Nest) -> float:
    each = [operation_cost(s.operation) for s in nest.statements if isinstance(s, Compute)]
    return sum(each) + len([s for s in nest.statements if isinstance(s, (Reduce, Scan))])


def _bytes(program: LoopProgram, name: str, sizes: Mapping[str, int] | None) -> int:
    buffer = program.buffers[name]
    return buffer.dtype.bytes * math.prod([_known(s, sizes) for s in buffer.shape])


def _known(size: Size, sizes: Mapping[str, int] | None) -> int:
    return size if isinstance(size, int) else (sizes or {})[size]
