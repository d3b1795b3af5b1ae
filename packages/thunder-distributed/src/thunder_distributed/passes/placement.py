"""Where collectives stand: begun as early, and waited for as late, as memory allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from thunder_distributed.passes.schedule import (
    BEGINS,
    Rank,
    can_move,
    copied,
    does,
    only_input,
    readers_of,
    reordered,
)
from thunder_distributed.prim import Does
from thunder_ir import BoundSymbol, OpTags, TensorProxy, Trace
from thunder_ir.passes import has_effect, is_random, trace_pass

LIGHT = (OpTags.SHAPE_OP, OpTags.VIEW, OpTags.CAST, OpTags.ELEMENTWISE)


@trace_pass
def place_collectives(trace: Trace) -> Trace:
    """Begin gathers ahead of their use, and wait for every collective where its result is read first.

    - A wait, and what only converts or cuts what it returns, stands right before the first call that computes with it;
      for results of the program that is the end.
    - A gather begins while what was gathered before is computed with: one ahead, and more as long as all that is under
      way takes no more than the largest gather, or the axis's ``ahead_bytes``. What is copied to the device for it
      begins one gather earlier.
    - Sums of which each process keeps a part are under way as long as the whole gradients that they are made of take no
      more than the largest of these, or ``ahead_bytes``, when the next ones are packed or sent. If the part is copied
      to the host, that begins there, too.
    """
    calls = trace.bound_symbols
    if not any([does(bound, *BEGINS) for bound in calls]) or not can_move(trace):
        return trace
    ranks = _waits_late(trace)
    _gathers_early(calls, ranks)
    _scatters_in_turn(calls, ranks)
    return trace.replace(bound_symbols=tuple(reordered(calls, ranks)))


def _waits_late(trace: Trace) -> dict[int, Rank]:
    """Return ranks with every wait, and what follows it alone, before the first reader."""
    calls = trace.bound_symbols
    follows: set[str] = set()
    late: set[int] = set()
    for bound in calls:
        if does(bound, Does.WAIT) or _follows(bound, follows):
            late.add(id(bound))
            follows.update([p.name for p in bound.outputs])
    readers = readers_of(calls)
    ranks = {id(bound): Rank(i) for i, bound in enumerate(calls)}
    end = Rank(len(calls))
    for bound in reversed(calls):
        if id(bound) in late:
            wanted = [ranks[id(r)] for p in bound.outputs for r in readers.get(p.name, ())]
            ranks[id(bound)] = min(wanted, default=end).before()
    return ranks


def _follows(bound: BoundSymbol, follows: set[str]) -> bool:
    """Whether a call does no more than prepare what was waited for."""
    if does(bound, *BEGINS) or has_effect(bound) or is_random(bound):
        return False
    read = only_input(bound)
    light = does(bound, Does.UNPACK, Does.COPY) or any([bound.has_tag(tag) for tag in LIGHT])
    return read is not None and read.name in follows and light


def _gathers_early(calls: Sequence[BoundSymbol], ranks: dict[int, Rank]) -> None:
    """Let gathers of what is there from the start begin while others' results are computed with."""
    producer = {p.name: bound for bound in calls for p in bound.outputs}
    begun = {bound.output.name: bound for bound in calls if does(bound, Does.GATHER)}
    waits = [w for w in calls if does(w, Does.WAIT) and w.args[0].name in begun]
    waits = sorted(
        [w for w in waits if _preparation(begun[w.args[0].name], producer) is not None], key=lambda w: ranks[id(w)]
    )
    readers = readers_of(calls)
    sizes = [_bytes(begun[w.args[0].name].output) for w in waits]
    largest = max(sizes, default=0)
    earlier = Rank(-1)
    for k, wait in enumerate(waits):
        gather = begun[wait.args[0].name]
        limit = max(gather.args[1].ahead_bytes, largest)
        before = k - 1
        while before >= 0 and sum(sizes[before : k + 1]) <= limit:
            before -= 1
        at = ranks[id(_found(waits[before], readers))].after() if before >= 0 else Rank(-1)
        for call in (gather, *(_preparation(gather, producer) or ())):
            wanted = earlier if does(call, Does.COPY) else at
            ranks[id(call)] = min(wanted, ranks[id(call)])
        earlier = ranks[id(gather)]


def _found(wait: BoundSymbol, readers: Mapping[str, Sequence[BoundSymbol]]) -> BoundSymbol:
    """Return the call that finds tensors in the buffer that was waited for, which is freed then; the wait itself."""
    following = readers.get(wait.output.name, ())
    return following[0] if len(following) == 1 and does(following[0], Does.UNPACK) else wait


def _preparation(gather: BoundSymbol, producer: dict[str, BoundSymbol]) -> list[BoundSymbol] | None:
    """Return the calls that make what a gather sends of inputs alone, the last first; ``None`` if others must run."""
    found: list[BoundSymbol] = []
    wanted = [producer[p.name] for p in gather.inputs if p.name in producer]
    while wanted:
        bound = wanted.pop()
        copies = does(bound, Does.COPY) or copied(bound, producer)
        if not (copies or does(bound, Does.PACK) or any([bound.has_tag(tag) for tag in LIGHT])):
            return None
        found.append(bound)
        wanted += [producer[p.name] for p in bound.inputs if p.name in producer]
    return found


def _scatters_in_turn(calls: Sequence[BoundSymbol], ranks: dict[int, Rank]) -> None:
    """Wait for sums of which parts are kept before others are packed, or begin, that would take too much with them."""
    scatters = sorted([b for b in calls if does(b, Does.SCATTER)], key=lambda b: ranks[id(b)])
    waits = {w.args[0].name: w for w in calls if does(w, Does.WAIT)}
    readers, producer = readers_of(calls), {p.name: bound for bound in calls for p in bound.outputs}
    sizes = [_bytes(scatter.args[0]) for scatter in scatters]
    largest = max(sizes, default=0)
    first = 0
    for k, scatter in enumerate(scatters):
        packs = producer.get(scatter.args[0].name)
        at = ranks[id(packs if packs is not None and does(packs, Does.PACK) else scatter)].before()
        while first < k and sum(sizes[first : k + 1]) > max(scatter.args[1].ahead_bytes, largest):
            wait = waits.get(scatters[first].output.name)
            if wait is not None:
                for call in (wait, *_to_copies(wait, readers)):
                    ranks[id(call)] = min(ranks[id(call)], at)
            first += 1


def _to_copies(wait: BoundSymbol, readers: Mapping[str, Sequence[BoundSymbol]]) -> list[BoundSymbol]:
    """Return the calls from a wait to where copies of its result begin, if nothing else reads it."""
    found: list[BoundSymbol] = []
    reached = [wait]
    while reached:
        following = [r for p in reached.pop().outputs for r in readers.get(p.name, ())]
        if not all([does(r, Does.COPY, Does.UNPACK) or any([r.has_tag(tag) for tag in LIGHT]) for r in following]):
            return []
        found += following
        reached += [r for r in following if not does(r, Does.COPY)]
    return found if any([does(call, Does.COPY) for call in found]) else []


def _bytes(tensor: TensorProxy) -> int:
    size = tensor.numel * tensor.dtype.bytes
    return size if isinstance(size, int) else 0


__all__ = ["place_collectives"]
