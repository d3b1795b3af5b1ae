"""What kernels pay for: what is taken where this is one of the default executors, and the user names none.

A call of a kernel costs what four calls of PyTorch cost, so tensors have to be large enough that passes over memory
count more. What is measured to be no faster than PyTorch's own kernels is left to them: functions and reductions of
``float16``, gelu and layer normalisation of ``bfloat16``, what reads memory in another order than it writes it, layer
normalisation with its derivative unless gelu comes next, activations with their derivatives where nothing around can be
fused with them, unless they compute hyperbolic tangents, cumulative sums of integers, and of so few rows that threads
would wait.

Programs of small tensors run in native code, which calls kernels at no cost; there each saves the calls of PyTorch that
it stands for, and they pay where these are enough to have been worth compiling.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.nn import functional as F

from thunder_executors import FusionExecutor, Region, partition
from thunder_executors_llvm.layouts import REORDERS, reorders
from thunder_executors_llvm.memo import structure
from thunder_executors_llvm.selection import digests, elements, is_slow, takes_tanh
from thunder_ir import BoundSymbol, OpTags, Proxy, TensorProxy, Trace, devices, dtypes, value_of
from thunder_ir.passes import expand
from thunder_loops import SCANNING, Parts, Structure, moves_only, operation_cost
from thunder_prims import flip, full, stride_order, transpose
from thunder_torch import symbol_of

LARGE = 65536
"""Elements for which one pass over memory less is worth the call of a kernel."""

EXACT_OR_WIDE = frozenset({
    dtypes.bool8, dtypes.uint8, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64,
})  # fmt: skip

ARITHMETIC = 10
"""What operations cost, in additions, that are functions."""

FEWEST_ROWS = 16
"""Rows that are enough for the threads of most machines."""

MOVING = REORDERS | {stride_order}
"""Prims that read memory in another order."""

AS_FAST_DERIVED = frozenset({symbol_of(F.layer_norm), symbol_of(torch.layer_norm)})
"""What PyTorch has kernels for, with the derivative, that are as fast as regions, except together with gelu."""

SLOW_IN_HALVES = AS_FAST_DERIVED | {symbol_of(F.gelu)}
"""What PyTorch has kernels for that are faster for ``float16`` and ``bfloat16``."""

AS_FAST_ALONE = frozenset([symbol_of(function) for function in (
    F.gelu, F.relu, torch.relu, F.relu6, F.leaky_relu, F.elu, F.selu, F.silu, F.hardswish, F.hardtanh, F.softplus,
    torch.sigmoid,
)])  # fmt: skip
"""What PyTorch has kernels for, with the derivative, where nothing around can be fused with it, as between products;
not gelu by a hyperbolic tangent.
"""


SAVED = 64
"""Calls of small tensors that kernels have to save in a program to be worth waiting for, and results of other bits."""

SAVED_BY_EACH = 4
"""Calls that each of its kernels has to save, on average, to be worth waiting for: more than these."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What is taken of what can be in a kernel.

    Args:
        large: elements that the largest tensor of a region has at least; 0 to take everything.
        beside: outputs of the calls of :data:`AS_FAST_ALONE` that stand beside others in the program at hand, and of
            those of :data:`AS_FAST_DERIVED` that such a call reads.
        turned: outputs of the flips before and after what is cumulative: it begins at the end, and nothing moves.
    """

    large: int = 0
    beside: frozenset[str] = frozenset()
    turned: frozenset[str] = frozenset()

    def gains(self, trace: Trace) -> bool:
        """Whether a program reads or computes a tensor that is large enough."""
        tensors = (*trace.inputs, *[p for b in trace.bound_symbols for p in b.outputs])
        return not self.large or any(map(self._is_large, tensors))

    def within(
        self, trace: Trace, can_fuse: Callable[[BoundSymbol], Any], scans: Callable[[BoundSymbol], bool]
    ) -> Selection:
        """Return the selection that knows what stands beside the calls of a program.

        Args:
            trace: the program.
            can_fuse: whether a call can be in a region.
            scans: whether a call computes what is cumulative.
        """
        if not self.large:
            return self
        scanning = list(filter(scans, trace.bound_symbols))
        turned = _turned(trace, scanning) if scanning and all(map(can_fuse, scanning)) else frozenset()
        return replace(self, beside=self._beside(trace, can_fuse), turned=turned)

    def _beside(self, trace: Trace, can_fuse: Callable[[BoundSymbol], Any]) -> frozenset[str]:
        """Return the outputs of calls that share a tensor with one whose derivative is in regions anyway."""
        alone = [b for b in trace.bound_symbols if is_as_fast_alone(b) and self._has_large(b)]
        if not alone:
            return self.beside
        shared = {p.name for b in alone for p in _proxies(b)}
        around = [b for b in trace.bound_symbols if not shared.isdisjoint([p.name for p in _proxies(b)])]
        fused = defaultdict(set)
        for bound in around:
            differentiated = is_as_fast_alone(bound) or self.differentiates(bound)
            if differentiated and can_fuse(bound) and not moves_only(bound):
                for p in _proxies(bound):
                    fused[p.name].add(id(bound))
        beside = [b for b in alone if any([fused[p.name] - {id(b)} for p in _proxies(b)])]
        made = {p.name: b for b in around if b.symbol in AS_FAST_DERIVED for p in b.outputs}
        for bound in [b for b in alone if b.symbol in SLOW_IN_HALVES]:
            before = [made[p.name] for p in bound.inputs if p.name in made]
            beside += [b for b in (bound, *before) if before and all(map(can_fuse, (bound, *before)))]
        return frozenset([p.name for b in beside for p in b.outputs])

    def why_not(self, bound: BoundSymbol, prims: Sequence[BoundSymbol]) -> str | None:
        """Return why a call is left to others whether it can be in a kernel or not, or ``None``.

        Args:
            bound: the call.
            prims: that it is made of.
        """
        if not self.large:
            return None
        half = self._half(bound, prims)
        if half is not None:
            return half
        scans = list(filter(is_scan, prims))
        if any(map(_of_few_rows, scans)):
            return "what is cumulative along few rows would run on as few threads, with all around it"
        if any([b.args[0].dtype.is_exact for b in scans]):
            return "cumulative integers are places mostly, and no nest checks places that it finds itself"
        computing = [b for b in prims if OpTags.VIEW not in b.symbol.tags]
        if len(computing) > 2 and not self._has_large(bound):
            return "its tensors are small, and PyTorch has a kernel for it"
        return None

    def moves(self, bound: BoundSymbol, prims: Sequence[BoundSymbol]) -> bool:
        """Whether a call is left to others for moving elements, unless it is one of :attr:`turned`."""
        return bool(self.large) and any(map(_moves, prims))

    def why_no_parts(self, bound: BoundSymbol) -> str | None:
        """Return why a call of which a part can be in a kernel is left to others as a whole, or ``None``."""
        if not self.large:
            return None
        if not self._has_large(bound):
            return "its tensors are small, and PyTorch has a kernel for it"
        return self._half(bound, _prims(bound))

    def _half(self, bound: BoundSymbol, prims: Sequence[BoundSymbol]) -> str | None:
        half = [p for p in _proxies(bound) if isinstance(p, TensorProxy) and p.dtype not in EXACT_OR_WIDE]
        if not half:
            return None
        if bound.symbol in SLOW_IN_HALVES and not takes_tanh(bound):
            return f"PyTorch's kernel is faster for {half[0].dtype}"
        if any([p.dtype is dtypes.float16 for p in half]) and not (is_slow(bound) or all(map(_is_arithmetic, prims))):
            return "kernels of PyTorch are as fast for functions and reductions of float16"
        return None

    def differentiates(self, bound: BoundSymbol) -> bool:
        """Whether one of a call's tensors is large, and PyTorch has no kernels that are as fast where it stands."""
        if not self.large:
            return True
        as_fast = is_as_fast_alone(bound) or bound.symbol in AS_FAST_DERIVED
        if as_fast and self.beside.isdisjoint([p.name for p in bound.outputs]):
            return False
        return self._has_large(bound)

    def _has_large(self, bound: BoundSymbol) -> bool:
        return any(map(self._is_large, _proxies(bound)))

    def takes(self, parts: Parts) -> bool:
        """Whether a region is worth a kernel."""
        if not self.large:
            return True
        if not any([self._has_large(b) for b in parts.inside]):
            return False
        computing = [b for b in parts.inside if not moves_only(b)]
        if any(map(is_slow, computing)) or len(computing) > 2:
            return True
        return not any([_reduces(b) for b in computing]) or digests(parts)

    def _is_large(self, proxy: Proxy) -> bool:
        if not isinstance(proxy, TensorProxy) or proxy.device.type is not devices.cpu.type:
            return False
        half = proxy.dtype not in EXACT_OR_WIDE
        return elements(proxy) >= (2 * self.large if half else self.large)  # as many bytes as of float32


