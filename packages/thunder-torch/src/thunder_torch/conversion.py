"""Conversion of dtype, device and memory format; what a tensor says of itself."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import thunder_lang as lang
from thunder_ir import OpTags, Symbol, TensorProxy
from thunder_torch.convert import from_torch_device, from_torch_dtype
from thunder_torch.inplace import copy as copy_by_torch
from thunder_torch.symbol import BY_DECOMPOSITION, torchsymbol
from thunder_torch.traits import Trait, state
from thunder_vmap import batching_rule

CAST = (OpTags.CAST,)
MAYBE = (Trait.MAY_VIEW,)
CONVERTS = (Trait.MAY_VIEW, Trait.KEEPS_ORDER)
SAVES_NOTHING = (Trait.SAVES_NOTHING,)
state("contiguous", traits=(Trait.LAYS_OUT,))
state("detach", traits=(Trait.SIZES_OF_FIRST,))
state("data", "dequantize", "requires_grad_", "to_dense", traits=MAYBE)


def cast(a: TensorProxy, dtype: Any = None, device: Any = None) -> TensorProxy:
    """Return ``a`` in PyTorch's ``dtype`` on PyTorch's ``device``, where they are given."""
    if device is not None:
        target = from_torch_device(device)
        a = a if target == a.device else lang.to(a, device=target)
    return a if dtype is None else lang.to(a, dtype=from_torch_dtype(dtype))


@torchsymbol(Tensor.to, tags=CAST, name="to", traits=CONVERTS)
def to(a: TensorProxy, *args: Any, **kwargs: Any) -> Any:
    """Return ``a`` in another dtype, on another device, or as another tensor."""
    dtype, device, copy = kwargs.get("dtype"), kwargs.get("device"), kwargs.get("copy", False)
    rest = list(args)
    if rest and isinstance(rest[0], TensorProxy):
        dtype, device = rest[0].dtype, rest[0].device
        rest.pop(0)
    elif "other" in kwargs:
        dtype, device = kwargs["other"].dtype, kwargs["other"].device
    else:
        if rest and isinstance(rest[0], (str, torch.device, int)) and not isinstance(rest[0], bool):
            device = rest.pop(0)
        elif rest and rest[0] is None:
            rest.pop(0)
        if rest and (isinstance(rest[0], torch.dtype) or rest[0] is None):
            dtype = rest.pop(0)
    if len(rest) > 1:
        copy = rest[1]
    result = cast(a, dtype, device)
    if copy and result is a:
        return lang.clone(result)
    return _laid_out(result, a, kwargs.get("memory_format", torch.preserve_format))


def _laid_out(result: TensorProxy, a: TensorProxy, memory_format: Any) -> TensorProxy:
    """Return the result, a copy of ``a`` if it is ``a`` and another memory format is asked for."""
    return lang.clone(result) if result is a and memory_format is not torch.preserve_format else result


def _method(method: Any, dtype: torch.dtype) -> Symbol:
    def convert(a: TensorProxy, memory_format: Any = torch.preserve_format) -> TensorProxy:
        return _laid_out(cast(a, dtype), a, memory_format)

    convert.__doc__ = f"Return ``a`` as ``{dtype}``."
    return torchsymbol(method, tags=CAST, name=f"Tensor_{method.__name__}", traits=CONVERTS)(convert)


bfloat16_method = _method(Tensor.bfloat16, torch.bfloat16)
bool_method = _method(Tensor.bool, torch.bool)
byte_method = _method(Tensor.byte, torch.uint8)
cdouble_method = _method(Tensor.cdouble, torch.complex128)  # type: ignore[attr-defined]
cfloat_method = _method(Tensor.cfloat, torch.complex64)  # type: ignore[attr-defined]
char_method = _method(Tensor.char, torch.int8)
double_method = _method(Tensor.double, torch.float64)
float_method = _method(Tensor.float, torch.float32)
half_method = _method(Tensor.half, torch.float16)
int_method = _method(Tensor.int, torch.int32)
long_method = _method(Tensor.long, torch.int64)
short_method = _method(Tensor.short, torch.int16)


@torchsymbol(Tensor.type_as, tags=CAST, traits=MAYBE)
def type_as(a: TensorProxy, other: TensorProxy) -> TensorProxy:
    """Return ``a`` in the dtype and on the device of ``other``."""
    return cast(a, other.dtype, other.device)


@torchsymbol(Tensor.type, tags=CAST, traits=MAYBE)
def type(a: TensorProxy, dtype: Any = None, non_blocking: bool = False) -> Any:
    """Return ``a`` in another dtype."""
    return cast(a, dtype) if isinstance(dtype, torch.dtype) else NotImplemented


@torchsymbol(Tensor.cpu, tags=CAST, traits=MAYBE)
def cpu(a: TensorProxy, memory_format: Any = torch.preserve_format) -> TensorProxy:
    """Return ``a`` on the CPU."""
    return _laid_out(cast(a, None, "cpu"), a, memory_format)


@torchsymbol(Tensor.cuda, tags=CAST, traits=MAYBE)
def cuda(a: TensorProxy, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> TensorProxy:
    """Return ``a`` on a CUDA device, by default the first."""
    return cast(
        a, None, "cuda" if device is None else torch.device("cuda", device) if device.__class__ is int else device
    )


@torchsymbol(copy_by_torch, name="copy", tags=CAST, traits=SAVES_NOTHING)
def copy(a: TensorProxy, source: Any, non_blocking: bool = False) -> Any:
    """What ``a`` holds after ``a.copy_(source)``: the source in the shape and dtype and on the device of ``a``."""
    if not isinstance(source, TensorProxy):
        return NotImplemented
    same = tuple(source.shape) == tuple(a.shape)
    result = cast(source if same else lang.expand(source, tuple(a.shape)), a.dtype, a.device)
    return lang.clone(result) if result is source else result


@torchsymbol(torch.clone, Tensor.clone, traits=(Trait.SAVES_NOTHING, Trait.KEEPS_ORDER))
def clone(a: TensorProxy, *, memory_format: Any = None) -> TensorProxy:
    """Copy ``a`` to memory of its own."""
    return lang.clone(a)


@torchsymbol(Tensor.contiguous, tags=(OpTags.VIEW,), traits=(*MAYBE, Trait.SAVES_NOTHING))
def contiguous(a: TensorProxy, memory_format: Any = torch.contiguous_format) -> TensorProxy:
    """Return ``a`` laid out in memory in the order of its dimensions, or in another format."""
    return lang.clone(a)


@torchsymbol(
    torch.detach, Tensor.detach, tags=(OpTags.VIEW, OpTags.CONSTANT_FOR_DERIVATIVE), traits=(Trait.ONLY_VIEWS,)
)
def detach(a: TensorProxy) -> Any:
    """Return ``a`` as a constant for derivatives."""
    return NotImplemented  # PyTorch's own is a view without a graph, which is what is wanted


@batching_rule(detach)
def detach_batch(size: int, args: tuple[TensorProxy, ...], dims: tuple[int | None, ...]) -> tuple[Any, int | None]:
    """Detach the whole batch."""
    return detach(*args), dims[0]


@torchsymbol(torch.is_floating_point, Tensor.is_floating_point)
def is_floating_point(a: TensorProxy) -> bool:
    """Whether the dtype is a real floating-point one."""
    return a.dtype.is_floating


@torchsymbol(torch.is_complex, Tensor.is_complex)
def is_complex(a: TensorProxy) -> bool:
    """Whether the dtype is complex."""
    return a.dtype.is_complex


@torchsymbol(torch.numel, Tensor.numel, Tensor.nelement)
def numel(a: TensorProxy) -> Any:
    """Return the number of elements."""
    return a.numel


@torchsymbol(Tensor.dim, Tensor.ndimension)
def dim(a: TensorProxy) -> int:
    """Return the number of dimensions."""
    return a.ndim


@torchsymbol(Tensor.size, meta=BY_DECOMPOSITION)
def size(a: TensorProxy, dim: int | None = None) -> Any:
    """Return the shape, or the length of one dimension."""
    return size_of(a, dim)


def size_of(a: TensorProxy, dim: int | None) -> Any:
    """Return the shape, or the length of one dimension.

    Raises:
        IndexError: there is no such dimension.
    """
    if dim is None:
        return tuple(a.shape)
    if not -max(a.ndim, 1) <= dim < max(a.ndim, 1) or a.ndim == 0:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-a.ndim}, {a.ndim - 1}], but got {dim})"
        )
    return a.shape[dim]


__all__ = [
    "bfloat16_method", "bool_method", "byte_method", "cdouble_method", "cfloat_method", "char_method", "clone",
    "contiguous", "copy", "cpu", "cuda", "detach", "dim", "double_method", "float_method", "half_method", "int_method",
    "is_complex", "is_floating_point", "long_method", "numel", "short_method", "size", "to", "type", "type_as",
]  # fmt: skip
