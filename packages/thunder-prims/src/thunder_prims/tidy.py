"""A pass that takes out what rules leave behind because they do not know of one another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from thunder_ir import BoundSymbol, OpTags, Symbol, TensorProxy, Trace, are_one_number, is_one
from thunder_ir.passes import KEEP, dead_code_elimination, rewrite, trace_pass
from thunder_prims.creation import full
from thunder_prims.elementwise_binary import add, mul
from thunder_prims.linalg import matmul
from thunder_prims.operands import replaced
from thunder_prims.prim import Prim
from thunder_prims.reduction import sum
from thunder_prims.shape import broadcast_in_dim, cat, pad, reshape, slice, transpose, view


@trace_pass
def tidy(trace: Trace, apart: bool = False, keep: Collection[str] = ()) -> Trace:
    """Drop moves of elements that move nothing, join those that follow one another, and put parts together at once.

    What is repeated and then computed elementwise is computed first and then repeated, unless it is a result, whose
    elements lie apart. The gradient of a tensor that was split is a sum of its parts, each padded by zeros to the size
    of the whole; that becomes one ``cat`` of the parts. What is multiplied by ones, as the gradient of a result is, is
    taken as it is. Turned matrices are multiplied one by one where they would have to be copied to lie in one. The pass
    is for programs that rules have made, which are full of such things. It keeps values, but for the order in which a
    part is added to what overlaps with it. Calls that are tagged to let no derivative through stay, as others stand
    behind them.

    Args:
        trace: the program.
        apart: whether the elements of a result that repeats what was computed elementwise shall lie apart, too.
        keep: the names of values whose calls are left as they are.

    Example:
        >>> from thunder_ir import Tensor, trace_of
        >>> import thunder_prims as prims
        >>> def program(a, b):
        ...     return prims.pad(a, 0, ((0, 3, 0),)) + prims.pad(prims.reshape(b, (3,)), 0, ((2, 0, 0),))
        >>> print(prims.tidy(trace_of(program, Tensor((2,)), Tensor((3,)))))
        def program(a: "float32[2]", b: "float32[3]"):
            t3 = prims.cat((a, b), 0)  # float32[5]
            return t3
    """
    moved = rewrite(trace, _Moves(frozenset([p.name for p in trace.outputs]), apart, frozenset(keep)).visit)
    joined = _Sums(moved, frozenset(keep)).joined()
    return trace if joined is trace else dead_code_elimination(joined)


@dataclass(frozen=True, slots=True, eq=False)
class _Repeated:
    """What a tensor repeats, and which of its dimensions are those of what it repeats."""

    of: TensorProxy
    dims: tuple[int, ...]


class _Moves:
    """Visits a program and simplifies what moves elements.

    Args:
        results: the names of what the program returns.
        apart, keep: as for :func:`tidy`.
    """

    def __init__(self, results: frozenset[str], apart: bool, keep: frozenset[str]) -> None:
        self.results = results
        self.apart = apart
        self.keep = keep
        self.ones: set[str] = set()  # what is 1 everywhere
        self.computed: dict[str, BoundSymbol] = {}  # elementwise, where results are to lie apart
        self.reshaped: dict[str, TensorProxy] = {}  # from the result of a reshape to what it was made of
        self.transposed: dict[str, tuple[TensorProxy, tuple[int, ...]]] = {}
        self.repeated: dict[str, _Repeated] = {}

    def visit(self, bound: BoundSymbol) -> Any:
        if bound.symbol is full:
            self.full(bound.output, *bound.args)
            return KEEP
        if _lets_nothing_through(bound) or not self.keep.isdisjoint([p.name for p in bound.outputs]):
            return KEEP
        simplify = _SIMPLIFY.get(bound.symbol)
        if simplify is not None:
            made = simplify(self, bound.output, *bound.args)
            if bound.symbol in _REPEATING and bound.args[0].name in self.ones:
                self.ones.add(bound.output.name if made is KEEP else made.name)
            return made
        if bound.symbol is mul and self.ones:
            same = self.mul(bound.output, *bound.args)
            if same is not None:
                return same
        if (self.repeated or self.apart) and OpTags.ELEMENTWISE in bound.symbol.tags and isinstance(bound.symbol, Prim):
            return self.elementwise(bound)
        return KEEP

    def full(self, output: TensorProxy, shape: Sequence[Any], value: Any, *rest: Any) -> None:
        if value.__class__ in (int, float) and value == 1:
            self.ones.add(output.name)

    def mul(self, output: TensorProxy, a: Any, b: Any) -> Any:
        for one, other in ((a, b), (b, a)):
            if isinstance(one, TensorProxy) and one.name in self.ones and isinstance(other, TensorProxy):
                return other if other.requires_grad is output.requires_grad else None
        return None

    def elementwise(self, bound: BoundSymbol) -> Any:
        """Compute each element once where all operands repeat theirs in the same way."""
        found = [self.repeated.get(a.name) for a in bound.args if isinstance(a, TensorProxy)]
        first = found[0] if found else None
        if not isinstance(bound.output, TensorProxy):
            return KEEP
        if self.apart:
            self.computed[bound.output.name] = bound
        if first is None or bound.output.name in self.results:
            return KEEP
        if any([f is None or f.dims != first.dims or not _equal(f.of.shape, first.of.shape) for f in found]):
            return KEEP
        few = bound.symbol(*[self.repeated[a.name].of if isinstance(a, TensorProxy) else a for a in bound.args])
        made: TensorProxy = broadcast_in_dim(few, bound.output.shape, first.dims)
        self.repeated[made.name] = _Repeated(few, first.dims)
        return made

    def broadcast_in_dim(self, output: TensorProxy, a: TensorProxy, shape: Sequence[Any], dims: Sequence[int]) -> Any:
        if _equal(a.shape, shape):
            return a
        last = self.computed.get(a.name)
        if last is not None and output.name in self.results:
            whole = [broadcast_in_dim(v, shape, dims) if isinstance(v, TensorProxy) else v for v in last.args]
            return last.symbol(*whole)
        if _puts_in_ones(a.shape, shape, dims):
            self.reshaped[output.name] = self.reshaped.get(a.name, a)
        self.repeated[output.name] = _Repeated(a, tuple(dims))
        return KEEP

    def reshape(self, output: TensorProxy, a: TensorProxy, shape: Sequence[Any]) -> Any:
        source = self.reshaped.get(a.name, a)
        if _equal(source.shape, shape):
            return source
        made = output if source is a else reshape(source, tuple(shape))
        self.reshaped[made.name] = source
        return KEEP if source is a else made

    def view(self, output: TensorProxy, a: TensorProxy, shape: Sequence[Any]) -> Any:
        self.reshaped[output.name] = self.reshaped.get(a.name, a)
        return KEEP

    def transpose(self, output: TensorProxy, a: TensorProxy, permutation: Sequence[int]) -> Any:
        source, before = self.transposed.get(a.name, (a, tuple(range(a.ndim))))
        whole = tuple([before[d] for d in permutation])
        if whole == tuple(range(a.ndim)):
            return source
        made = output if source is a else transpose(source, whole)
        self.transposed[made.name] = source, whole
        return KEEP if source is a else made

    def sum(self, output: TensorProxy, a: TensorProxy, dims: Sequence[int]) -> Any:
        if not _equal([a.shape[d] for d in dims], (1,) * len(dims)):
            return KEEP
        source = self.reshaped.get(a.name, a)
        if _equal(source.shape, output.shape):
            return source
        made: TensorProxy = reshape(source, output.shape)
        self.reshaped[made.name] = source
        return made

    def matmul(self, output: TensorProxy, a: TensorProxy, b: TensorProxy) -> Any:
        """Multiply turned matrices one by one: the rows of all of them would have to be copied to lie in one matrix."""
        source = self.reshaped.get(a.name, a)
        _, order = self.transposed.get(source.name, (source, ()))
        if a.ndim != 2 or order != (0, 2, 1) or not _equal(source.shape[2:], a.shape[1:]) or is_one(source.shape[0]):
            return KEEP
        each: TensorProxy = matmul(source, broadcast_in_dim(b, (source.shape[0], *b.shape), (1, 2)))
        made: TensorProxy = reshape(each, output.shape)
        self.reshaped[made.name] = each
        return made

    def slice(self, output: TensorProxy, a: TensorProxy, *bounds: Any) -> Any:
        return a if _equal(a.shape, output.shape) else KEEP

    def pad(self, output: TensorProxy, a: TensorProxy, value: Any, config: Sequence[tuple[Any, Any, int]]) -> Any:
        return a if all([_equal(triple, (0, 0, 0)) for triple in config]) else KEEP

    def cat(self, output: TensorProxy, tensors: Sequence[TensorProxy], dim: int) -> Any:
        there = [t for t in tensors if not _equal(t.shape[dim : dim + 1], (0,))] or list(tensors[:1])
        if len(there) == len(tensors):
            return KEEP if len(there) > 1 else there[0]
        return there[0] if len(there) == 1 else cat(tuple(there), dim)


_SIMPLIFY: dict[Symbol, Callable[..., Any]] = {
    reshape: _Moves.reshape, view: _Moves.view, transpose: _Moves.transpose, sum: _Moves.sum, slice: _Moves.slice,
    broadcast_in_dim: _Moves.broadcast_in_dim, pad: _Moves.pad, cat: _Moves.cat, matmul: _Moves.matmul,
}  # fmt: skip
_REPEATING = frozenset({reshape, view, transpose, slice, broadcast_in_dim})
"""What of these returns elements of its argument alone."""


def simplifies(bound: BoundSymbol) -> bool:
    """Whether a call is of a prim that :func:`tidy` may take out."""
    return bound.symbol in _SIMPLIFY


def _lets_nothing_through(bound: BoundSymbol) -> bool:
    return OpTags.CONSTANT_FOR_DERIVATIVE in bound.tags


def _equal(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether sizes are known to be equal, without asking symbolic ones for their values."""
    return len(a) == len(b) and all([x is y or _known(x) == _known(y) for x, y in zip(a, b, strict=True)])