def is_as_fast_alone(bound: BoundSymbol) -> bool:
    """Whether PyTorch's kernels are as fast for a call and its derivative where nothing around is fused with it."""
    return bound.symbol in AS_FAST_ALONE and not takes_tanh(bound)


def saves_many(trace: Trace, executor: FusionExecutor, computes: Callable[[BoundSymbol], bool]) -> bool:
    """Whether kernels save so many calls of a program of small tensors that they are worth waiting for.

    Args:
        trace: the program.
        executor: who would make the kernels.
        computes: whether a call that can be in a region does more than look at memory in another way.
    """
    calls = trace.bound_symbols
    if len(calls) < SAVED or not all([_is_small(p) for b in calls for p in b.outputs]):
        return False
    marked = [b.replace(tags=b.tags | {executor.mark}) if executor.can_fuse(b) else b for b in calls]
    regions = [r for r in partition(trace.replace(bound_symbols=tuple(marked)), executor) if isinstance(r, Region)]
    kernels: set[Structure | Region] = set()
    saved = 0
    for region in regions:
        computing = [b for b in region.bound_symbols if computes(b)]
        if len(computing) > 1:  # else PyTorch has a kernel that does the same
            saved += len(computing) - 1
            kernels.add(structure(region.bound_symbols, region.outputs) or region)
    return saved >= SAVED and saved > SAVED_BY_EACH * len(kernels)


