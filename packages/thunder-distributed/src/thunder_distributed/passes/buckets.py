"""Making collectives of small tensors together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from thunder_autograd import ACCUMULATES
from thunder_distributed import prims
from thunder_distributed.axes import MEGABYTE, Axis
from thunder_distributed.buffers import Buffer
from thunder_distributed.passes.ownership import owned
from thunder_distributed.passes.schedule import Rank, as_run_by, can_move, does, readers_of, reordered
from thunder_distributed.prim import OWNED, Does, Together
from thunder_ir import BoundSymbol, Builder, OpTags, TensorProxy, Trace, devices, recording
from thunder_ir.passes import trace_pass

LARGE = MEGABYTE // 2
"""Parts of tensors of which each process has that much are gathered, and summed, by themselves, and copied nowhere."""


@dataclass(frozen=True, eq=False)
class Member:
    """A collective that may be made together with others.

    Args:
        begin, wait: the calls that begin and end it.
        position: of the first.
        bucket: name of the bucket, and its place there.
    """

    begin: BoundSymbol
    wait: BoundSymbol
    position: int
    bucket: tuple[str, int]

    @property
    def value(self) -> TensorProxy:
        """What is sent."""
        return self.begin.args[0]  # type: ignore[no-any-return]

    @property
    def axis(self) -> Axis:
        """Over which it is sent."""
        return self.begin.args[1]  # type: ignore[no-any-return]

    @property
    def result(self) -> TensorProxy:
        """What comes of it."""
        return self.wait.output  # type: ignore[no-any-return]

    @property
    def bytes(self) -> int:
        """What the larger of both takes."""
        sizes = [t.numel * t.dtype.bytes for t in (self.value, self.result)]
        return max(sizes) if all([isinstance(n, int) for n in sizes]) else 0

    @property
    def is_large(self) -> bool:
        """Whether other tensors beside it would save no time, and cost memory: for the buffer, and to wait for them."""
        return not does(self.begin, Does.REDUCE) and self.bytes >= LARGE * self.axis.size

    @property
    def key(self) -> tuple[Any, ...]:
        """What must be equal for collectives to be made together."""
        value = self.value
        kind = next(k for k in (Does.REDUCE, Does.GATHER, Does.SCATTER) if does(self.begin, k))
        operation = "" if kind is Does.GATHER else self.begin.args[2]
        marks = frozenset([t for t in self.begin.tags if t is OpTags.RECOMPUTE])
        return (kind, self.axis, operation, value.dtype, value.device, self.bucket[0], marks)

    @property
    def dim(self) -> int:
        """Along which dimension shards lie."""
        if does(self.begin, Does.REDUCE):
            return 0
        return self.begin.args[2 if does(self.begin, Does.GATHER) else 3]  # type: ignore[no-any-return]


@trace_pass
def bucket_collectives(trace: Trace) -> Trace:
    """Make collectives of one bucket together: what they send is packed, and what comes is unpacked.

    Buckets with a name are those of what has that name, whatever they take. Others are closed when they are as large
    as the axis says, or hold its part of all that is sent: nothing is computed beside the last one, and nothing is sent
    before the first one is full, which is a megabyte where there are several. A reduction begins
    when the last of its tensors is there, a gathering where the first is needed. Gathers, and sums of which parts are
    kept, stay as they are where each process has half a megabyte of the tensor: so no buffer has to be filled first.
    So do sums of what is a quarter of all, or fills a bucket, if nothing else has its memory: they are made in place.
    Tensors lie in a bucket in the order of their places, whatever the order in which they came.
    """
    members = _members(trace)
    own = owned(trace, [m.value for m in members if does(m.begin, Does.REDUCE)])
    groups = [group for group in _groups(members, own) if len(group) > 1]
    if not can_move(trace):
        groups = []
    merged = {id(m) for group in groups for m in group}
    alone = [m for m in members if m.value.name in own and id(m) not in merged]
    if not groups and not alone:
        return trace
    ranks: dict[int, Rank] = {id(bound): Rank(i) for i, bound in enumerate(trace.bound_symbols)}
    builder = Builder(trace.names())
    replaced: set[int] = set()
    made: list[BoundSymbol] = []
    for member in alone:
        call = _in_place(member, builder)
        ranks[id(call)] = Rank(member.position)
        replaced.add(id(member.begin))
        made.append(call)
    for place, group in enumerate(groups):
        calls = _merged(group, builder, place)
        gathers = does(group[0].begin, Does.GATHER)
        at = Rank(group[0].position if gathers else group[-1].position)
        ranks.update([(id(call), at) for call in calls])
        replaced.update([id(m.begin) for m in group], [id(m.wait) for m in group])
        made += calls
    _sink(trace, [group for group in groups if not does(group[0].begin, Does.GATHER)], ranks)
    calls = [*[bound for bound in trace.bound_symbols if id(bound) not in replaced], *made]
    _hoist(calls, [m for group in groups for m in group if does(m.begin, Does.GATHER)], groups, ranks)
    return trace.replace(bound_symbols=tuple(reordered(calls, ranks)))


@trace_pass
def sum_before_sending(trace: Trace) -> Trace:
    """Send the sum of several gradients of one parameter, where each was sent and what came was added.

    So a tied weight is communicated once, and rounded as it is where one process adds up what autograd adds.
    """
    if not any([ACCUMULATES in bound.tags for bound in trace.bound_symbols]):
        return trace
    while True:
        merged = _summed(trace)
        if merged is None:
            return trace
        trace = merged


def _summed(trace: Trace) -> Trace | None:
    """Return the program with one sum made before it is sent; ``None`` if there is none."""
    readers = readers_of(trace.bound_symbols)
    members = {m.result.name: m for m in _members(trace) if not does(m.begin, Does.GATHER)}
    for i, bound in enumerate(trace.bound_symbols):
        if ACCUMULATES not in bound.tags or len(bound.inputs) != 2:
            continue
        pair = [members.get(p.name) for p in bound.inputs]
        first, second = pair
        if first is None or second is None or first is second or first.key != second.key:
            continue
        if first.bucket != second.bucket or any([len(readers[m.result.name]) != 1 for m in (first, second)]):
            continue
        value = first.value.renamed(trace.names().fresh("t"))
        results = {first.result.name: first.value, second.result.name: second.value}
        added = bound.substituted(results).replace(output=value)
        begun = first.begin.replace(args=(value, *first.begin.args[1:]))
        waited = first.wait.replace(output=bound.output)
        gone = {id(m.begin) for m in (first, second)} | {id(m.wait) for m in (first, second)}
        calls = trace.bound_symbols
        head, tail = ([b for b in part if id(b) not in gone] for part in (calls[:i], calls[i + 1 :]))
        return trace.replace(bound_symbols=(*head, added, begun, waited, *tail))
    return None


def _members(trace: Trace) -> list[Member]:
    readers = readers_of(trace.bound_symbols)
    outputs = {p.name for p in trace.outputs}
    found = []
    for i, bound in enumerate(trace.bound_symbols):
        if not does(bound, Does.REDUCE, Does.GATHER, Does.SCATTER) or bound.args[-1] is None:
            continue
        waits = readers.get(bound.output.name, [])
        if len(waits) == 1 and does(waits[0], Does.WAIT) and bound.output.name not in outputs:
            found.append(Member(bound, waits[0], i, bound.args[-1]))
    return found


def _groups(members: Sequence[Member], own: set[str]) -> list[list[Member]]:
    """Return which collectives are made together, each group in the order of the program.

    Args:
        members: in the order of the program.
        own: names of values that need no buffer.
    """
    groups: list[list[Member]] = []
    open_: dict[Any, list[Member]] = {}
    members = [member for member in members if member.axis.bucket_bytes and not member.is_large]
    whole: Counter[Any] = Counter()
    for member in members:
        whole[member.key] += member.bytes
    closed: Counter[Any] = Counter()
    for member in members:
        all_sent = whole[member.key]
        limit = _limit(member.axis, all_sent, closed[member.key])
        if (
            member.value.name in own
            and not member.bucket[0]
            and member.bytes >= min(_limit(member.axis, all_sent, 1), max(all_sent // 4, MEGABYTE))
        ):
            continue  # filling a buffer takes longer than what is saved
        group = open_.setdefault(member.key, [])
        group.append(member)
        if not member.bucket[0] and sum([m.bytes for m in group]) >= limit:
            groups.append(open_.pop(member.key))
            closed[member.key] += 1
    return [*groups, *open_.values()]


def _limit(axis: Axis, all_sent: int, closed: int) -> int:
    """Return how many bytes close a bucket.

    Args:
        axis: over which it is sent.
        all_sent: bytes in all buckets together.
        closed: how many there are before it: the first of several is small, as nothing is sent until it is full.
    """
    parts = axis.bucket_parts
    if parts == 1:
        return min(axis.bucket_bytes, all_sent)
    share = MEGABYTE if not closed else (all_sent - MEGABYTE) // (parts - 1)
    return min(axis.bucket_bytes, max(share, MEGABYTE))


def _in_place(member: Member, builder: Builder) -> BoundSymbol:
    """Return the call that does what a collective does, and may write to what is sent."""
    value, axis, operation, bucket = member.begin.args
    builder.bound_symbols = []
    builder.locate = lambda: member.begin.location
    builder.tags = frozenset({OWNED, *member.begin.tags})
    with recording(builder):
        prims.all_reduce(value, axis, operation, bucket)
    (call,) = as_run_by(member.begin.symbol.executor, builder.bound_symbols)
    return call.replace(output=member.begin.output)


def _merged(group: Sequence[Member], builder: Builder, place: int) -> list[BoundSymbol]:
    """Return the calls that do together what some collectives do; the group has a place among others."""
    ordered = sorted(group, key=lambda m: m.bucket[1])
    first = ordered[0]
    axis, values = first.axis, tuple([m.value for m in ordered])
    results = tuple([m.result for m in ordered])
    shapes = tuple([r.shape for r in results])
    dims = tuple([m.dim for m in ordered])
    builder.bound_symbols = []
    builder.locate = lambda: group[-1].begin.location
    builder.tags = first.begin.tags & {OpTags.RECOMPUTE} | {Together(tuple([m.bucket[1] for m in ordered]))}
    with recording(builder):
        if does(first.begin, Does.GATHER):
            flat = prims.wait(prims.all_gather(prims.pack(values), axis))
            prims.unpack(flat, shapes, axis.size, dims)
        else:
            operation = first.begin.args[2]
            mean = operation == "mean"
            scale = 1 / axis.size if mean else None
            scatters = does(first.begin, Does.SCATTER)
            if scatters:
                sent = prims.pack(values, axis.size, dims, scale)
            else:
                sent = prims.pack(values, 1, (), scale, _buffer(values, axis, place))
            operation = "sum" if mean else operation
            with builder.tagged(OWNED):
                begun = (prims.reduce_scatter if scatters else prims.all_reduce)(sent, axis, operation)
            prims.unpack(prims.wait(begun), shapes)
    *calls, last = builder.bound_symbols
    owner = first.begin.symbol.executor
    # what was read before keeps its name
    return as_run_by(owner, [*calls, last.replace(output=results)])


def _buffer(values: Sequence[TensorProxy], axis: Axis, place: int) -> Buffer | None:
    """Return memory that the next step takes again, on a CPU: elsewhere PyTorch keeps what is freed."""
    first = values[0]
    if first.device.type is not devices.cpu.type:
        return None
    return axis.buffers.of((sum([v.numel for v in values]), first.dtype, place))


def _sink(trace: Trace, groups: Sequence[Sequence[Member]], ranks: dict[int, Rank]) -> None:
    """Let views of what a bucket takes come right before it: they interrupt no run of calls that are compiled."""
    readers = readers_of(trace.bound_symbols)
    producer = {p.name: bound for bound in trace.bound_symbols for p in bound.outputs}
    for group in groups:
        for member in group:
            at, name = Rank(group[-1].position).before(), member.value.name
            while name in producer and len(readers[name]) == 1 and producer[name].has_tag(OpTags.VIEW):
                ranks[id(producer[name])] = at
                at, name = at.before(), producer[name].inputs[0].name


def _hoist(
    calls: Sequence[BoundSymbol], members: Sequence[Member], groups: Sequence[Sequence[Member]], ranks: dict[int, Rank]
) -> None:
    """Let what prepares the shards of a bucket come before it, where nothing but inputs is needed for that."""
    producer = {p.name: bound for bound in calls for p in bound.outputs}
    first = {id(m): group[0].position for group in groups for m in group}
    for member in members:
        at = Rank(first[id(member)]).before()
        bound = producer.get(member.value.name)
        while bound is not None:
            ranks[id(bound)] = min(ranks[id(bound)], at)
            at = at.before()
            bound = producer.get(bound.inputs[0].name) if bound.inputs else None


__all__ = ["bucket_collectives", "sum_before_sending"]
