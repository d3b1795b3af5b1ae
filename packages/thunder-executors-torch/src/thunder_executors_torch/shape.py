"""Moving elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

import thunder_prims as prims
from thunder_executors import arguments
from thunder_executors_torch.calls import expand, view
from thunder_executors_torch.executor import executor
from thunder_ir import BoundSymbol, Context, OpTags, Symbol, TensorProxy, are_one_number, literal

executor.implements(prims.transpose)(torch.permute)
executor.implements(prims.reshape)(torch.reshape)
executor.implements(prims.view)(torch.Tensor.view)
executor.implements(prims.squeeze)(torch.squeeze)
executor.implements(prims.cat)(torch.cat)
executor.implements(prims.flip)(torch.flip)
executor.implements(prims.unfold)(torch.Tensor.unfold)
executor.implements(prims.shape_of)(torch.Tensor.size)


@executor.transforms(prims.broadcast_in_dim)
def broadcast_in_dim(a: TensorProxy, shape: Sequence[Any], dims: Sequence[int]) -> Any:
    """``expand`` puts new dimensions in front; others are put in by ``view``, which a size of 1 never hinders."""
    shape = tuple(shape)
    leading = len(shape) - len(dims)
    aligned = all(dim == i + leading for i, dim in enumerate(dims))
    if not aligned:
        sizes: list[Any] = [1] * len(shape)
        for size, dim in zip(a.shape, dims, strict=True):
            sizes[dim] = size
        a = view(a, tuple(sizes))
    equal = len(a.shape) == len(shape) and all(map(are_one_number, a.shape, shape))
    return a if equal else expand(a, shape)


def _print_getitem(bound: BoundSymbol, context: Context) -> list[str]:
    a, index = bound.args
    parts = [_print_part(part, context) for part in index]
    return [f"{bound.output.name} = {literal(a, context)}[{', '.join(parts)}]  # {bound.output.type_string}"]


def _print_part(part: slice, context: Context) -> str:
    start = "" if part.start is None or are_one_number(part.start, 0) else literal(part.start, context)
    stop = "" if part.stop is None else literal(part.stop, context)
    plain = part.step is None or are_one_number(part.step, 1)
    return f"{start}:{stop}" + ("" if plain else f":{literal(part.step, context)}")


getitem = Symbol(
    "getitem", "torch", printer=_print_getitem, implementation=torch.Tensor.__getitem__, executor=executor,
    tags=frozenset({OpTags.VIEW}),
)  # fmt: skip


def _slices(a: TensorProxy, starts: Sequence[Any], ends: Sequence[Any], strides: Sequence[int] | None) -> Any:
    """Return the index of a slice, with nothing said where a whole dimension is taken."""
    parts = []
    for i, (size, start, end) in enumerate(zip(a.shape, starts, ends, strict=True)):
        step = 1 if strides is None else strides[i]
        parts.append(slice(start, None if are_one_number(end, size) else end, step))
    return arguments(a, tuple(parts))


executor.runs(prims.slice, getitem, _slices)


def takes_several_calls(bound: BoundSymbol) -> bool:
    """Whether padding goes between elements, or there are none, which PyTorch, or an older one, cannot do in one."""
    a, _, config = bound.args
    between = any(not are_one_number(n, 0) for _, _, n in config)
    return between or any(isinstance(n, int) and n == 0 for n in a.shape)


@executor.implements(prims.pad, when=takes_several_calls)
def pad_between(a: torch.Tensor, value: Any, config: Sequence[tuple[int, int, int]]) -> torch.Tensor:
    inner = [n + max(n - 1, 0) * between for n, (_, _, between) in zip(a.shape, config, strict=True)]
    if not a.numel():
        shape = [n + before + behind for n, (before, behind, _) in zip(inner, config, strict=True)]
        return torch.full(shape, value, dtype=a.dtype, device=a.device)
    spread = torch.full(inner, value, dtype=a.dtype, device=a.device)
    spread[tuple(slice(None, None, between + 1) for _, _, between in config)] = a
    return torch.constant_pad_nd(spread, _flat(config), value)


@executor.calls(torch.constant_pad_nd, prims.pad)
def pad(a: TensorProxy, value: Any, config: Sequence[tuple[Any, Any, int]]) -> Any:
    return arguments(a, _flat(config), value)


def _flat(config: Sequence[tuple[Any, Any, int]]) -> list[Any]:
    """Return PyTorch's list of paddings: from the last dimension to the first."""
    return [n for before, behind, _ in reversed(config) for n in (before, behind)]
