"""What one call of a module came to, recorded again for an equal call of another module of its class.

The log of what the first read is gone through with the second module in place of the first. Only when all of it is
found to be the same, or the counterpart of the first's, do the reads become guards, and are the calls recorded again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from thunder_frontend._block_reuse.counterparts import Counterparts, Unlike, require
from thunder_frontend._external_state.dynamic_values import is_number
from thunder_frontend._external_state.guarded_state import GuardedState
from thunder_guards import EmptyGuard, Guard, KeysGuard, LengthGuard, MembershipGuard, PartGuard
from thunder_guards.kinds import CODE, VALUES, is_value
from thunder_guards.sources import Source, held
from thunder_ir import BoundSymbol, Builder, NumberProxy, TensorProxy
from thunder_ir.passes import read_from_outside
from thunder_tracing.tensors.layouts import Layouts
from thunder_tracing.tensors.traced_tensor import TracedTensor

OF_ONE_OBJECT = frozenset({EmptyGuard, KeysGuard, LengthGuard, MembershipGuard, PartGuard})
"""Guards that say something of their source's value and of nothing else."""


@dataclass(slots=True, eq=False)
class Run:
    """One call of a module.

    Args:
        module, args, kwargs: what was called, with what.
        state: what else the call depended on.
        facts: where in the external state's log it begins, and ends.
        bound: what it recorded.
        begins: where among the recorded calls it begins.
        result: what it returned.
        outside: names of the proxies that it reads and does not define; ``None`` until it is asked for.
        relevant: those of the facts that another module may differ in; ``None`` until they are asked for.
    """

    module: torch.nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    state: Any
    facts: slice
    bound: list[BoundSymbol]
    begins: int
    result: Any = None
    outside: frozenset[str] | None = None
    relevant: list[tuple[Any, ...]] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """Where what is reused is guarded and recorded.

    Args:
        external: what is outside.
        builder: of the trace being recorded.
        tensors: finds the traced tensor of an external tensor.
        wrap: makes a traced tensor with memory of its own.
        layouts: tells how tensors with symbolic sizes will be laid out.
    """

    external: GuardedState
    builder: Builder
    tensors: Callable[[torch.Tensor], TracedTensor | None]
    wrap: Callable[[TensorProxy], TracedTensor]
    layouts: Layouts


