"""Writing the statements of one nest: equal statements are written once, and chains of calls need no recursion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from thunder_ir import BoundSymbol, DType, NumberProxy, TensorProxy, dtypes
from thunder_loops.index import Extents, Index, Quotient, Term, splits
from thunder_loops.nest import (
    Axis,
    Buffer,
    Compute,
    Constant,
    Load,
    Position,
    Reduce,
    Scan,
    Size,
    Statement,
    Store,
)
from thunder_loops.rules import CannotLower, Elements, Place, Wanted, lowering
from thunder_loops.space import size_of

LOW_PRECISION = frozenset({dtypes.float16, dtypes.bfloat16})
"""Dtypes whose values are computed in ``float32`` and rounded after each operation."""

Asked = tuple[str, Place, str]
"""The name of a tensor, a place in it, and the condition under which that is one."""

LIMIT = 4000
"""Statements beyond which a nest is not written: what is joined and shifted again and again doubles each time."""


def computed_in(dtype: DType) -> DType:
    """Return the dtype in which operations on elements of ``dtype`` are computed."""
    return dtypes.float32 if dtype in LOW_PRECISION else dtype


def turned(place: Place, dim: int, size: int) -> Place:
    """Return a place counted from the other end of a dimension."""
    return tuple([i * -1 + (size - 1) if d == dim else i for d, i in enumerate(place)])


class Elsewhere(Exception):
    """Raised where the result of a reduction is needed at a place that another nest computes.

    Args:
        tensor: the result.
    """

    def __init__(self, tensor: TensorProxy) -> None:
        super().__init__(tensor.name)
        self.tensor = tensor


class Builder:
    """Writes the statements of one nest.

    Args:
        axes: the space.
        buffers: for names of tensors and numbers that are in memory, where.
        producers: for names of tensors that are computed here, by what.
        accumulate: the dtype in which elements of a dtype are added up.
        cell: the place in what is left of the shape where reductions are over; ``None`` where there are none.
        whole: the place in all of it.
        reduced: the axes that reductions are over.
        picks: whether a sum of which only one element can be other than 0 is written as that element.
        of: the shape of what its reductions read; ``None`` where who made the nest saw to that.
    """

    def __init__(
        self,
        axes: tuple[Axis, ...],
        buffers: Mapping[str, Buffer],
        producers: Mapping[str, BoundSymbol],
        accumulate: Mapping[DType, DType],
        cell: Place | None = None,
        whole: Place = (),
        reduced: tuple[str, ...] = (),
        picks: bool = False,
        of: tuple[Size, ...] | None = None,
    ) -> None:
        self.axes = axes
        self.buffers = buffers
        self.producers = producers
        self.accumulate = accumulate
        self.cell = cell
        self.whole = whole
        self.reduced = reduced
        self.picks = picks
        self.of = of
        self.extents: Extents = {a.name: a.size for a in axes if isinstance(a.size, int)}
        self.statements: list[Statement] = []
        self.wanted_splits: dict[str, int] = {}
        self._names: dict[Any, str] = {}
        self._dtypes: dict[str, DType] = {}
        self._known: dict[Asked, str] = {}
        self._tensors: dict[str, TensorProxy] = {}
        self.when = ""
        self._backwards: bool | None = None

    def value(self, tensor: TensorProxy, place: Place) -> str:
        """Write what computes an element of a tensor, and return the name of its value."""
        running: list[tuple[Asked, Elements]] = []
        asked: Asked | None = (tensor.name, place, "")
        self._tensors[tensor.name] = tensor
        found = ""
        while True:
            if asked is not None:
                known = self._known.get(asked)
                if known is None:
                    running.append((asked, self._elements(self._tensors[asked[0]], asked[1])))
                    self.when = asked[2]
                    request = self._next(running, None)
                else:
                    found, request = known, None
            else:
                self.when = running[-1][0][2]
                request = self._next(running, found)
            if isinstance(request, str):
                found, asked = request, None
            elif request is not None:
                self._tensors[request[0].name] = request[0]
                asked = (request[0].name, request[1], request[2] if len(request) == 3 else self.when)
            else:
                asked = None
            if not running:
                return found

    def _next(self, running: list[tuple[Asked, Elements]], found: str | None) -> Any:
        """Let the innermost rule go on; return what it asks for, or the name of its value."""
        asked, elements = running[-1]
        try:
            return elements.send(found)  # type: ignore[arg-type]
        except StopIteration as stop:
            running.pop()
            self._known[asked] = stop.value
            return stop.value

    def _elements(self, tensor: TensorProxy, place: Place) -> Elements:
        buffer = self.buffers.get(tensor.name)
        if buffer is not None:
            return self._loaded(buffer, place)
        bound = self.producers[tensor.name]
        rule = lowering.get(bound.symbol)
        if rule is None:
            raise CannotLower(f"{bound.symbol.id} has no loop nest; add one with @lowering({bound.symbol.id})")
        return rule(self, Wanted(bound, tensor, place))

    def _loaded(self, buffer: Buffer, place: Place) -> Elements:
        return self.load(buffer, place, self.when)
        yield  # a generator that asks for nothing

    @property
    def computed(self) -> frozenset[str]:
        """The names of the tensors of which elements are computed here."""
        return frozenset([name for name, _, _ in self._known if name not in self.buffers])

    def both(self, a: str, b: str) -> str:
        """Write a condition that holds where two do; ``""`` is one that always holds."""
        if not a or not b or a == b:
            return a or b
        return self.compute("bitwise_and", a, b)

    def load(self, buffer: Buffer, place: Place, when: str = "") -> str:
        """Write a read of a buffer."""
        index = tuple([self.plain(i) for i in place])
        return self._once(
            ("load", buffer.name, index, when), buffer.dtype, Load, buffer.name, index, buffer.dtype, when
        )

    def constant(self, value: Any, dtype: DType) -> str:
        """Write a number, or a read of one that the call tells."""
        if isinstance(value, NumberProxy):
            buffer = self.buffers.get(value.name)  # a number that is open
            if buffer is None:
                raise CannotLower(f"the number {value.name} is not an input of the region")
            return self.to(self.load(buffer, ()), dtype)
        if isinstance(value, complex):
            raise CannotLower("complex numbers have no loop nest")
        value = bool(value) if dtype.is_bool else float(value) if dtype.is_floating else int(value)
        return self._once(("constant", repr(value), dtype), dtype, Constant, repr(value), dtype)

    def compute(self, operation: str, *operands: str, dtype: DType | None = None) -> str:
        """Write an operation; its result has the dtype of the last operand if none is given."""
        dtype = self._dtypes[operands[-1]] if dtype is None else dtype
        return self._once((operation, operands, dtype), dtype, Compute, operation, operands, dtype)

    def to(self, value: str, dtype: DType) -> str:
        """Write a conversion, if one is needed."""
        have = self._dtypes[value]
        if have is dtype:
            return value
        if have is dtypes.float64 and dtype in LOW_PRECISION:  # as PyTorch does
            value = self.to(value, dtypes.float32)
        return self._once(("to", value, dtype), dtype, Compute, "to", (value,), dtype)

    def position(self, index: Index, dtype: DType = dtypes.int64) -> str:
        """Write the value of an index as an integer."""
        index = self.plain(index)
        if index.is_affine and not index.terms:
            return self.constant(index.constant, dtype)
        return self._once(("position", index, dtype), dtype, Position, index, dtype)

    def reduce(self, operation: str, operand: str, axes: tuple[str, ...], dtype: DType | None = None) -> str:
        """Write a reduction over axes of the space."""
        if not axes:
            return operand
        dtype = self._dtypes[operand] if dtype is None else dtype
        return self._once(("reduce", operation, operand, axes), dtype, Reduce, operation, operand, axes, dtype)

    def reduced_place(self, wanted: Wanted) -> tuple[Place, tuple[str, ...]]:
        """Return where a reduction reads its operand, and the axes that it is over.

        Raises:
            Elsewhere: the nest is none for this reduction, or it is wanted at another place than the nest's.
        """
        if self.cell is None or wanted.place != self.cell or self.when:
            raise Elsewhere(wanted.output)
        if self.of is not None and tuple([size_of(d) for d in wanted.args[0].shape]) != self.of:
            raise Elsewhere(wanted.output)
        return self.whole, self.reduced

    def scan(self, operation: str, operand: str, axis: str, reverse: bool) -> str:
        """Write a scan along an axis of the space."""
        key = ("scan", operation, operand, axis, reverse)
        dtype = self._dtypes[operand]
        return self._once(key, dtype, Scan, operation, operand, axis, dtype, reverse)

    def scanned(self, wanted: Wanted, dim: int) -> tuple[str, bool]:
        """Return the axis that a scan along a dimension runs along, and whether it begins at its end.

        Raises:
            Elsewhere: the nest does not walk along this dimension, or does so in the other direction, or the scan is
                wanted at another place than that of the point.
        """
        axis = self.reduced[0] if len(self.reduced) == 1 else ""
        forward = wanted.place == self.whole
        if not axis or self.when or self.whole[dim : dim + 1] != (Index.of(axis),):
            raise Elsewhere(wanted.output)
        if not forward and (axis not in self.extents or wanted.place != turned(self.whole, dim, self.extents[axis])):
            raise Elsewhere(wanted.output)
        if self._backwards is forward:
            raise Elsewhere(wanted.output)
        self._backwards = not forward
        return axis, not forward

    def store(self, buffer: Buffer, place: Place, value: str) -> None:
        """Write a write."""
        index = tuple([self.plain(i) for i in place])
        self.statements.append(Store(buffer.name, index, self.to(value, buffer.dtype)))

    def dtype(self, value: str) -> DType:
        """Return the dtype of a value."""
        return self._dtypes[value]

    def plain(self, index: Index) -> Index:
        """Return an index whose divisions are values of their own."""
        if index.is_affine:
            return index
        self.wanted_splits.update(splits(index, self.extents))
        terms: dict[Term, int] = {}
        for term, count in index.terms:
            if not isinstance(term, str):
                operation = "floor_divide" if isinstance(term, Quotient) else "remainder"
                divisor = self.constant(term.divisor, dtypes.int64)
                term = self.compute(operation, self.position(term.index), divisor)
            terms[term] = terms.get(term, 0) + count
        return Index(tuple(terms.items()), index.constant)

    def _once(self, key: Any, dtype: DType, make: Callable[..., Statement], *fields: Any) -> str:
        found = self._names.get(key)
        if found is None:
            if len(self.statements) >= LIMIT:
                raise CannotLower(f"a nest of more than {LIMIT} statements")
            found = self._names[key] = f"v{len(self._names)}"
            self._dtypes[found] = dtype
            self.statements.append(make(found, *fields))
        return found
