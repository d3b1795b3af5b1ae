"""Products that run while what they read, or what they make, goes around the ring: asynchronous tensor parallelism."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from thunder_distributed import prims
from thunder_distributed.axes import Axis
from thunder_distributed.passes.schedule import Rank, as_run_by, can_move, does, readers_of, reordered
from thunder_distributed.prim import Does
from thunder_ir import BoundSymbol, Builder, OpTags, TensorProxy, Trace, recording
from thunder_ir.passes import dead_code_elimination, trace_pass


@dataclass(frozen=True, eq=False)
class Product:
    """A product of a tensor's last dimension with a matrix.

    Args:
        call: the product.
        before, after: the call that flattens the other dimensions of what it reads, and the one that undoes it, where
            they are there.
    """

    call: BoundSymbol
    before: BoundSymbol | None = None
    after: BoundSymbol | None = None


@dataclass(frozen=True, eq=False)
class Split:
    """A collective that goes around the ring, and the products that run beside it.

    Args:
        begin, wait: the calls that begin it, and wait for it.
        products: those that read what it gathers, or the one that makes what it sums.
    """

    begin: BoundSymbol
    wait: BoundSymbol
    products: tuple[Product, ...]

    @property
    def axis(self) -> Axis:
        """Over which it goes."""
        axis: Axis = self.begin.args[1]
        return axis

    @property
    def gathers(self) -> bool:
        """Whether the products read what it gathers."""
        return does(self.begin, Does.GATHER)

    @property
    def dim(self) -> int:
        """Along which dimension the parts lie."""
        dim: int = self.begin.args[2 if self.gathers else 3]
        return dim

    def __str__(self) -> str:
        one = self.begin.args[0] if self.gathers else self.wait.output
        made = ", ".join([product.call.output.name for product in self.products])
        what = "all_gather" if self.gathers else "reduce_scatter"
        permutes = f"{self.axis.size - 1} permutes of {one.type_string}"
        return f"{what} {self.begin.output.name}: {permutes}, beside the products {made}"


def splits_of(trace: Trace) -> list[Split]:
    """Return what :func:`split_products` moves; each says what it is, as text."""
    readers, producer = readers_of(trace.bound_symbols), {p.name: b for b in trace.bound_symbols for p in b.outputs}
    outputs = {p.name for p in trace.outputs}
    found: list[Split] = []
    for bound in trace.bound_symbols:
        if not does(bound, Does.GATHER, Does.SCATTER) or bound.output.name in outputs:
            continue
        waits, axis = readers.get(bound.output.name, []), bound.args[1]
        if not axis.splits_products or axis.size == 1 or len(waits) != 1 or bound.args[-1] is not None:
            continue
        if does(bound, Does.GATHER):
            products = _reading(waits[0].output, bound.args[2], readers)
            found += [Split(bound, waits[0], tuple(products))] if products else []
        elif bound.args[2] == "sum":
            product = _made_by(bound.args[0], bound.args[3], producer, readers, outputs)
            found += [Split(bound, waits[0], (product,))] if product is not None else []
    return found


@trace_pass
def split_products(trace: Trace) -> Trace:
    """Let what products gather, and sums of what they make, go around the ring, over axes that say so.

    Where a product reads what is gathered, each process begins with its own part; while it multiplies that, the next
    part comes from its neighbour, and so on. Where what a product makes is summed and cut, each process multiplies the
    part of one process after the other, its own last, and adds what comes from its neighbour. What :func:`splits_of`
    returns says what is moved. Bytes are the same. Sums are made in the order of the ring.

    Source:
        S. Wang et al., *Overlap Communication with Dependent Computation via Decomposition in Large Deep Learning
        Models*, ASPLOS 2023: looped collective products.
    """
    splits = splits_of(trace)
    if not splits or not can_move(trace):
        return trace
    positions = {id(bound): i for i, bound in enumerate(trace.bound_symbols)}
    ranks = {id(bound): Rank(i) for i, bound in enumerate(trace.bound_symbols)}
    gone: set[int] = set()
    made: list[BoundSymbol] = []
    builder = Builder(trace.names())
    for split in splits:
        ring = _Ring(split, builder)
        calls = ring.gathering() if split.gathers else ring.summing()
        at = positions[id(split.wait if split.gathers else split.begin)]
        ranks.update([(id(call), Rank(at)) for call in calls])
        made += calls
        gone.update([id(split.begin), id(split.wait)], [id(p.call) for p in split.products])
        gone.update([id(p.after) for p in split.products if p.after is not None])
    kept = [b for b in trace.bound_symbols if id(b) not in gone]
    return dead_code_elimination(trace.replace(bound_symbols=tuple(reordered([*kept, *made], ranks))))


class _Ring:
    """Records the calls of a split.

    Args:
        split: what is split.
        builder: that names values.
    """

    def __init__(self, split: Split, builder: Builder) -> None:
        self.split, self.builder, self.axis, self.dim = split, builder, split.axis, split.dim
        self.calls: list[BoundSymbol] = []

    def record(self, symbol: Callable[..., Any], *args: Any) -> Any:
        """Record a call of one of this package's prims, and return its result."""
        self.builder.bound_symbols = []
        self.builder.locate = lambda: self.split.products[0].call.location
        with recording(self.builder):
            result = symbol(*args)
        self.calls += as_run_by(self.split.begin.symbol.executor, self.builder.bound_symbols)
        return result

    def again(self, bound: BoundSymbol, output: TensorProxy, *args: Any) -> TensorProxy:
        """Record a call again with other first arguments, and return its result, named unless it has a name."""
        made = output if output.name else output.renamed(self.builder.names.fresh("t"))
        self.calls.append(bound.replace(args=(*args, *bound.args[len(args) :]), output=made))
        return made

    def multiplied(self, product: Product, part: TensorProxy) -> TensorProxy:
        """Record a product of a part, which is not flattened, and return its result, which is not either."""
        width = product.call.output.shape[-1]
        view, like = product.before or product.after, product.call.output
        if view is None:
            return self.again(product.call, like.like(shape=(*part.shape[:-1], width)), part)
        rows = (part.numel // part.shape[-1],)
        flat = self.again(view, part.like(shape=(*rows, part.shape[-1])), part, (*rows, part.shape[-1]))
        y = self.again(product.call, like.like(shape=(*rows, width)), flat)
        return self.again(view, y.like(shape=(*part.shape[:-1], width)), y, (*part.shape[:-1], width))

    def gathering(self) -> list[BoundSymbol]:
        """Return the calls that multiply one part while the next one comes."""
        part, n = self.split.begin.args[0], self.axis.size
        parts: list[TensorProxy] = [part]
        products: list[list[TensorProxy]] = [[] for _ in self.split.products]
        for step in range(n):
            coming = self.record(prims.permute, part, self.axis, 1) if step + 1 < n else None
            for results, product in zip(products, self.split.products, strict=True):
                results.append(self.multiplied(product, part))
            if coming is not None:
                part = self.record(prims.wait, coming)
                parts.append(part)
        self.joined(parts, self.split.wait.output)
        for results, product in zip(products, self.split.products, strict=True):
            if product.before is None:
                self.joined(results, product.call.output)
            else:
                whole = self.record(prims.joined_from_ring, tuple(results), self.axis, self.dim)
                self.again(product.before, product.call.output, whole, tuple(product.call.output.shape))
        return self.calls

    def summing(self) -> list[BoundSymbol]:
        """Return the calls that multiply one part while the sum of another one goes on."""
        (product,), n = self.split.products, self.axis.size
        read, whole = product.call.args[0], self.split.begin.args[0]
        if product.after is not None:
            shape = (*whole.shape[:-1], read.shape[-1])
            read = self.again(product.after, read.like(shape=shape), read, shape)
        total: Any = None
        for step in range(n):
            coming = self.record(prims.permute, total, self.axis, 1) if step else None
            mine = self.multiplied(product, self.record(prims.part, read, self.axis, self.dim, n - 1 - step))
            total = mine if coming is None else self.record(prims.added, self.record(prims.wait, coming), mine)
        self.calls[-1] = self.calls[-1].replace(output=self.split.wait.output)
        return self.calls

    def joined(self, parts: Sequence[TensorProxy], output: TensorProxy) -> None:
        self.record(prims.joined_from_ring, tuple(parts), self.axis, self.dim)
        self.calls[-1] = self.calls[-1].replace(output=output)


def _multiplies(bound: BoundSymbol, read: TensorProxy) -> bool:
    """Whether a call is a product of a tensor's last dimension with a matrix that all of its rows share."""
    if not bound.has_tag(OpTags.MATMUL) or not isinstance(bound.output, TensorProxy) or len(bound.args) < 2:
        return False
    a, matrix = bound.args[:2]
    if not isinstance(a, TensorProxy) or a.name != read.name or not isinstance(matrix, TensorProxy):
        return False
    others = [p for p in bound.inputs if p.name != a.name and p.name != matrix.name]
    rows = a.ndim >= 2 and matrix.ndim == 2 and bound.output.shape[:-1] == a.shape[:-1] and matrix.name != a.name
    return rows and all([isinstance(p, TensorProxy) and p.ndim <= 1 for p in others])


def _flattens(bound: BoundSymbol, wide: TensorProxy, flat: TensorProxy) -> bool:
    """Whether a call is a reshape between a tensor and its rows."""
    shape = OpTags.SHAPE_OP in bound.tags | bound.symbol.tags and len(bound.args) == 2
    return shape and flat.ndim == 2 and wide.ndim > 2 and wide.shape[-1] == flat.shape[-1] and not bound.kwargs


def _reading(whole: TensorProxy, dim: int, readers: Mapping[str, Sequence[BoundSymbol]]) -> list[Product]:
    """Return the products of what is gathered."""
    found: list[Product] = []
    if dim >= whole.ndim - 1:
        return found
    for bound in readers.get(whole.name, ()):
        if _multiplies(bound, whole):
            found.append(Product(bound))
        elif isinstance(bound.output, TensorProxy) and _flattens(bound, whole, bound.output):
            flat = bound.output
            found += [Product(b, before=bound) for b in readers.get(flat.name, ()) if _multiplies(b, flat)]
    return found


def _made_by(
    whole: TensorProxy,
    dim: int,
    producer: Mapping[str, BoundSymbol],
    readers: Mapping[str, Sequence[BoundSymbol]],
    outputs: set[str],
) -> Product | None:
    """Return the product that makes what is summed, if nothing else reads it."""
    made = producer.get(whole.name)
    if made is None or dim >= whole.ndim - 1 or len(readers[whole.name]) != 1 or whole.name in outputs:
        return None
    after = None
    if made.args and isinstance(made.args[0], TensorProxy) and _flattens(made, whole, made.args[0]):
        flat, after = made.args[0], made
        made = producer.get(flat.name)
        if made is None or len(readers[flat.name]) != 1 or flat.name in outputs:
            return None
    read = made.args[0] if made.args else None
    if not isinstance(read, TensorProxy) or not _multiplies(made, read):
        return None
    return Product(made, after=after)


__all__ = ["Product", "Split", "split_products", "splits_of"]
