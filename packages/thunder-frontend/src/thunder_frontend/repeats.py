"""Blocks that a model repeats: one is acquired by running it, its equals by playing again what that came to.

While a module with parts runs, the world keeps a log of all that it reads. When another module of the class is called
in the same way, that log is gone through with the second module in place of the first: where each value read is the
same, or the counterpart of the first's, running it would do what running the first did. Then its reads are taken in
as guards of their own, and what the first recorded is recorded again on the second's tensors.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from thunder_frontend.guards import (
    EmptyGuard,
    HeldPartGuard,
    KeysGuard,
    LengthGuard,
    MembershipGuard,
    SetGuard,
    environment,
    metadata_of,
    same_value,
)
from thunder_frontend.kinds import CODE, VALUES
from thunder_frontend.module_calls import Again
from thunder_frontend.sources import Source, held
from thunder_frontend.traced_tensor import TracedTensor
from thunder_frontend.world import World
from thunder_ir import BoundSymbol, Builder, NumberProxy, Proxy, TensorProxy
from thunder_ir.trees import flat_proxies
from thunder_ir.unknown import surely_equal

TABLES = (
    "_parameters", "_buffers", "_modules", "_forward_hooks", "_forward_pre_hooks", "_backward_hooks",
    "_backward_pre_hooks",
)  # fmt: skip
"""What modules keep their parts in: read without going through an attribute."""

OF_ONE_OBJECT = frozenset({EmptyGuard, HeldPartGuard, KeysGuard, LengthGuard, MembershipGuard, SetGuard})
"""Guards that say something of their source's value and of nothing else."""

PAIRED = frozenset({list, tuple, dict, OrderedDict})
"""Classes of containers that are compared by what the program reads of them."""

REMEMBERED = 4
"""How many runs of modules of one class are compared with a call: models alternate between a few kinds of block."""


class Unlike(Exception):
    """Two modules, or two calls, differ in something that a program depends on."""


