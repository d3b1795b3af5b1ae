"""Deciding what is computed in which nest: values over one space together, with the reductions that they need."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from thunder_ir import BoundSymbol, DType, TensorProxy, Trace, dtypes
from thunder_ir.passes import leading_to
from thunder_loops.adding import ADDING, added_dims, check_addable, write_addition, zeros
from thunder_loops.build import Builder, Elsewhere, turned
from thunder_loops.cost import cost_of
from thunder_loops.gathering import Bounded, bounded_by
from thunder_loops.index import Index, splits
from thunder_loops.nest import Buffer, Nest, Size
from thunder_loops.pooling import POOLING, shared_by
from thunder_loops.reduction import REDUCING, reduced_dims
from thunder_loops.rules import CannotLower, Place
from thunder_loops.scanning import SCANNING, turned_around
from thunder_loops.schedule import used
from thunder_loops.shape import known, reshaped
from thunder_loops.space import Space, cut, size_of, space_of

DEAR = 12
"""What a value costs, in additions, that is worth writing it to memory for others to read."""

MOST_SHARED = 16
"""Values that are shared so, at most."""


@dataclass(slots=True)
class Group:
    """What becomes one nest.

    Args:
        shape: of the space.
        dims: those that its reductions are over, and its scans run along.
        members: the values that it computes.
        stores: what it writes, and where.
        adds: the call whose additions it does, if that is what it is for.
    """

    shape: tuple[Size, ...]
    dims: tuple[int, ...]
    members: list[TensorProxy] = field(default_factory=list)
    stores: dict[str, Buffer] = field(default_factory=dict)
    adds: BoundSymbol | None = None

    def place(self, tensor: TensorProxy, space: Space, build: Builder) -> Place | None:
        """Return where the element of a tensor stands that belongs to a point; ``None`` if its shape does not fit."""
        shape = tuple([size_of(d) for d in tensor.shape])
        if shape == self.shape:
            return space.place
        if shape == tuple([s for d, s in enumerate(self.shape) if d not in self.dims]):
            return self.cell(space)
        if shape == tuple([1 if d in self.dims else s for d, s in enumerate(self.shape)]):
            return tuple([Index() if d in self.dims else i for d, i in enumerate(space.place)])
        if _as_many(shape, self.shape):
            found = reshaped(space.place, self.shape, shape, build)
            if all([i.is_affine or splits(i, build.extents) for i in found]):  # no division is left in the end
                return found
        return None

    def cell(self, space: Space) -> Place:
        """Return the place in what is left of the shape by reductions."""
        return tuple([i for d, i in enumerate(space.place) if d not in self.dims])


class Grouping:
    """The groups of a region.

    Args:
        region: in prims.
        inputs, outputs: where they are in memory, by name.
        accumulate: the dtype in which elements of a dtype are added up.
    """

    def __init__(
        self,
        region: Trace,
        inputs: Mapping[str, Buffer],
        outputs: Mapping[str, Buffer],
        accumulate: Mapping[DType, DType],
    ) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self.accumulate = accumulate
        self.producers = {p.name: b for b in region.bound_symbols for p in b.outputs}
        self.groups: list[Group] = []
        self.group_of: dict[str, int] = {}  # of results of reductions
        self.results: dict[str, Buffer] = {}  # where others find them
        self.turned = turned_around(region)
        self.pooled: set[str] = set()  # what is computed of windows, with no memory between
        self.needs: dict[str, int] = {}  # the last group whose results a value needs; -1 for none
        for bound in leading_to(region.bound_symbols, [p.name for p in region.outputs])[0]:
            needed = max([self.needs.get(p.name, -1) for p in bound.inputs], default=-1)
            if bound.symbol in REDUCING or (bound.symbol in SCANNING and bound.args[0].ndim):
                needed = self._place(bound, needed)
            elif bound.symbol in ADDING:
                needed = self._place_added(bound)
            elif bound.symbol in POOLING:
                needed = self._place_pooled(bound, needed)
            if bound.symbol in POOLING or not self.pooled.isdisjoint([p.name for p in bound.inputs]):
                self.pooled.update([p.name for p in bound.outputs if p.name not in self.results])
            self.needs.update({p.name: needed for p in bound.outputs})
        for name, proxy in {p.name: p for p in region.outputs}.items():
            assert isinstance(proxy, TensorProxy), "outputs are tensors"
            self._place_output(proxy, outputs[name])
        self._share()
        self.bounded = {(i.name, size_of(n)): (i, n) for b in region.bound_symbols for i, n in bounded_by(b)}

    def _place(self, bound: BoundSymbol, needed: int) -> int:
        """Return the group of a reduction: the last one over the same dimensions, or a new one."""
        shape, dims = tuple([size_of(d) for d in bound.args[0].shape]), reduced_dims(bound.args)
        made = [p for p in bound.outputs if isinstance(p, TensorProxy)]
        for p in made:
            sizes = tuple([size_of(d) for d in p.shape])
            self.results[p.name] = self.outputs.get(p.name) or Buffer(f"m{len(self.results)}", p.dtype, sizes)
        for number in range(len(self.groups) - 1, max(needed, 0) - 1, -1):
            group = self.groups[number]
            if group.shape == shape and group.dims == dims and self._joins(number, made):
                return number
        self.groups.append(Group(shape, dims))
        if self._joins(len(self.groups) - 1, made):
            return len(self.groups) - 1
        operand = bound.args[0]
        if bound.symbol in SCANNING and operand.name in self.producers and operand.name not in self.results:
            self.groups[-1] = Group(shape, ())  # what it reads takes a dimension apart that it walks along as one
            self.groups.append(Group(shape, dims))
            if self._written_by(operand.name, len(self.groups) - 2) and self._joins(len(self.groups) - 1, made):
                return len(self.groups) - 1
        raise CannotLower(f"{bound.symbol.id} stands where no loop nest reaches it")

    def _place_added(self, bound: BoundSymbol) -> int:
        """Return the group of a call that adds to places which indices tell: a new one, of which it is alone."""
        check_addable(bound)
        (made,) = bound.outputs
        assert isinstance(made, TensorProxy), "rows are added up to a tensor"
        sizes = tuple([size_of(d) for d in made.shape])
        self.results[made.name] = self.outputs.get(made.name) or Buffer(f"m{len(self.results)}", made.dtype, sizes)
        shape = tuple([size_of(d) for d in bound.args[0].shape])
        self.groups.append(Group(shape, added_dims(bound), adds=bound))
        if not self._joins(len(self.groups) - 1, [made]):
            raise CannotLower(f"{bound.symbol.id} stands where no loop nest reaches it")
        return len(self.groups) - 1

    def _place_pooled(self, bound: BoundSymbol, needed: int) -> int:
        """Let what is pooled be written before, where it is of windows, or windows share what is dear to compute."""
        operand = bound.args[0]
        if operand.name not in self.producers or operand.name in self.results:
            return needed
        again = cost_of(operand.name, self.producers, self.inputs) * (shared_by(bound) - 1)
        if again < DEAR and operand.name not in self.pooled:
            return needed
        self.groups.append(Group(tuple([size_of(d) for d in operand.shape]), ()))
        if not self._written_by(operand.name, len(self.groups) - 1):
            self.groups.pop()
            return needed
        self.pooled.discard(operand.name)
        return len(self.groups)  # what pools comes after it

    def _place_output(self, proxy: TensorProxy, buffer: Buffer) -> None:
        """Give an output to the first group that has what it needs and its shape, or to a new one."""
        for number in range(max(self.needs.get(proxy.name, -1), 0), len(self.groups)):
            mine = self.group_of.get(proxy.name)
            if mine == number or (mine is None and self._joins(number, [proxy])):
                break
        else:
            number = len(self.groups)
            self.groups.append(Group(buffer.shape, ()))
            if not self._joins(number, [proxy]):
                raise CannotLower(f"{proxy.name} stands where no loop nest reaches it")
        self.groups[number].stores[proxy.name] = buffer

    def _joins(self, number: int, added: Sequence[TensorProxy]) -> bool:
        """Add values to a group, if it can compute them."""
        group = self.groups[number]
        if group.adds is not None and group.members:
            return False
        new = [p.name for p in added if p.name in self.results and p.name not in self.group_of]
        self.group_of.update(dict.fromkeys(new, number))
        group.members += added
        try:
            self.nest(number)
        except Elsewhere:
            del group.members[len(group.members) - len(added) :]
            for name in new:
                del self.group_of[name]
            return False
        return True

    def _share(self) -> None:
        """Let what is dear to compute and needed in several groups be computed in the first, and read in others.

        Of several such values, those computed last come first: with them at hand, those before may be needed no more.
        """
        if len(self.groups) < 2:
            return
        order = {name: position for position, name in enumerate(self.producers)}
        refused: set[str] = set()
        for _ in range(MOST_SHARED):
            users: dict[str, list[int]] = {}
            for number in range(len(self.groups)):
                for name in self.nest_and_values(number)[1]:
                    users.setdefault(name, []).append(number)
            found = [n for n, groups in users.items() if len(groups) > 1 and n not in refused and self._is_dear(n)]
            if not found:
                return
            name = max(found, key=order.__getitem__)
            if not self._written_by(name, users[name][0]):
                refused.add(name)

    def _is_dear(self, name: str) -> bool:
        """Whether computing a value costs more than writing it to memory and reading it again."""
        return (
            name not in self.results and name in self.producers and cost_of(name, self.producers, self.inputs) >= DEAR
        )

    def _written_by(self, name: str, number: int) -> bool:
        """Let a group write a value that later ones read, if the value is of its space."""
        tensor = next(p for p in self.producers[name].outputs if p.name == name)
        if not isinstance(tensor, TensorProxy) or not self._joins(number, [tensor]):
            return False
        sizes = tuple([size_of(d) for d in tensor.shape])
        self.results[name] = self.outputs.get(name) or Buffer(f"m{len(self.results)}", tensor.dtype, sizes)
        self.group_of[name] = number
        return True

    def nests(self) -> tuple[Nest, ...]:
        """Return the nests in order; each group writes what later ones read of it."""
        made: list[Nest] = []
        names = {b.name: name for name, b in self.results.items()}
        for number in range(len(self.groups) - 1, -1, -1):
            group = self.groups[number]
            if not group.stores:
                continue
            group.members = [p for p in group.members if p.name in group.stores]
            nest = self.nest(number)
            nest = Nest(nest.axes, used(nest.statements))
            made.append(nest)
            if group.adds is not None:
                made.append(zeros(self.results[group.members[0].name]))
            for load in nest.loads:
                result = names.get(load.buffer)
                if result is not None:
                    owner = self.groups[self.group_of[result]]
                    owner.stores.setdefault(result, self.results[result])
        return tuple(reversed(made))

    def checks(self) -> tuple[tuple[Nest, ...], tuple[Buffer, ...]]:
        """Return nests that find whether indices lead out of their tensors, and what they write it to.

        All indices are looked at, whether what they lead to is wanted or not: PyTorch refuses any of them.
        """
        of_shape: dict[tuple[Size, ...], list[Bounded]] = {}
        for indices, count in self.bounded.values():
            known(count)
            of_shape.setdefault(tuple([size_of(d) for d in indices.shape]), []).append((indices, count))
        buffers = tuple([Buffer(f"wrong{n}", dtypes.bool8, ()) for n in range(len(of_shape))])
        return tuple([self._check(*one) for one in zip(of_shape.items(), buffers, strict=True)]), buffers

    def _check(self, found: tuple[tuple[Size, ...], list[Bounded]], buffer: Buffer) -> Nest:
        shape, bounded = found
        space = space_of(shape, {})
        axes = tuple([a.name for a in space.axes])
        build = Builder(space.axes, self.inputs, self.producers, self.accumulate, (), space.place, axes, of=shape)
        wrong = ""
        for indices, count in bounded:
            try:
                at = build.to(build.value(indices, space.place), dtypes.int64)
            except Elsewhere as error:
                raise CannotLower("indices that a reduction finds have no check before it") from error
            for operation, limit in (("lt", 0), ("ge", int(count))):
                outside = build.compute(operation, at, build.constant(limit, dtypes.int64), dtype=dtypes.bool8)
                wrong = build.compute("bitwise_or", wrong, outside) if wrong else outside
        build.store(buffer, (), build.reduce("max", wrong, axes))
        return Nest(space.axes, tuple(build.statements))

    def temporaries(self, nests: Sequence[Nest]) -> tuple[Buffer, ...]:
        """Return the buffers between nests."""
        outputs = {b.name for b in self.outputs.values()}
        read = {load.buffer for nest in nests for load in nest.loads}
        return tuple([b for b in self.results.values() if b.name in read and b.name not in outputs])

    def nest(self, number: int) -> Nest:
        """Write the nest of a group; see :meth:`nest_and_values`."""
        return self.nest_and_values(number)[0]

    def nest_and_values(self, number: int) -> tuple[Nest, frozenset[str]]:
        """Write the nest of a group, and return the names of the tensors that it computes elements of.

        Axes that divisions ask for are split.

        Raises:
            Elsewhere: a value is not of its space, or needs the result of a reduction at another place.
        """
        found = self._written(number, picks=True)
        if self.groups[number].dims and not found[0].reduced and _repeats(found[0]):
            return self._written(number, picks=False)
        return found

    def _written(self, number: int, picks: bool) -> tuple[Nest, frozenset[str]]:
        group = self.groups[number]
        buffers = {**self.inputs, **{n: self.results[n] for n, g in self.group_of.items() if g < number}}
        cuts: dict[int, tuple[int, ...]] = {}
        while True:
            space = space_of(group.shape, cuts)
            reduced = tuple([axis for d in group.dims for axis in space.of_dims[d]])
            build = Builder(
                space.axes, buffers, self.producers, self.accumulate, group.cell(space), space.place, reduced, picks
            )
            for proxy in group.members:
                if group.adds is not None:
                    write_addition(build, group.adds, space.place, reduced, self.results[proxy.name])
                    continue
                place = group.place(proxy, space, build)
                if place is None:
                    raise Elsewhere(proxy)
                if proxy.name in self.turned:
                    (dim,) = group.dims
                    place = turned(place, dim, int(group.shape[dim]))
                value = build.value(proxy, place)
                if proxy.name in group.stores:
                    build.store(group.stores[proxy.name], place, value)
            if not build.wanted_splits:
                return Nest(space.axes, tuple(build.statements)), build.computed
            dim, sizes = cut(space, *next(iter(build.wanted_splits.items())))
            cuts[dim] = sizes


def _repeats(nest: Nest) -> bool:
    """Whether a nest without reductions writes to a place more than once: not along all of its axes."""
    axes = {a.name for a in nest.axes if a.size != 1}
    return any([not axes <= {name for i in store.index for name in i.names} for store in nest.stores])


def _as_many(shape: Sequence[Size], other: Sequence[Size]) -> bool:
    """Whether two shapes are known to have as many elements."""
    if any([isinstance(s, str) for s in (*shape, *other)]):
        return False
    return math.prod([int(s) for s in shape]) == math.prod([int(s) for s in other]) > 0
