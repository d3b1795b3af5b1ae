"""Functions that move elements: views, joins, cuts, padding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

import thunder_lang as lang
import thunder_prims as prims
from thunder_ir import OpTags, Symbol, TensorProxy, dtypes
from thunder_torch.symbol import composed, getter, torchsymbol
from thunder_torch.traits import Trait, state

MOVES = (OpTags.SHAPE_OP,)
VIEWS = (OpTags.SHAPE_OP, OpTags.VIEW)
MAYBE = (Trait.MAY_VIEW,)
ONLY_VIEWS = (Trait.ONLY_VIEWS,)
PARTS = (Trait.MAY_VIEW, Trait.ONLY_VIEWS, Trait.SPLITS, Trait.ONE_NODE)
state("as_strided", "view_as_complex", "view_as_real", traits=ONLY_VIEWS)
state("cartesian_prod", "sum_to_size", "unsafe_split_with_sizes", "H", "mH", traits=MAYBE)
state("cat", "stack", traits=(Trait.SAVES_NOTHING,))
state("cat", "concat", "concatenate", traits=(Trait.JOINS,))
state("stack", traits=(Trait.KEEPS_ROWS,))
state("flatten", "ravel", "reshape", traits=(Trait.LAYS_OUT,))
state("repeat", "tile", "tril", "triu", traits=(Trait.IN_ROWS,))
state("channel_shuffle", "pad", "pixel_shuffle", "pixel_unshuffle", traits=(Trait.ROWS_ON_META,))
state("narrow", "pad", "split", traits=(Trait.TAKES_INTEGERS,))
state("dsplit", "hsplit", "unsafe_chunk", "unsafe_split", "vsplit", traits=(*MAYBE, Trait.SPLITS))


def sizes_of(sizes: tuple[Any, ...], given: Any = None) -> tuple[Any, ...]:
    """Return what was given as ``f(2, 3)``, ``f((2, 3))`` or by keyword as one tuple."""
    if not sizes:
        return tuple(given) if isinstance(given, (tuple, list)) else (given,)
    return tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes


@torchsymbol(Tensor.reshape, torch.reshape, tags=VIEWS, traits=MAYBE)
def reshape(a: TensorProxy, *sizes: Any, shape: Any = None) -> TensorProxy:
    """Return the elements in another shape."""
    return lang.reshape(a, sizes_of(sizes, shape))


@torchsymbol(Tensor.view, tags=VIEWS, traits=ONLY_VIEWS)
def view(a: TensorProxy, *sizes: Any, size: Any = None, dtype: Any = None) -> Any:
    """Return the elements in another shape, or the memory in another dtype."""
    if dtype is not None or (len(sizes) == 1 and isinstance(sizes[0], torch.dtype)):
        return NotImplemented
    return lang.reshape(a, sizes_of(sizes, size))


@torchsymbol(Tensor.view_as, tags=VIEWS)
def view_as(a: TensorProxy, other: TensorProxy) -> TensorProxy:
    """Return the elements in the shape of ``other``."""
    return lang.reshape(a, tuple(other.shape))


@torchsymbol(Tensor.reshape_as, tags=VIEWS, traits=MAYBE)
def reshape_as(a: TensorProxy, other: TensorProxy) -> TensorProxy:
    """Return the elements in the shape of ``other``."""
    return lang.reshape(a, tuple(other.shape))


@torchsymbol(Tensor.permute, torch.permute, tags=VIEWS, traits=ONLY_VIEWS)
def permute(a: TensorProxy, *sizes: Any, dims: Any = None) -> TensorProxy:
    """Reorder the dimensions."""
    return lang.permute(a, sizes_of(sizes, dims))


transpose = composed(
    lang.transpose, torch.transpose, Tensor.transpose, torch.swapdims, Tensor.swapdims, tags=VIEWS, traits=ONLY_VIEWS
)


@torchsymbol(torch.swapaxes, Tensor.swapaxes, tags=VIEWS, traits=ONLY_VIEWS)
def swapaxes(a: TensorProxy, axis0: int, axis1: int) -> TensorProxy:
    """Exchange two dimensions."""
    return lang.transpose(a, axis0, axis1)


t = composed(lang.t, torch.t, Tensor.t, tags=VIEWS, traits=ONLY_VIEWS)
mT = composed(lang.matrix_transpose, getter("mT"), tags=VIEWS, name="mT", traits=MAYBE)  # noqa: N816
movedim = composed(
    lang.movedim, torch.movedim, Tensor.movedim, torch.moveaxis, Tensor.moveaxis, tags=VIEWS, traits=ONLY_VIEWS
)
unsqueeze = composed(lang.unsqueeze, torch.unsqueeze, Tensor.unsqueeze, tags=VIEWS, traits=ONLY_VIEWS)
squeeze = composed(lang.squeeze, torch.squeeze, Tensor.squeeze, tags=VIEWS, traits=(*ONLY_VIEWS, Trait.DROPS_ONES))
flatten = composed(lang.flatten, torch.flatten, Tensor.flatten, tags=VIEWS, traits=MAYBE)
ravel = composed(lang.ravel, torch.ravel, Tensor.ravel, tags=VIEWS, traits=MAYBE)
diagonal = composed(lang.diagonal, torch.diagonal, Tensor.diagonal, tags=VIEWS, traits=ONLY_VIEWS)
chunk = composed(lang.chunk, torch.chunk, Tensor.chunk, tags=VIEWS, traits=PARTS)
unbind = composed(
    lang.unbind, torch.unbind, Tensor.unbind, tags=VIEWS, traits=(Trait.SPLITS, Trait.ONE_NODE, Trait.ONLY_VIEWS)
)
tril = composed(lang.tril, torch.tril, Tensor.tril)
triu = composed(lang.triu, torch.triu, Tensor.triu)


@torchsymbol(getter("T"), tags=VIEWS, traits=MAYBE)
def T(a: TensorProxy) -> TensorProxy:  # noqa: N802
    """Reverse the order of the dimensions."""
    return lang.permute(a, tuple(reversed(range(a.ndim))))


@torchsymbol(Tensor.unflatten, tags=VIEWS, name="Tensor_unflatten", traits=MAYBE)
def unflatten_method(a: TensorProxy, dim: Any, sizes: Any) -> Any:
    """Make several dimensions of one."""
    return NotImplemented if isinstance(dim, str) else lang.unflatten(a, dim, tuple(sizes))


@torchsymbol(torch.unflatten, tags=VIEWS, traits=MAYBE)
def unflatten(a: TensorProxy, dim: Any, sizes: Any) -> Any:
    """Make several dimensions of one."""
    return NotImplemented if isinstance(dim, str) else lang.unflatten(a, dim, tuple(sizes))


@torchsymbol(torch.linalg.diagonal, tags=VIEWS, name="linalg_diagonal")
def linalg_diagonal(a: TensorProxy, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> TensorProxy:
    """Return a diagonal of the matrices along two dimensions."""
    return lang.diagonal(a, offset, dim1, dim2)


@torchsymbol(torch.adjoint, Tensor.adjoint, getter("mH"), tags=VIEWS)
def adjoint(a: TensorProxy) -> Any:
    """Swap the last two dimensions and conjugate."""
    return NotImplemented if a.dtype.is_complex else lang.matrix_transpose(a)


@torchsymbol(Tensor.expand, tags=VIEWS, traits=ONLY_VIEWS)
def expand(a: TensorProxy, *sizes: Any, size: Any = None, implicit: bool = False) -> TensorProxy:
    """Repeat dimensions of length 1 without copying."""
    return lang.expand(a, sizes_of(sizes, size))


@torchsymbol(torch.broadcast_to, tags=VIEWS)
def broadcast_to(a: TensorProxy, size: Any = None, shape: Any = None) -> TensorProxy:
    """Repeat dimensions of length 1 without copying."""
    return lang.expand(a, tuple(size if size is not None else shape))


@torchsymbol(Tensor.broadcast_to, tags=VIEWS, name="Tensor_broadcast_to")
def broadcast_to_method(a: TensorProxy, *sizes: Any, size: Any = None) -> TensorProxy:
    """Repeat dimensions of length 1 without copying; the sizes may be arguments of their own."""
    return lang.expand(a, sizes_of(sizes, size))


@torchsymbol(Tensor.expand_as, tags=VIEWS)
def expand_as(a: TensorProxy, other: TensorProxy) -> TensorProxy:
    """Expand to the shape of ``other``."""
    return lang.expand(a, tuple(other.shape))


@torchsymbol(torch.broadcast_tensors, tags=VIEWS, traits=MAYBE)
def broadcast_tensors(*tensors: Any) -> Any:
    """Expand tensors to one shape."""
    return lang.broadcast_tensors(*sizes_of(tensors))


@torchsymbol(torch.select, Tensor.select, tags=VIEWS, traits=ONLY_VIEWS)
def select(a: TensorProxy, dim: int, index: Any) -> Any:
    """Return the slice at ``index`` of a dimension, without that dimension."""
    return NotImplemented if isinstance(index, TensorProxy) else lang.select(a, dim, index)


def _narrow_meta(a: Any, dim: Any, start: Any, length: Any) -> Any:
    """The metadata where the start is a tensor, whose value PyTorch would ask for."""
    if not isinstance(start, TensorProxy):
        return NotImplemented
    shape = list(a.shape)
    shape[dim] = length
    return a.like(shape=tuple(shape))


@torchsymbol(torch.narrow, Tensor.narrow, tags=VIEWS, meta=_narrow_meta, traits=ONLY_VIEWS)
def narrow(a: TensorProxy, dim: int, start: Any, length: int) -> Any:
    """Return ``length`` elements from ``start`` on along a dimension."""
    if not isinstance(start, TensorProxy):
        return lang.narrow(a, dim, start, length)
    first = lang.where(start < 0, start + a.shape[dim], start)
    places = lang.arange(0, length, dtype=dtypes.int64, device=a.device) + first
    return prims.take(a, lang.to(places, dtypes.int64), int(dim) % a.ndim)


@torchsymbol(Tensor.unfold, tags=VIEWS, traits=ONLY_VIEWS)
def unfold(a: TensorProxy, dimension: int, size: int, step: int) -> Any:
    """Return all windows along a dimension."""
    if a.ndim == 0:
        return NotImplemented
    return lang.unfold(a, dimension, size, step)


@torchsymbol(torch.cat, torch.concat, torch.concatenate, tags=MOVES)
def cat(tensors: Any, dim: int = 0) -> TensorProxy:
    """Join tensors along a dimension."""
    joined = lang.cat(tensors, dim)
    return prims.cat((joined,), 0) if any([joined is t for t in tensors]) else joined  # what is joined is new


@torchsymbol(torch.stack, tags=MOVES)
def stack(tensors: Any, dim: int = 0) -> TensorProxy:
    """Join tensors along a new dimension."""
    return lang.stack(tensors, dim)


hstack = composed(lang.hstack, torch.hstack, tags=MOVES)
vstack = composed(lang.vstack, torch.vstack, torch.row_stack, tags=MOVES)
dstack = composed(lang.dstack, torch.dstack, tags=MOVES)
column_stack = composed(lang.column_stack, torch.column_stack, tags=MOVES)


@torchsymbol(torch.split, tags=VIEWS, traits=PARTS)
def split(tensor: TensorProxy, split_size_or_sections: Any, dim: int = 0) -> Any:
    """Cut into parts of one size, or of the sizes given."""
    return lang.split(tensor, split_size_or_sections, dim)


@torchsymbol(Tensor.split, tags=VIEWS, name="Tensor_split")
def split_method(a: TensorProxy, split_size: Any, dim: int = 0) -> Any:
    """Cut into parts of one size, or of the sizes given."""
    return lang.split(a, split_size, dim)


@torchsymbol(torch.split_with_sizes, Tensor.split_with_sizes, tags=VIEWS, traits=(Trait.ONE_NODE,))
def split_with_sizes(a: TensorProxy, split_sizes: Any, dim: int = 0) -> Any:
    """Cut into parts of the sizes given."""
    return lang.split(a, list(split_sizes), dim)


@torchsymbol(torch.tensor_split, Tensor.tensor_split, tags=VIEWS, traits=(*MAYBE, Trait.SPLITS))
def tensor_split(
    a: TensorProxy,
    *args: Any,
    sections: Any = None,
    indices: Any = None,
    tensor_indices_or_sections: Any = None,
    dim: int = 0,
) -> Any:
    """Cut into that many parts, or at the places given."""
    by_name = [v for v in (sections, indices, tensor_indices_or_sections) if v is not None]
    where = args[0] if args else by_name[0]
    dim = args[1] if len(args) > 1 else dim
    return NotImplemented if isinstance(where, (TensorProxy, Tensor)) else lang.tensor_split(a, where, dim)


@torchsymbol(Tensor.flip, torch.flip, tags=MOVES)
def flip(a: TensorProxy, *sizes: Any, dims: Any = None) -> TensorProxy:
    """Reverse the order of the elements along dimensions."""
    return lang.clone(a) if not (places := sizes_of(sizes, dims)) else lang.flip(a, places)


@torchsymbol(torch.fliplr, Tensor.fliplr, tags=MOVES)
def fliplr(a: TensorProxy) -> TensorProxy:
    """Reverse the second dimension."""
    return lang.flip(a, (1,))


@torchsymbol(torch.flipud, Tensor.flipud, tags=MOVES)
def flipud(a: TensorProxy) -> TensorProxy:
    """Reverse the first dimension."""
    return lang.flip(a, (0,))


@torchsymbol(torch.roll, Tensor.roll, tags=MOVES)
def roll(a: TensorProxy, shifts: Any, dims: Any = None) -> TensorProxy:
    """Shift the elements along dimensions, round the end."""
    return lang.roll(a, shifts, dims if dims != () else None)


@torchsymbol(torch.rot90, Tensor.rot90, tags=MOVES)
def rot90(a: TensorProxy, k: int = 1, dims: Any = (0, 1)) -> TensorProxy:
    """Turn by ``k`` times 90 degrees in the plane of two dimensions."""
    return lang.clone(a) if k % 4 == 0 else lang.rot90(a, k, dims)


@torchsymbol(Tensor.repeat, tags=MOVES)
def repeat(a: TensorProxy, *sizes: Any, repeats: Any = None) -> TensorProxy:
    """Repeat the whole tensor along each dimension."""
    return lang.repeat(a, sizes_of(sizes, repeats))


@torchsymbol(Tensor.tile, torch.tile, tags=MOVES)
def tile(a: TensorProxy, *sizes: Any, dims: Any = None) -> TensorProxy:
    """Repeat the whole tensor along the last dimensions."""
    return lang.tile(a, sizes_of(sizes, dims))


@torchsymbol(torch.repeat_interleave, Tensor.repeat_interleave, tags=MOVES, traits=(Trait.MAY_FAIL,))
def repeat_interleave(a: TensorProxy, repeats: Any = None, dim: int | None = None, *, output_size: Any = None) -> Any:
    """Repeat each element along a dimension, the copies side by side."""
    if repeats.__class__ is not int:
        return NotImplemented
    repeated = lang.repeat_interleave(a, repeats, dim)
    return lang.clone(repeated) if repeats == 1 else repeated


@torchsymbol(torch.meshgrid, tags=VIEWS, traits=MAYBE)
def meshgrid(*tensors: Any, indexing: str | None = None) -> Any:
    """Return the grid of the combinations of vectors."""
    if len({t.dtype for t in sizes_of(tensors)}) > 1:
        raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    return lang.meshgrid(*sizes_of(tensors), indexing="ij" if indexing is None else indexing)


def _of_each(function: Callable[..., Any], plain: Any) -> Symbol:
    def each(*tensors: Any) -> Any:
        if len(tensors) == 1 and isinstance(tensors[0], TensorProxy):
            return function(tensors[0])
        return tuple([function(t) for t in sizes_of(tensors)])

    each.__doc__ = function.__doc__
    return torchsymbol(plain, name=function.__name__, tags=VIEWS, traits=MAYBE)(each)


atleast_1d = _of_each(lang.atleast_1d, torch.atleast_1d)
atleast_2d = _of_each(lang.atleast_2d, torch.atleast_2d)
atleast_3d = _of_each(lang.atleast_3d, torch.atleast_3d)


@torchsymbol(F.pad, torch._C._nn.pad, tags=MOVES)
def pad(a: TensorProxy, pad: Any, mode: str = "constant", value: Any = None) -> Any:
    """Add elements at the ends of the last dimensions."""
    if mode != "constant" or a.dtype.is_bool:
        return NotImplemented
    return lang.pad(a, tuple(pad), 0 if value is None else value)


@torchsymbol(torch.constant_pad_nd, tags=MOVES)
def constant_pad_nd(a: TensorProxy, pad: Any, value: Any = 0) -> Any:
    """Add elements of one value at the ends of the last dimensions."""
    return NotImplemented if a.dtype.is_bool else lang.pad(a, tuple(pad), value)


@torchsymbol(torch.nn.functional.pixel_shuffle, tags=MOVES, traits=MAYBE)
def pixel_shuffle(a: TensorProxy, upscale_factor: int) -> Any:
    """Move elements from channels to a grid ``upscale_factor`` times as fine."""
    r, batch, (c, h, w) = upscale_factor, tuple(a.shape[:-3]), a.shape[-3:]
    n = len(batch)
    parts = lang.reshape(a, (*batch, c // (r * r), r, r, h, w))
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return lang.reshape(lang.permute(parts, order), (*batch, c // (r * r), h * r, w * r))


@torchsymbol(torch.nn.functional.pixel_unshuffle, tags=MOVES)
def pixel_unshuffle(a: TensorProxy, downscale_factor: int) -> Any:
    """Move elements from a grid to channels, undoing :func:`pixel_shuffle`."""
    r, batch, (c, h, w) = downscale_factor, tuple(a.shape[:-3]), a.shape[-3:]
    n = len(batch)
    parts = lang.reshape(a, (*batch, c, h // r, r, w // r, r))
    order = (*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return lang.reshape(lang.permute(parts, order), (*batch, c * r * r, h // r, w // r))


__all__ = [
    "MOVES", "T", "VIEWS", "adjoint", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_tensors", "broadcast_to",
    "broadcast_to_method", "cat", "chunk", "column_stack", "constant_pad_nd", "diagonal", "dstack", "expand",
    "expand_as", "flatten", "flip", "fliplr", "flipud", "hstack", "linalg_diagonal", "mT", "meshgrid", "movedim",
    "narrow", "pad", "permute", "pixel_shuffle", "pixel_unshuffle", "ravel", "repeat", "repeat_interleave",
    "reshape", "reshape_as", "roll", "rot90", "select", "split", "split_method", "split_with_sizes", "squeeze",
    "stack", "t", "tensor_split", "tile", "transpose", "tril", "triu", "unbind", "unflatten", "unflatten_method",
    "unfold", "unsqueeze", "view", "view_as", "vstack",
]  # fmt: skip
