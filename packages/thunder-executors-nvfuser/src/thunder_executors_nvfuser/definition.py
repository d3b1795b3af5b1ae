"""From a region to the text of its definition, for the layouts that its inputs have when it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import thunder_prims as prims
from thunder_executors import Declined
from thunder_executors_nvfuser.settings import Settings
from thunder_executors_nvfuser.translations import CONDITIONS, PRODUCTS, RANDOM, TRANSLATIONS, full_of, needs_no_cast
from thunder_executors_nvfuser.types import TYPES, type_text
from thunder_executors_nvfuser.writer import Writer
from thunder_ir import BoundSymbol, NumberProxy, OpTags, Symbol, TensorProxy, Trace

MOST_DIMENSIONS = 8


@dataclass(frozen=True, slots=True)
class Layout:
    """How a tensor lies in memory, in the words of nvFuser's ``define_tensor``.

    Args:
        contiguity: from the slowest dimension to the fastest, whether the next one follows on; ``None`` for dimensions
            that have one element, or have it again and again.
        order: of each dimension, the rank of its stride, 0 for the smallest.
    """

    contiguity: tuple[bool | None, ...]
    order: tuple[int, ...]

    @staticmethod
    def of(shape: Sequence[int], strides: Sequence[int]) -> Layout:
        """Return the layout of a tensor: what ``nvfuser_direct.compute_tensor_descriptor`` returns.

        Example:
            >>> from thunder_executors_nvfuser.definition import Layout
            >>> Layout.of((2, 3), (1, 2))
            Layout(contiguity=(True, True), order=(0, 1))
            >>> Layout.of((3, 2), (1, 4))
            Layout(contiguity=(False, True), order=(0, 1))
            >>> Layout.of((2, 1, 3), (6, 3, 1)).contiguity
            (False, None, True)
        """
        ndim = len(shape)
        slowest_first = sorted([d for d in range(ndim) if strides[d]], key=lambda d: -strides[d])
        for dim in range(ndim):
            if not strides[dim]:
                slowest_first.insert(dim, dim)
        order, contiguity = [0] * ndim, list[bool | None]()
        expected = 1
        for rank, dim in enumerate(reversed(slowest_first)):
            order[dim] = rank
            if shape[dim] == 1 or strides[dim] == 0:
                contiguity.append(None)
                continue
            contiguity.append(strides[dim] == expected)
            expected = strides[dim] * shape[dim]
        return Layout(tuple(reversed(contiguity)), tuple(order))


def why_not(bound: BoundSymbol, settings: Settings) -> Declined | None:
    """Return why a call cannot be in a fusion, or ``None``.

    Args:
        bound: the call.
        settings: what belongs into fusions.
    """
    values = [p for p in (*bound.inputs, *bound.outputs) if isinstance(p, TensorProxy)]
    if not bound.outputs or not all([isinstance(p, TensorProxy) for p in bound.outputs]):
        return Declined("its results are no tensors")
    for p in values:
        if p.dtype not in TYPES:
            return Declined(f"nvFuser computes with {', '.join([d.name for d in TYPES])}, not {p.dtype.name}")
        if p.ndim > MOST_DIMENSIONS:
            return Declined(f"tensors have at most {MOST_DIMENSIONS} dimensions")
        if any([getattr(d, "unknown", None) is not None for d in p.shape]):
            return Declined("a size is known only when the program runs")
    return _of_prims(bound, settings)


def _of_prims(bound: BoundSymbol, settings: Settings) -> Declined | None:
    symbol = bound.symbol
    if not symbol.is_prim:
        found = [_of_prims(b, settings) for b in bound.subsymbols]
        return next((reason for reason in found if reason is not None), None)
    if symbol is prims.full:
        return None
    if OpTags.MATMUL in symbol.tags and not (settings.linear if symbol is prims.linear else settings.matmul):
        return Declined(f"{symbol.id} is left to the kernels of libraries")
    if symbol in RANDOM and not settings.random:
        return Declined("its random numbers would be others than PyTorch's")
    if not any([symbol in table for table in (TRANSLATIONS, PRODUCTS, RANDOM)]):
        return Declined(f"nvFuser has no operation for {symbol.id}")
    condition = CONDITIONS.get(symbol)
    answer = condition(bound) if condition is not None else True
    return answer if isinstance(answer, Declined) else None


def write_definition(region: Trace, layouts: Sequence[Layout | None], outputs: Sequence[Layout]) -> str:
    """Return the body of the function that defines a fusion, a line for each of its values.

    Its outputs are those of the region, and after them for each call that reads at indices a number, which is not 0
    where one of these leads out of its tensor.

    Args:
        region: in prims.
        layouts: of its inputs; ``None`` for numbers.
        outputs: how its outputs shall lie.
    """
    write = Writer()
    for proxy, layout in zip(region.inputs, layouts, strict=True):
        _declare(write, proxy, layout)
    for bound in region.bound_symbols:
        made = _translated(write, bound)
        for out, name in zip(bound.outputs, made, strict=True):
            assert isinstance(out, TensorProxy)
            write.names[out.name] = name if needs_no_cast(bound, out) else write.cast(name, out.dtype)
    for proxy, layout in zip(region.outputs, outputs, strict=True):
        name = write.names[proxy.name]
        if layout.order != tuple(range(len(layout.order)))[::-1]:
            name = write.call("stride_order", name, str(list(layout.order)))
        write.lines.append(f"fd.add_output({name})")
    write.lines += [f"fd.add_output({flag})" for flag in write.flags]
    return "\n".join(write.lines)


def _declare(write: Writer, proxy: object, layout: Layout | None) -> None:
    if not isinstance(proxy, TensorProxy) or layout is None:
        assert isinstance(proxy, NumberProxy)
        write.names[proxy.name] = write.line("fd.define_scalar(dtype=DataType.Int)")[0]
        return
    shape = [-1 if isinstance(d, NumberProxy) else d for d in proxy.shape]
    name = write.line(
        f"fd.define_tensor(shape={shape}, contiguity={list(layout.contiguity)}, dtype={type_text(proxy.dtype)}, "
        f"is_cpu=False, stride_order={list(layout.order)})"
    )[0]
    write.names[proxy.name] = name
    for dim, size in enumerate(proxy.shape):
        if isinstance(size, NumberProxy):
            write.open.setdefault(size.name, f"fd.ops.size({name}, {dim})")


def _translated(write: Writer, bound: BoundSymbol) -> list[str]:
    symbol: Symbol = bound.symbol
    if symbol is prims.full:
        out = bound.output
        assert isinstance(out, TensorProxy)
        return [full_of(write, out, bound.args[0], bound.args[1])]
    made = (TRANSLATIONS.get(symbol) or PRODUCTS.get(symbol) or RANDOM[symbol])(write, *bound.args, **bound.kwargs)
    return [made] if isinstance(made, str) else made


__all__ = ["MOST_DIMENSIONS", "Layout", "why_not", "write_definition"]