def _puts_in_ones(shape: Sequence[Any], wanted: Sequence[Any], dims: Sequence[int]) -> bool:
    """Whether a broadcast puts in dimensions of one element, and repeats nothing."""
    there = set(dims)
    same = all([shape[i] is wanted[d] or _known(shape[i]) == _known(wanted[d]) for i, d in enumerate(dims)])
    return same and all([is_one(size) for d, size in enumerate(wanted) if d not in there])


def _known(size: Any) -> Any:
    """Return what tells a size from others: its value, or its name where it is symbolic."""
    return size if size.__class__ is int else size.name or id(size)


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """A tensor that stands, between zeros, from ``start`` to before ``end`` along one dimension of a greater one."""

    of: TensorProxy
    dim: int
    start: int
    end: int


class _Sums:
    """Finds sums of parts that do not overlap.

    Args:
        trace: the program.
        keep: as for :func:`tidy`.
    """

    def __init__(self, trace: Trace, keep: frozenset[str]) -> None:
        self.trace = trace
        self.keep = keep
        self.uses = Counter([p.name for b in trace.bound_symbols for p in b.inputs])
        self.uses.update([p.name for p in trace.outputs])
        self.parts: dict[str, _Part] = {}
        self.sums: dict[str, list[TensorProxy]] = {}  # of a sum, what it adds; sums that only it reads are taken apart
        self.empty: set[str] = set()  # paddings of nothing, which add nothing

    def joined(self) -> Trace:
        """Return the program with parts put together where sums add several."""
        for bound in self.trace.bound_symbols:
            if _lets_nothing_through(bound):
                continue
            if bound.symbol is pad:
                self.find_part(bound)
            elif bound.symbol is add and bound.output.name not in self.keep:
                self.find_sum(bound)
        whole = {name: terms for name, terms in self.sums.items() if self.can_be_better(terms)}
        return rewrite(self.trace, lambda bound: self.rebuilt(bound, whole)) if whole else self.trace

    def can_be_better(self, terms: list[TensorProxy]) -> bool:
        """Whether a sum of these terms can be made of fewer."""
        return len(self.parts_in(terms)) > 1 or not self.empty.isdisjoint([t.name for t in terms])

    def find_part(self, bound: BoundSymbol) -> None:
        a, value, config = bound.args
        padded = [i for i, (low, high, _) in enumerate(config) if not _equal((low, high), (0, 0))]
        if len(padded) != 1 or not all([are_one_number(n, 0) for n in (value, *[between for *_, between in config])]):
            return
        (dim,) = padded
        low, high, _ = config[dim]
        size = a.shape[dim]
        if all([n.__class__ is int for n in (low, high, size)]) and low >= 0 and high >= 0:
            self.parts[bound.output.name] = _Part(a, dim, low, low + size)
            if size == 0:
                self.empty.add(bound.output.name)

    def find_sum(self, bound: BoundSymbol) -> None:
        if not all([isinstance(a, TensorProxy) for a in bound.args]):
            return
        terms: list[TensorProxy] = []
        for a in bound.args:
            inner = self.sums.pop(a.name, None) if self.uses[a.name] == 1 else None
            terms += [a] if inner is None else inner
        self.sums[bound.output.name] = terms

    def parts_in(self, terms: list[TensorProxy]) -> list[TensorProxy]:
        """Return those of ``terms``, from the first on that there is, that can be put together along one dimension."""
        there = [t for t in terms if t.name in self.parts]
        if not there:
            return []
        dim = self.parts[there[0].name].dim
        chosen: list[TensorProxy] = []
        end = -1
        for t in sorted([t for t in there if self.parts[t.name].dim == dim], key=lambda t: self.parts[t.name].start):
            if self.parts[t.name].start >= max(end, 0):
                chosen.append(t)
                end = self.parts[t.name].end
        return chosen

    def rebuilt(self, bound: BoundSymbol, whole: dict[str, list[TensorProxy]]) -> Any:
        terms = whole.get(bound.output.name) if isinstance(bound.output, TensorProxy) else None
        if terms is None:
            return KEEP
        total: Any = None
        terms = [t for t in terms if t.name not in self.empty] or terms[:1]
        while terms:
            chosen = self.parts_in(terms)
            names = {t.name for t in chosen}
            first = next((i for i, t in enumerate(terms) if t.name in names), None)
            before = terms if first is None else terms[:first]
            for term in before:
                total = term if total is None else add(total, term)
            if first is None:
                break
            together = self.together(chosen, bound.output.shape)
            total = together if total is None else add(total, together)
            terms = [t for t in terms[first:] if t.name not in names]
        return total

    def together(self, chosen: list[TensorProxy], shape: Sequence[Any]) -> Any:
        """Return the sum of parts that do not overlap, by runs of those that touch."""
        if len(chosen) == 1:
            return chosen[0]
        parts = [self.parts[t.name] for t in chosen]
        dim, length = parts[0].dim, shape[parts[0].dim]
        covered = [parts[0]]
        for part in parts[1:]:
            if part.start > covered[-1].end:
                gap = pad(part.of, 0, _config(len(shape), dim, part.start - covered[-1].end, 0))
                covered.append(_Part(gap, dim, covered[-1].end, part.end))
            else:
                covered.append(part)
        joined = cat(tuple([p.of for p in covered]), dim)
        low, high = covered[0].start, length - covered[-1].end
        return joined if low == high == 0 else pad(joined, 0, _config(len(shape), dim, low, high))


def _config(rank: int, dim: int, low: int, high: int) -> tuple[tuple[int, int, int], ...]:
    return tuple(replaced(((0, 0, 0),) * rank, dim, (low, high, 0)))