def _is_small(proxy: Proxy) -> bool:
    return not isinstance(proxy, TensorProxy) or elements(proxy) < LARGE


def _proxies(bound: BoundSymbol) -> tuple[Proxy, ...]:
    return (*bound.inputs, *bound.outputs)


def _prims(bound: BoundSymbol) -> tuple[BoundSymbol, ...]:
    inputs = tuple({p.name: p for p in bound.inputs}.values())
    return tuple(expand(Trace("call", inputs, (bound,), bound.outputs)).bound_symbols)


def _is_arithmetic(bound: BoundSymbol) -> bool:
    """Whether a prim computes elements of ones at the same place without a call of a function, or nothing."""
    tags = bound.symbol.tags
    if OpTags.ELEMENTWISE in tags:
        return operation_cost(bound.symbol.name) < ARITHMETIC
    return OpTags.VIEW in tags or bound.symbol is full


def _of_few_rows(bound: BoundSymbol) -> bool:
    """Whether the dimensions that a scan does not walk along have few elements."""
    a, dim = bound.args
    return bool(a.ndim < 2 or elements(a) < FEWEST_ROWS * value_of(a.shape[dim]))


def _moves(bound: BoundSymbol) -> bool:
    """Whether a prim reads memory in another order; what lies in rows as far as is known does not change."""
    if bound.symbol is stride_order and bound.args[0].strides is None:
        return reorders(bound)
    if bound.symbol is transpose:
        a, order = bound.args
        walked = [dim for dim in order if value_of(a.shape[dim]) != 1]
        return walked != sorted(walked)
    return bound.symbol in MOVING


def is_scan(bound: BoundSymbol) -> bool:
    """Whether a prim computes what is cumulative."""
    return bound.symbol in SCANNING


def _turned(trace: Trace, scans: Sequence[BoundSymbol]) -> frozenset[str]:
    """Return the outputs of flips that stand before and after what is cumulative, of the same dimensions."""
    flips = [(b, f.args[1]) for b in trace.bound_symbols for f in (b, *b.subsymbols) if f.symbol is flip]
    made = {p.name: (b, dims) for b, dims in flips for p in b.outputs}
    read = {p.name: (b, dims) for b, dims in flips for p in b.inputs}
    found = set()
    for scan in scans:
        before = [made[p.name] for p in scan.inputs if p.name in made]
        after = [read[p.name] for p in scan.outputs if p.name in read]
        if before and after and before[0][1] == after[0][1]:
            found.update([p.name for b in (before[0][0], after[0][0]) for p in b.outputs])
    return frozenset(found)


def _reduces(bound: BoundSymbol) -> bool:
    """Whether fewer elements come out than go in."""
    most = max(map(elements, bound.inputs), default=0)
    return any([elements(p) < most for p in bound.outputs])


EVERYTHING = Selection()
PAYING = Selection(LARGE)
