"""Regions as functions: compiled when they first run, one for all regions that are equal but for names."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import torch

from thunder_executors import Region, to_callable
from thunder_ir import BoundSymbol, IntegerProxy, NumberProxy, Proxy, TensorProxy, Trace, substitute
from thunder_ir.passes.renaming import renamed

Compiled = Callable[[list[Any]], Sequence[Any]]
Made = tuple[Compiled, Callable[..., bool]]
Strides = tuple[tuple[int, ...] | None, ...]
Sizes = tuple[tuple[int, int | None], ...]
MOST_LAYOUTS = 8  # of inputs for which a region is compiled; further ones are copied


class Layout(NamedTuple):
    """What a region is compiled for.

    Args:
        strides: of its tensors; ``None`` for one with symbolic sizes, which is laid out in order.
        sizes: values of its symbolic sizes.
    """

    strides: Strides
    sizes: tuple[int, ...]


class Kernel:
    """A region that Inductor compiles, for each layout of its inputs when that first comes.

    Args:
        program: the region; its symbolic sizes are the first inputs, tensors follow.
        sizes: where each symbolic size is read among the region's inputs: the place of a tensor, and the
            dimension; or the place of a number, and ``None``.
        tensors: the places of the tensors.
        settings: of Inductor.
    """

    def __init__(self, program: Trace, sizes: Sizes, tensors: Sequence[int], settings: Mapping[str, Any]) -> None:
        self.program = program
        self.compilations = 0
        self._sizes, self._tensors = sizes, tuple(tensors)
        self.settings = dict(settings)
        self._made: dict[Strides, list[Made]] = {}
        self._lock = threading.Lock()
        given = [p for p in program.inputs if isinstance(p, TensorProxy)]
        self._open = [any([type(d) is not int for d in p.shape]) for p in given]
        self._any_open = any(self._open)

    def __call__(self, *inputs: Any) -> Sequence[Any]:
        """Run the region.

        Args:
            inputs: tensors and integers, as the region has them.

        Returns:
            its outputs, in order.
        """
        if not self._sizes:  # the usual case, in as little time as there can be
            strides: Strides = tuple([t.stride() for t in inputs])
            if made := self._made.get(strides):
                return made[0][0](list(inputs))
        tensors = [inputs[i] for i in self._tensors]
        if self._any_open:  # whose strides depend on sizes
            tensors = [t.contiguous() if is_symbolic else t for t, is_symbolic in zip(tensors, self._open, strict=True)]
        layout = self.layout_of(inputs)
        compiled = self._find(layout)
        if compiled is None:
            with self._lock:
                layout, tensors = self._settled(layout, tensors)
                compiled = self._find(layout) or self._compile(layout)
        return compiled([*layout.sizes, *tensors])

    def eager(self, *inputs: Any) -> Sequence[Any]:
        """Return what it returns, computed by PyTorch's own functions, as fake tensors need it."""
        outputs: Sequence[Any] = self._eager(*self.layout_of(inputs).sizes, *[inputs[i] for i in self._tensors])
        return outputs

    @cached_property
    def _eager(self) -> Callable[..., Any]:
        return to_callable(self.program, [])

    def layout_of(self, inputs: Sequence[Any]) -> Layout:
        """Return for which layout the region is compiled to run on tensors and integers."""
        tensors = [inputs[i] for i in self._tensors]
        strides = tuple([None if o else t.stride() for t, o in zip(tensors, self._open, strict=True)])
        return Layout(strides, tuple([inputs[i] if dim is None else inputs[i].shape[dim] for i, dim in self._sizes]))

    def serves(self, layout: Layout) -> bool:
        """Whether the region is compiled for a layout."""
        return self._find(layout) is not None

    def keep(self, layout: Layout, made: Made) -> None:
        """Keep what was compiled for a layout; what another thread has compiled meanwhile stays."""
        with self._lock:
            if not self.serves(layout):
                self._keep(layout, made)

    def laid_out(self, layout: Layout) -> Trace:
        """Return the program with the strides that tensors have, and the sizes at hand."""
        count = len(layout.sizes)
        changed: dict[str, Any] = {}
        for proxy, value in zip(self.program.inputs[:count], layout.sizes, strict=True):
            changed[proxy.name] = IntegerProxy(value, proxy.name)
        for proxy, strides in zip(self.program.inputs[count:], layout.strides, strict=True):
            assert isinstance(proxy, TensorProxy)
            shape = substitute(tuple(proxy.shape), changed)
            changed[proxy.name] = TensorProxy(shape, proxy.dtype, proxy.device, False, strides, name=proxy.name)
        return renamed(self.program, changed)

    def _find(self, layout: Layout) -> Compiled | None:
        for compiled, fits in self._made.get(layout.strides, ()):
            if not layout.sizes or fits(*layout.sizes):
                return compiled
        return None

    def _settled(self, layout: Layout, tensors: list[torch.Tensor]) -> tuple[Layout, list[torch.Tensor]]:
        """Return a layout to compile for: this, or an earlier one to which the tensors are copied if there are many."""
        if layout.strides in self._made or len(self._made) < MOST_LAYOUTS:
            return layout, tensors
        first = next(iter(self._made))
        pairs = zip(tensors, first, strict=True)
        copies = [t if s is None else torch.empty_strided(t.shape, s, **_kind(t)).copy_(t) for t, s in pairs]
        return Layout(first, layout.sizes), copies

    def _compile(self, layout: Layout) -> Compiled:
        entry = importlib.import_module("thunder_executors_inductor.entry")  # here: Inductor takes seconds to import
        return self._keep(layout, entry.compile_trace(self.laid_out(layout), self.settings))

    def _keep(self, layout: Layout, made: Made) -> Compiled:
        self._made.setdefault(layout.strides, []).append(made)
        self.compilations += 1
        return made[0]


