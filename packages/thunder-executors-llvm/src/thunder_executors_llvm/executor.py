"""The executor: what it takes, and what it makes of it."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from thunder_executors import Declined, Finish, FusionExecutor, Region, to_callable
from thunder_executors_llvm import binding, compiler, support
from thunder_executors_llvm._version import __version__
from thunder_executors_llvm.disk import default_disk
from thunder_executors_llvm.dropout import open_dropouts
from thunder_executors_llvm.kernels import Kernels
from thunder_executors_llvm.layouts import keeps_rows
from thunder_executors_llvm.memo import Memo, structure, structure_now
from thunder_executors_llvm.paying import EVERYTHING, PAYING, Selection, is_scan, saves_many
from thunder_executors_llvm.runner import Overwriting, Runner
from thunder_executors_llvm.selection import unfit, why_not, worth
from thunder_executors_llvm.several import Several
from thunder_executors_llvm.side_by_side import AFTER, FEWEST_CALLS, side_by_side
from thunder_executors_llvm.target import here
from thunder_ir import BoundSymbol, OpTags, Proxy, TensorProxy, Trace
from thunder_ir.passes import expand
from thunder_loops import CannotLower, cost_again, lower, of_untold_sizes, parts_of

REMEMBERED = 4096
"""Structures of which it is known what becomes of them."""

OF_A_CALL = 50_000
"""Bytes of memory traffic that take as long as calling PyTorch does: regions of small tensors alone are left to it."""


def missing() -> str | None:
    """Why this executor cannot run here, or ``None``."""
    return binding.missing() or support.missing()


@dataclass(frozen=True, slots=True)
class _Decided:
    """What becomes of all regions of one structure.

    Args:
        runner: of the calls in the kernels.
        inside: the positions of these calls.
        outputs: which of the values that they define leave the kernels, by their numbers.
        views: the positions of the calls that look at memory afterwards.
        before: the positions of the calls that PyTorch runs before.
    """

    runner: Runner
    inside: tuple[int, ...]
    outputs: tuple[int, ...]
    views: tuple[int, ...]
    before: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Single:
    """What becomes of all calls of one structure, each for itself.

    Args:
        fits: whether a region may hold it.
        moves: whether it is left to others unless what stands beside it makes up for its moving elements.
        again: what it costs once more within a region, in bytes of memory traffic.
        calls: how many calls of PyTorch's kernels do the same.
        scans: whether what it computes is cumulative.
    """

    fits: bool | Declined
    moves: bool = False
    again: float = 0.0
    calls: int = 0
    scans: bool = False


class LlvmExecutor(FusionExecutor):
    """Runs regions as kernels compiled by LLVM.

    Args:
        kernels: where compiled ones are kept.
        selection: what is taken; everything that can be in a kernel, if not given.
        for_many: who is asked in its place where each kernel saves many calls of a program of small tensors.
        (others): see :class:`thunder_executors.Executor`.
    """

    def __init__(
        self,
        kernels: Kernels,
        selection: Selection = EVERYTHING,
        for_many: LlvmExecutor | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            "llvm",
            version=__version__,
            missing=missing,
            install="pip install llvmlite",
            checks=False,
            smallest_region=1,
            **options,
        )
        self.kernels = kernels
        self.selection = selection
        self.for_many = for_many
        self._singles: Memo[_Single] = Memo(REMEMBERED)
        self._regions: Memo[_Decided | None] = Memo(REMEMBERED)
        self._runners: Memo[Runner | None] = Memo(REMEMBERED)
        self.finishing.append(Finish(lambda trace: side_by_side(trace, self), AFTER, FEWEST_CALLS))
        open_dropouts(self, selection.why_no_parts)

    def within(self, trace: Trace) -> FusionExecutor | None:
        if not self.selection.large:
            return self
        for_many = self.for_many
        small = for_many is not None and saves_many(trace, for_many, for_many.computes)
        if not (small or self.selection.gains(trace)) or compiler.load_error() is not None:
            return None  # as nobody asked for this executor, a library that fails to load is no error
        if small:
            return for_many
        selection = self.selection.within(trace, self.can_fuse, lambda bound: self._single(bound).scans)
        if selection == self.selection:
            return self
        made = copy.copy(self)
        made.selection = selection
        return made

    def differentiates(self, bound: BoundSymbol) -> bool:
        return self.selection.differentiates(bound)

    def can_fuse(self, bound: BoundSymbol) -> bool | Declined:
        return self._fits(bound, self._single(bound))

    def computes(self, bound: BoundSymbol) -> bool:
        """Whether a call that can be in a kernel does more than look at memory in another way."""
        return self._single(bound).calls > 0

    def again(self, bound: BoundSymbol) -> float | None:
        single = self._single(bound)
        if not self._fits(bound, single):
            return None
        return single.again if self.differentiates(bound) else single.again + single.calls * OF_A_CALL

    def _fits(self, bound: BoundSymbol, single: _Single) -> bool | Declined:
        if single.moves and self.selection.turned.isdisjoint([p.name for p in bound.outputs]):
            return Declined("kernels of PyTorch are as fast for what moves elements")
        return single.fits

    def _single(self, bound: BoundSymbol) -> _Single:
        return self._singles.get(structure_now(bound), lambda: self._look_at(bound))

    def _look_at(self, bound: BoundSymbol) -> _Single:
        reason = unfit(bound)
        if reason is not None:
            return _Single(Declined(reason))
        call = expand(Trace("call", _inputs((bound,)), (bound,), bound.outputs))
        prims = call.bound_symbols
        scans = any(map(is_scan, prims))
        reason = self.selection.why_not(bound, prims) or why_not(call, here())
        if reason is not None:
            return _Single(Declined(reason), scans=scans)
        calls = len([b for b in prims if OpTags.VIEW not in b.symbol.tags])
        return _Single(True, self.selection.moves(bound, prims), cost_again(prims), calls, scans)

    def fuse(self, region: Region, name: str) -> list[BoundSymbol] | None:
        bounds = region.bound_symbols
        decided = self._regions.get(structure(bounds, region.outputs), lambda: self._decide(region, name))
        if decided is None:
            return None
        inside = tuple([bounds[i] for i in decided.inside])
        made = [p for b in inside for p in b.outputs]
        inner = Region(inside, _inputs(inside), tuple([made[i] for i in decided.outputs]))
        before, views = ([bounds[i] for i in positions] for positions in (decided.before, decided.views))
        return [*before, self.fused(inner, name, decided.runner), *views]

    def _decide(self, region: Region, name: str) -> _Decided | None:
        untold = of_untold_sizes(region)
        told = [b for b in region.bound_symbols if b not in untold] if untold else region.bound_symbols
        parts = parts_of(replace(region, bound_symbols=tuple(told)))
        if not parts.outputs or not worth(parts) or not self.selection.takes(parts):
            return None
        inner = Region(parts.inside, _inputs(parts.inside), parts.outputs)
        runner = self._runners.get(structure(inner.bound_symbols, inner.outputs), lambda: self._runner(inner, name))
        if runner is None:
            return None
        position = {id(b): i for i, b in enumerate(region.bound_symbols)}
        inside, views, before = ([position[id(b)] for b in bounds] for bounds in (parts.inside, parts.views, untold))
        number = {p.name: i for i, p in enumerate([p for b in parts.inside for p in b.outputs])}
        outputs = [number[p.name] for p in parts.outputs]
        return _Decided(runner, tuple(inside), tuple(outputs), tuple(views), tuple(before))

    def into(self, bound: BoundSymbol, made: TensorProxy, target: TensorProxy) -> BoundSymbol | None:
        run = bound.symbol.implementation
        if isinstance(run, Runner):
            run = Overwriting(run, MappingProxyType({}))
        names = [getattr(a, "name", None) for a in bound.args]
        if not isinstance(run, Overwriting) or names.count(target.name) != 1:
            return None
        written = run.with_place([p.name for p in bound.outputs].index(made.name), names.index(target.name))
        if written is None:
            return None
        return bound.replace(symbol=replace(bound.symbol, implementation=written))

    def makes_new(self, bound: BoundSymbol) -> bool:
        return isinstance(bound.symbol.implementation, (Runner, Overwriting, Several))

    def _runner(self, region: Region, name: str) -> Runner | None:
        try:
            return self.runner(region, name)
        except CannotLower:  # the calls can be in kernels one by one, and not together
            return None

    def runner(self, region: Region, name: str) -> Runner:
        """Return what runs a region, whatever that is worth."""
        whole = region.trace(name)
        trace = expand(whole)
        return Runner(whole, lower(trace), to_callable(whole, []), keeps_rows(trace), self.kernels, here())


def _inputs(bounds: tuple[BoundSymbol, ...]) -> tuple[Proxy, ...]:
    made = {p.name for b in bounds for p in b.outputs}
    return tuple({p.name: p for b in bounds for p in b.inputs if p.name not in made}.values())


_KERNELS = Kernels(default_disk())
_FOR_MANY = LlvmExecutor(_KERNELS, default=False)
_CAREFUL = LlvmExecutor(_KERNELS, PAYING, _FOR_MANY, default=False, priority=10)
executor = LlvmExecutor(_KERNELS, careful=_CAREFUL, priority=10)