@dataclass(slots=True, eq=False)
class Run:
    """One call of a module.

    Args:
        module, args, kwargs: what was called, with what.
        state: what else the call depended on.
        facts: where in the world's log it begins, and ends.
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


class Repeats:
    """Remembers how modules ran in one acquisition.

    Args:
        world: what is outside.
        builder: of the trace being recorded.
        tensors: finds the traced tensor of a tensor of the outside world.
        wrap: makes a traced tensor with memory of its own.
        state: everything that a call depends on besides the module and its arguments, as values that compare equal.
    """

    def __init__(
        self,
        world: World,
        builder: Builder,
        tensors: Callable[[torch.Tensor], TracedTensor | None],
        wrap: Callable[[TensorProxy], TracedTensor],
        state: Callable[[], Any],
    ) -> None:
        self.world = world
        self.builder = builder
        self.tensors = tensors
        self.wrap = wrap
        self._state = state
        self._runs: dict[Any, list[Run]] = {}

    def state(self) -> Any:
        """Return what a call depends on besides the module and its arguments."""
        journal = self.world.journal
        return (self._state(), journal.version, journal.consulted, self.builder.tags, environment())

    def begin(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Run | Again | None:
        """Answer a call as an equal module was seen to, or begin to remember it; ``None`` where neither makes sense."""
        source = self.world.source_of(module)
        if source is None or not source.is_held or not module._modules or torch._C._len_torch_function_stack() != 1:
            return None
        state = self.state()
        for run in reversed(self._runs.get((type(module), len(args)), ())):
            if run.state == state:
                try:
                    return Again(Replay(self, run, module, args, kwargs)())
                except Unlike:
                    continue
        here = slice(len(self.world.log), None)
        return Run(module, args, dict(kwargs), state, here, [], len(self.builder.bound_symbols))

    def end(self, run: Run, result: Any) -> None:
        """Remember a call that :meth:`begin` began to, unless it did what cannot be played again."""
        bound = self.builder.bound_symbols[run.begins :]
        if self.state() != run.state:
            return
        if any([_is_open(p) for b in bound for p in b.outputs]):  # the second call would have sizes of its own
            return
        run.result = result
        run.facts = slice(run.facts.start, len(self.world.log))
        run.bound = bound
        runs = self._runs.setdefault((type(run.module), len(run.args)), [])
        runs.append(run)
        del runs[:-REMEMBERED]


class Replay:
    """Plays a call again with another module, and other arguments.

    Args:
        repeats: of the acquisition.
        run: how the first module ran.
        module, args, kwargs: what is called now.
    """

    def __init__(
        self, repeats: Repeats, run: Run, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.world = repeats.world
        self.repeats = repeats
        self.run = run
        self.call = (module, args, kwargs)
        self.counterparts: dict[int, Any] = {}
        self._taken: dict[int, Any] = {}
        self.given: dict[int, TracedTensor] = {}
        self.names: dict[str, Proxy] = {}
        self.reads: list[torch.Tensor] = []
        self._sources: dict[int, Source] = {}
        self._moves: dict[int, Source] = {}
        self.places = [str(_known(self.world.source_of(m))) for m in (run.module, module)]

    def __call__(self) -> Any:
        """Return what the call returns.

        Raises:
            Unlike: the modules or the calls differ; nothing was recorded or guarded.
        """
        run, (module, args, kwargs) = self.run, self.call
        self.pair(run.module, module)
        self.match_arguments(run.args, args)
        self.match_arguments(run.kwargs, kwargs)
        facts = self.world.log[run.facts] if run.relevant is None else run.relevant
        steps = [step for fact in facts if (step := self.counterpart_of(fact)) is not None]
        bound = run.bound
        self._check_outside(bound)
        result = self._result(run.result)
        for step in steps:
            step()
        for tensor in self.reads:
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
                case ("know", value, _):
                    if id(value) in self.counterparts:
                        found.setdefault(("know", id(value)), fact)
                case _:
                    found.setdefault(id(fact[1]), fact)
        return list(found.values())

    # --- the two worlds compared -----------------------------------------------------------------------------------

    def pair(self, first: Any, second: Any) -> None:
        """Take one object for the counterpart of another: modules, containers and tensors."""
        known = self.counterparts.get(id(first), self)
        if known is not self:
            _require(known is second)
            return
        _require(type(first) is type(second) and id(second) not in self._taken)
        _require(first is second or not self.world.journal.touches(second))
        self.counterparts[id(first)] = second
        self._taken[id(second)] = first
        own = getattr(first, "__dict__", None)
        if isinstance(own, dict):
            other = second.__dict__
            self.counterparts[id(own)], self._taken[id(other)] = other, own
            if isinstance(first, torch.nn.Module):
                _require(not own.get("_compiled_call_impl") and not other.get("_compiled_call_impl"))
                for table in TABLES:
                    if table in own and table in other:
                        self.pair(own[table], other[table])

    def match(self, first: Any, second: Any) -> None:
        """Compare what was read of the first module with what is in its place in the second."""
        if isinstance(first, VALUES):
            _require(same_value(first, second))
        elif isinstance(first, torch.Tensor):
            self._match_tensors(first, second)
        elif first is second or first.__class__ in PAIRED or isinstance(first, torch.nn.Module):
            self.pair(first, second)
        else:
            raise Unlike

    def _match_tensors(self, first: torch.Tensor, second: Any) -> None:
        if first is second:
            self.pair(first, second)
            self.reads.append(first)
            return
        _require(isinstance(second, torch.Tensor) and not isinstance(second, TracedTensor))
        if id(first) not in self.counterparts:
            with torch._C.DisableTorchFunction():
                _require(metadata_of(first) == metadata_of(second))
            self._match_attributes(first.__dict__, second.__dict__)
            self.reads.append(first)
        self.pair(first, second)

    def _match_attributes(self, first: dict[str, Any], second: dict[str, Any]) -> None:
        _require(list(first) == list(second))
        for name, value in first.items():
            _require(value is second[name] or isinstance(value, VALUES) and same_value(value, second[name]))

    def match_arguments(self, first: Any, second: Any) -> None:
        """Compare what the two calls were given."""
        cls = first.__class__
        if isinstance(first, TracedTensor):
            self._match_given(first, second)
        elif isinstance(first, VALUES):
            _require(same_value(first, second))
        elif cls is tuple or cls is dict:
            _require(second.__class__ is cls and len(first) == len(second))
            if cls is dict:
                _require(list(first) == list(second))
                first, second = first.values(), second.values()
            for a, b in zip(first, second, strict=True):
                self.match_arguments(a, b)
        else:
            _require(first is second and self.world.is_held(first))

    def _match_given(self, first: TracedTensor, second: Any) -> None:
        if id(first) in self.given:
            _require(self.given[id(first)] is second)
            return
        _require(isinstance(second, TracedTensor) and all(t is not second for t in self.given.values()))
        if first is not second:
            a, b = first._proxy, second._proxy
            _require(first.source is None and second.source is None and a.strides is not None)
            _require(first._leaf is None and second._leaf is None)
            _require(first._stands_for is second._stands_for and not first.attributes() and not second.attributes())
            _require(first._memory.outside == second._memory.outside and _same_metadata(a, b))
            _require((first._viewed_as is None) == (second._viewed_as is None))
        for tensor in (first, second):
            _require(tensor._seen == tensor._memory.version and tensor._made == tensor._memory.counted)
        self.given[id(first)] = second
        self.names[first._proxy.name] = second._proxy

    # --- facts -----------------------------------------------------------------------------------------------------

    def counterpart_of(self, fact: tuple[Any, ...]) -> Callable[[], Any] | None:
        """Check that what was read holds of the second module, too; return what takes it in."""
        match fact:
            case ("read", base, kind, key, value, slot):
                return self._read(base, kind, key, value, slot)
            case ("guard", guard, what):
                return self._guard(guard, what)
            case ("know", value, source):
                return self._know(value, source)
            case _:  # an object that code which cannot be watched looked into
                _require(self.counterparts.get(id(fact[1]), fact[1]) is fact[1])
                return None

    def _read(self, base: Source, kind: str, key: Any, value: Any, slot: Any) -> Callable[[], Any] | None:
        if slot is None and self._depends(base, *(key if kind == "call" else ())):
            second = self._evaluated(Source(base, kind, key))
            self.match(value, second)
            return lambda: self.world.read(self._moved(base), kind, key, second)
        if slot is None or self.is_common(slot[0]):
            if not isinstance(value, VALUES):
                self.match(value, value)
            return None
        container = self.counterparts[id(slot[0])]
        try:
            second = container[key]
        except LookupError:
            raise Unlike from None
        self.match(value, second)
        owner = self.counterparts[id(base.held)]
        source = self.world.source_of
        return lambda: self.world.read(_known(source(owner)), kind, key, second, (container, slot[1]))

    def _guard(self, guard: Any, what: tuple[Any, ...]) -> Callable[[], Any] | None:
        source = guard.source
        if guard.__class__ not in OF_ONE_OBJECT:
            _require(not self._depends(*_sources(guard)))
            return None
        if not self._depends(source):
            return None
        second = self._evaluated(source)
        if isinstance(guard, HeldPartGuard):
            guard = guard.expecting(self.counterparts.get(id(guard.value), guard.value))
        _require(guard.problem(second) is None)

        def guard_it() -> None:
            moved = guard.moved(self._moved(source))
            ids = {id(source.held): id(second), id(source): id(moved.source)}
            if source.base is not None and source.base.is_held:
                ids[id(source.base.held)] = id(_known(moved.source.base).held)
            self.world.require(moved, *[ids.get(w, w) if w.__class__ is int else w for w in what])

        return guard_it

    def _know(self, value: Any, source: Source) -> Callable[[], Any] | None:
        if not source.is_held or self.is_common(value):
            return None
        second = self.counterparts[id(value)]
        return lambda: self.world.know(second, self._source(second, source))

    def _evaluated(self, source: Source) -> Any:
        """Return what is where a way that begins at the first module's objects leads from the second's."""
        if source.is_held:
            return self.counterparts.get(id(source.held), source.held)
        _require(source.base is not None and source.kind in ("attribute", "item"))
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
        return source if self.is_common(source.held) else self._source(self.counterparts[id(source.held)], source)

    def _source(self, second: Any, first: Source) -> Source:
        """Return the way to a counterpart of what ``first`` leads to."""
        found = self.world.source_of(second) or self._sources.get(id(second))
        if found is None:
            here, there = self.places
            name = str(first)
            found = held(second, there + name.removeprefix(here) if name.startswith(here) else name)
            self._sources[id(second)] = found
        return found

    def is_common(self, value: Any) -> bool:
        """Whether both modules have the same object there: then what is known of it is known already."""
        return self.counterparts.get(id(value), value) is value

    def _depends(self, *sources: Any) -> bool:
        """Whether ways to values lead through the first module."""
        for source in sources:
            while isinstance(source, Source):
                if source.is_held:
                    if not self.is_common(source.held):
                        return True
                    break
                source = source.base
        return False

    # --- what was recorded -----------------------------------------------------------------------------------------

    def traced(self, tensor: torch.Tensor) -> TracedTensor:
        """Return the traced tensor of one of the outside world."""
        found = self.repeats.tensors(tensor)
        assert found is not None
        return found

    def _check_outside(self, bound: list[BoundSymbol]) -> None:
        """All that the first call computed with came in as an argument, or was read from the outside world."""
        if self.run.outside is None:
            self.run.outside = _free(bound)
        read = {self.traced(t)._proxy.name for t in self.reads}
        _require(all(name in read or name in self.names for name in self.run.outside))

    def _record(self, bound: list[BoundSymbol]) -> None:
        builder, names = self.repeats.builder, self.names
        for b in bound:
            for proxy in b.outputs:
                names[proxy.name] = proxy.renamed(builder.names.fresh(proxy.prefix))
            builder.bound_symbols.append(b.substituted(names, outputs=True))

    def _result(self, first: Any) -> Callable[[], Any]:
        """Return what makes the counterpart of a result."""
        if isinstance(first, TracedTensor):
            if id(first) in self.given:
                second = self.given[id(first)]
                return lambda: second
            fresh = first._memory.root is first and first._viewed_as is None and first.source is None
            _require(fresh and not first._memory.version and not first.attributes() and not first._memory.outside)
            return lambda: self.repeats.wrap(self.names[first._proxy.name])  # type: ignore[arg-type]
        if isinstance(first, VALUES):
            return lambda: first
        _require(first.__class__ is tuple)
        parts = [self._result(item) for item in first]
        return lambda: tuple([part() for part in parts])


def _require(same: bool) -> None:
    if not same:
        raise Unlike


def _known(source: Source | None) -> Source:
    assert source is not None
    return source


def _sources(guard: Any) -> Iterator[Source]:
    """Return all ways that a guard speaks of."""
    for cls in type(guard).__mro__:
        for name in getattr(cls, "__slots__", ()):
            value = getattr(guard, name)
            yield from (v for v in (value if isinstance(value, tuple) else (value,)) if isinstance(v, Source))


def _same_metadata(a: TensorProxy, b: TensorProxy) -> bool:
    return (
        surely_equal(a.shape, b.shape)
        and a.dtype is b.dtype
        and a.device == b.device
        and surely_equal(a.strides, b.strides)
        and a.requires_grad == b.requires_grad
    )


def _is_open(proxy: Proxy) -> bool:
    """Whether a value is a number, or has dimensions, that only the run of a program tells."""
    return isinstance(proxy, NumberProxy) or (
        isinstance(proxy, TensorProxy) and any(d.__class__ is not int for d in proxy.shape)
    )


def _free(bound: list[BoundSymbol]) -> frozenset[str]:
    """Return the names of the proxies that calls read and do not define."""
    defined: set[str] = set()
    free: set[str] = set()
    for b in bound:
        free.update(p.name for p in b.inputs if p.name not in defined)
        defined.update(p.name for p in flat_proxies(b.output))
    return frozenset(free)


__all__ = ["Repeats", "Run"]