def _kind(tensor: torch.Tensor) -> dict[str, Any]:
    return {"dtype": tensor.dtype, "device": tensor.device}


class Kernels:
    """The kernels of an executor, found by what they compute.

    Args:
        settings: of Inductor.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = dict(settings)
        self._kernels: dict[Any, Kernel] = {}
        self._lock = threading.Lock()

    def of(self, region: Region) -> Kernel:
        """Return the kernel of a region; regions that are equal but for names have one."""
        program, sizes = canonical(region)
        source = program.source()
        held = tuple([(n, id(o)) for n, o in source.context.globals.items() if n not in source.context.imports])
        key = (source.text, held, tuple(source.import_lines), sizes)
        with self._lock:
            if key not in self._kernels:  # which keeps the objects of the program alive, so that no id is used again
                tensors = [i for i, p in enumerate(region.inputs) if isinstance(p, TensorProxy)]
                self._kernels[key] = Kernel(program, sizes, tensors, self.settings)
            return self._kernels[key]


def ordered(region: Region) -> Region:
    """Return a region with calls and inputs in the order in which its outputs need them.

    So regions of two layers are equal if one has the same calls in another order: what all layers read, such as the
    cosines of a rotary embedding, comes to them in one order in the first layer and in another one in the rest.
    """
    maker = {p.name: bound for bound in region.bound_symbols for p in bound.outputs}
    bounds: dict[int, BoundSymbol] = {}
    pending = [maker[p.name] for p in reversed(region.outputs)]
    while pending:
        bound = pending[-1]
        before = [b for p in bound.inputs if (b := maker.get(p.name)) is not None and id(b) not in bounds]
        if before:
            pending += reversed(before)
            continue
        bounds.setdefault(id(pending.pop()), bound)
    read = {p.name: p for bound in bounds.values() for p in bound.inputs if p.name not in maker}
    return Region(tuple(bounds.values()), tuple(read.values()), region.outputs)


def canonical(region: Region) -> tuple[Trace, Sizes]:
    """Return a region as a program whose names depend on nothing but what it computes, and where its sizes are read."""
    names: dict[str, Proxy] = {}
    sizes: dict[str, tuple[int, int | None]] = {}
    numbers: list[Proxy] = []
    for i, proxy in enumerate(region.inputs):
        if isinstance(proxy, NumberProxy):
            sizes[proxy.name] = (i, None)
            numbers.append(proxy)
    for i, proxy in enumerate(region.inputs):
        for dim, size in enumerate(proxy.shape if isinstance(proxy, TensorProxy) else ()):
            if isinstance(size, NumberProxy) and size.name not in sizes:
                sizes[size.name] = (i, dim)
                numbers.append(size)
    defined = [p for bound in region.bound_symbols for p in bound.outputs]
    everything = (*numbers, *[p for p in region.inputs if not isinstance(p, NumberProxy)], *defined)
    for k, proxy in enumerate(everything):
        names.setdefault(proxy.name, proxy.renamed(f"r{k}"))
    for proxy in names.values():
        if isinstance(proxy, TensorProxy):
            proxy.shape = substitute(tuple(proxy.shape), names)
    bounds = tuple([replace(b.substituted(names, outputs=True), location=None) for b in region.bound_symbols])
    inputs = tuple([names[p.name] for p in everything[: len(everything) - len(defined)]])
    return Trace("region", inputs, bounds, tuple([names[p.name] for p in region.outputs])), tuple(sizes.values())


__all__ = ["Kernel", "Kernels", "Layout", "canonical", "ordered"]