class ReusedBlock:
    """Plays a call again with another module, and other arguments.

    Args:
        recording: takes it in.
        run: how the first module ran.
        module, args, kwargs: what is called now.
    """

    def __init__(
        self, recording: Recording, run: Run, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.external = recording.external
        self.recording = recording
        self.run = run
        self.call = (module, args, kwargs)
        self.pairs = Counterparts(self.external, recording.layouts)
        self.counterparts, self.names = self.pairs.of, self.pairs.names
        self._sources: dict[int, Source] = {}
        self._moves: dict[int, Source] = {}
        self.places = [str(_known(self.external.source_of(m))) for m in (run.module, module)]

    def __call__(self) -> Any:
        """Return what the call returns.

        Raises:
            Unlike: the modules or the calls differ; nothing was recorded or guarded.
        """
        run, (module, args, kwargs) = self.run, self.call
        self.pairs.pair(run.module, module)
        self.pairs.match_arguments(run.args, args)
        self.pairs.match_arguments(run.kwargs, kwargs)
        facts = self.external.log[run.facts] if run.relevant is None else run.relevant
        steps = [step for fact in facts if (step := self.counterpart_of(fact)) is not None]
        bound = run.bound
        self._check_outside(bound)
        result = self._result(run.result)
        for step in steps:
            step()
        for tensor in self.pairs.reads:
            first, second = self.traced(tensor), self.traced(self.counterparts[id(tensor)])
            self.names[first._proxy.name] = second._proxy
        self._record(bound)
        if run.relevant is None:
            run.relevant = self._relevant(facts)
        return result()

    def _relevant(self, facts: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Return the facts that may concern the module, each once: others hold whatever module is called.

        What may have a counterpart is the same for all modules: it is what was found at places that have one.
        """
        found: dict[Any, tuple[Any, ...]] = {}
        for fact in facts:
            match fact:
                case ("read", base, kind, key, value, slot):
                    common = slot is not None and id(slot[0]) not in self.counterparts
                    if not (common and isinstance(value, (*VALUES, *CODE))):
                        place = (id(slot[0]), id(slot[1])) if slot is not None else (id(base), kind, id(key))
                        found.setdefault(place, fact)
                case ("guard", guard, what):
                    source = guard.source
                    alone = guard.__class__ in OF_ONE_OBJECT and source.is_held
                    if not alone or id(source.held) in self.counterparts:
                        found.setdefault(what, fact)
                case ("lacks", source, own, names):
                    if id(own) in self.counterparts:
                        _, _, _, before = found.get(("lacks", id(own)), (0, 0, 0, ()))
                        together = tuple(dict.fromkeys((*before, *names)))
                        found["lacks", id(own)] = ("lacks", source, own, together)
                case ("empty", _, own, key):
                    if id(own) in self.counterparts:
                        found.setdefault(("empty", id(own), key), fact)
                case ("know", value, _):
                    if id(value) in self.counterparts:
                        found.setdefault(("know", id(value)), fact)
                case _:
                    found.setdefault(id(fact[1]), fact)
        return list(found.values())

    # --- facts -----------------------------------------------------------------------------------------------------

    def counterpart_of(self, fact: tuple[Any, ...]) -> Callable[[], Any] | None:
        """Check that what was read holds of the second module, too; return what takes it in."""
        match fact:
            case ("read", base, kind, key, value, slot):
                return self._read(base, kind, key, value, slot)
            case ("guard", guard, what):
                return self._guard(guard, what)
            case ("lacks", source, own, names):
                return self._lacks(source, own, names)
            case ("empty", source, own, key):
                return self._empty(source, own, key)
            case ("know", value, source):
                return self._know(value, source)
            case _:  # an object that code which cannot be watched looked into
                require(self.counterparts.get(id(fact[1]), fact[1]) is fact[1])
                return None

    def _read(self, base: Source, kind: str, key: Any, value: Any, slot: Any) -> Callable[[], Any] | None:
        if slot is None and self._depends(base, *(key if kind == "call" else ())):
            second = self._evaluated(Source(base, kind, key))
            self.pairs.match(value, second)
            self._require_fixed(base, kind, key, value, second)
            return lambda: self.external.read(self._moved(base), kind, key, second)
        container = None if slot is None else self.pairs.paired(slot[0], base)
        if container is None:
            if not is_value(value):
                self.pairs.match(value, value)
            return None
        try:
            second = container[key]
        except LookupError:
            raise Unlike from None
        self.pairs.match(value, second)
        owner = self.counterparts[id(base.held)]
        source = self.external.source_of
        self._require_fixed(base, kind, key, value, second, slot[0])
        return lambda: self.external.read(_known(source(owner)), kind, key, second, (container, slot[1]))

    def _require_fixed(
        self, base: Source, kind: str, key: object, first: object, second: Any, container: Any = None
    ) -> None:
        """A number that is dynamic is one of its own in each module."""
        if is_number(first) and self.external.dynamic is not None:
            makes_symbolic = self.external.makes_symbolic
            require(not makes_symbolic(first, Source(base, kind, key), container))
            require(not makes_symbolic(second, Source(self._moved(base), kind, key), container))

    def _guard(self, guard: Guard, what: tuple[Any, ...]) -> Callable[[], Any] | None:
        source = guard.source
        if guard.__class__ not in OF_ONE_OBJECT:
            require(not self._depends(*guard.sources))
            return None
        if not self._depends(source):
            return None
        second = self._evaluated(source)
        if isinstance(guard, PartGuard):
            guard = guard.expecting(self.counterparts.get(id(guard.value), guard.value))
        require(guard.problem(second) is None)

        def guard_it() -> None:
            moved = guard.moved(self._moved(source))
            first, now = source, moved.source
            ids = {id(first): id(now)}  # by which the fact tells whose it is
            while not first.is_held:
                first, now = _known(first.base), _known(now.base)
                ids[id(first)] = id(now)
            ids[id(first.held)] = id(self._evaluated(first))
            self.external.require(moved, *[ids.get(w, w) if w.__class__ is int else w for w in what])

        return guard_it

    def _lacks(self, source: Source, own: dict[str, Any], names: tuple[str, ...]) -> Callable[[], Any] | None:
        second = self.pairs.paired(own, source)
        if second is None:
            return None
        require(second.keys().isdisjoint(names))
        return lambda: self.external.require_absent(self._moved(source), second, names)

    def _empty(self, source: Source, own: dict[str, Any], key: str) -> Callable[[], Any] | None:
        second = self.pairs.paired(own, source)
        if second is None:
            return None
        require(key in second and not second[key])
        self.pairs.pair(own[key], second[key])
        return lambda: self.external.require_empty(self._moved(source), second, key)

    def _know(self, value: object, source: Source) -> Callable[[], Any] | None:
        if not source.is_held or self.pairs.is_common(value):
            return None
        second = self.counterparts[id(value)]
        return lambda: self.external.know(second, self._source(second, source))

    def _evaluated(self, source: Source) -> Any:
        """Return what is where a way that begins at the first module's objects leads from the second's."""
        if source.is_held:
            return self.counterparts.get(id(source.held), source.held)
        require(source.base is not None and source.kind in ("attribute", "item"))
        try:
            base = self._evaluated(_known(source.base))
            return getattr(base, source.key) if source.kind == "attribute" else base[source.key]
        except (LookupError, AttributeError):
            raise Unlike from None

    def _moved(self, source: Source) -> Source:
        if not source.is_held:
            found = self._moves.get(id(source))
            if found is None:
                found = self._moves[id(source)] = Source(self._moved(_known(source.base)), source.kind, source.key)
            return found
        return source if self.pairs.is_common(source.held) else self._source(self.counterparts[id(source.held)], source)

    def _source(self, second: object, first: Source) -> Source:
        """Return the way to a counterpart of what ``first`` leads to."""
        found = self.external.source_of(second) or self._sources.get(id(second))
        if found is None:
            here, there = self.places
            name = str(first)
            found = held(second, there + name.removeprefix(here) if name.startswith(here) else name)
            self._sources[id(second)] = found
        return found

    def _depends(self, *sources: Any) -> bool:
        """Whether ways to values lead through the first module."""
        for source in sources:
            while isinstance(source, Source):
                if source.is_held:
                    if not self.pairs.is_common(source.held):
                        return True
                    break
                source = source.base
        return False

    # --- what was recorded -----------------------------------------------------------------------------------------

    def traced(self, tensor: torch.Tensor) -> TracedTensor:
        """Return what stands for an external tensor."""
        found = self.recording.tensors(tensor)
        assert found is not None
        return found

    def _check_outside(self, bound: list[BoundSymbol]) -> None:
        """All that the first call computed with came in as an argument, or was read from external state."""
        if self.run.outside is None:
            free = read_from_outside(bound)  # numbers are the same in all calls
            self.run.outside = frozenset([name for name, p in free.items() if not isinstance(p, NumberProxy)])
        read = {self.traced(t)._proxy.name for t in self.pairs.reads}
        require(all(name in read or name in self.names for name in self.run.outside))

    def _record(self, bound: list[BoundSymbol]) -> None:
        builder, names = self.recording.builder, self.names
        for b in bound:
            if is_of_numbers(b):  # those that were computed are the same
                continue
            for proxy in b.outputs:
                names[proxy.name] = proxy.renamed(builder.names.fresh(proxy.prefix))
            builder.bound_symbols.append(b.renamed(names))

    def _result(self, first: Any) -> Callable[[], Any]:
        """Return what makes the counterpart of a result."""
        if isinstance(first, TracedTensor):
            if id(first) in self.pairs.given:
                second = self.pairs.given[id(first)]
                return lambda: second
            fresh = first._memory.root is first and first._viewed_as is None and first.source is None
            require(fresh and not first._memory.version and not first.attributes() and not first._memory.outside)
            return lambda: self._made(first)
        if is_value(first) or isinstance(first, NumberProxy):
            return lambda: first
        require(first.__class__ is tuple)
        parts = [self._result(item) for item in first]
        return lambda: tuple([part() for part in parts])

    def _made(self, first: TracedTensor) -> TracedTensor:
        second = self.recording.wrap(self.names[first._proxy.name])  # type: ignore[arg-type]
        self.recording.layouts.alike(second, first)
        return second


def _known(source: Source | None) -> Source:
    assert source is not None
    return source


def is_of_numbers(bound: BoundSymbol) -> bool:
    """Whether a call computes numbers of numbers."""
    return isinstance(bound.output, NumberProxy) and all([isinstance(p, NumberProxy) for p in bound.inputs])
