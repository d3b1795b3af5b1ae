"""Functions that create tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import thunder_lang as lang
import thunder_prims as prims
from thunder_ir import Device, DType, NumberProxy, OpTags, TensorProxy, dtypes, flat_proxies
from thunder_torch.convert import from_torch_device, from_torch_dtype
from thunder_torch.inplace import OutOfPlace
from thunder_torch.shape import sizes_of
from thunder_torch.symbol import BY_DECOMPOSITION, torchsymbol
from thunder_torch.torch_versions import default_device
from thunder_torch.traits import Trait, state

CONSTANT = (OpTags.CONSTANT_FOR_DERIVATIVE,)
CREATES = (OpTags.CREATION, *CONSTANT)
state(
    "bartlett_window", "blackman_window", "empty", "empty_permuted", "empty_strided", "eye", "fftfreq",
    "hamming_window", "hann_window", "kaiser_window", "linspace", "logspace", "ones", "rfftfreq",
    "scalar_tensor", "zeros",
    traits=(Trait.CREATES, Trait.OF_DEFAULT_DTYPE),
)  # fmt: skip
state(
    "affine_grid", "bartlett_window", "blackman_window", "gradient", "hamming_window", "hann_window", "kaiser_window",
    "linspace", "logspace", "vander",
    traits=(Trait.SIZES_ARE_PRODUCTS,),
)  # fmt: skip
state("asarray", traits=(Trait.MAY_VIEW,))
state("arange", "full", "range", "tensor", "tril_indices", "triu_indices", traits=(Trait.CREATES,))
state("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided", traits=(Trait.UNSET,))
state(
    "arange", "empty", "eye", "full", "new_empty", "new_full", "new_ones", "new_zeros", "ones", "zeros",
    traits=(Trait.IN_ROWS,),
)  # fmt: skip
state("empty_like", "full_like", "ones_like", "zeros_like", traits=(Trait.KEEPS_ORDER,))
state("full_like", "ones_like", "empty_like", "zeros_like", traits=(Trait.SHAPE_ONLY,))
state("new_empty", "new_full", "new_ones", "new_tensor", "new_zeros", traits=(Trait.SHAPE_ONLY,))


def place_of(kwargs: dict[str, Any], like: TensorProxy | None = None) -> tuple[DType, Device]:
    """Return the dtype and device that a factory function is asked for; by default those of ``like``, or PyTorch's."""
    dtype, device = kwargs.get("dtype"), kwargs.get("device")
    if dtype is None:
        wanted = like.dtype if like is not None else from_torch_dtype(torch.get_default_dtype())
    else:
        wanted = from_torch_dtype(dtype)
    if device is None:
        return wanted, like.device if like is not None else from_torch_device(default_device())
    return wanted, from_torch_device(device)


def _strided(kwargs: dict[str, Any]) -> bool:
    return kwargs.get("layout") in (None, torch.strided) and not kwargs.get("pin_memory")


@torchsymbol(torch.zeros, tags=CREATES)
def zeros(*size: Any, **kwargs: Any) -> Any:
    """Zeros."""
    dtype, device = place_of(kwargs)
    return lang.full(sizes_of(size, kwargs.get("size")), 0, dtype, device) if _strided(kwargs) else NotImplemented


@torchsymbol(torch.ones, tags=CREATES)
def ones(*size: Any, **kwargs: Any) -> Any:
    """Ones."""
    dtype, device = place_of(kwargs)
    return lang.full(sizes_of(size, kwargs.get("size")), 1, dtype, device) if _strided(kwargs) else NotImplemented


@torchsymbol(torch.empty, tags=CREATES)
def empty(*size: Any, **kwargs: Any) -> Any:
    """A tensor with uninitialised elements."""
    dtype, device = place_of(kwargs)
    if not _strided(kwargs):
        return NotImplemented
    return lang.empty(sizes_of(size, kwargs.get("size")), dtype=dtype, device=device)


def _dtype_of(value: Any) -> torch.dtype:
    kind = value.python_type if isinstance(value, NumberProxy) else type(value)
    if kind is complex:
        return torch.get_default_dtype().to_complex()
    return {bool: torch.bool, int: torch.int64}.get(kind, torch.get_default_dtype())


@torchsymbol(torch.full)
def full(size: Any, fill_value: Any, **kwargs: Any) -> Any:
    """One value everywhere."""
    if not _strided(kwargs):
        return NotImplemented
    if isinstance(fill_value, TensorProxy):
        dtype, device = place_of({"dtype": kwargs.get("dtype") or fill_value.dtype, "device": kwargs.get("device")})
    else:
        dtype, device = place_of({**kwargs, "dtype": kwargs.get("dtype") or _dtype_of(fill_value)})
    return lang.full(tuple(size), fill_value, dtype, device)


@torchsymbol(torch.zeros_like, tags=CREATES)
def zeros_like(a: TensorProxy, **kwargs: Any) -> Any:
    """Zeros in the shape of ``a``."""
    return lang.full(tuple(a.shape), 0, *place_of(kwargs, a)) if _strided(kwargs) else NotImplemented


@torchsymbol(torch.ones_like, tags=CREATES)
def ones_like(a: TensorProxy, **kwargs: Any) -> Any:
    """Ones in the shape of ``a``."""
    return lang.full(tuple(a.shape), 1, *place_of(kwargs, a)) if _strided(kwargs) else NotImplemented


@torchsymbol(torch.empty_like, tags=CREATES)
def empty_like(a: TensorProxy, **kwargs: Any) -> Any:
    """A tensor like ``a`` with uninitialised elements."""
    return lang.empty_like(a, *place_of(kwargs, a)) if _strided(kwargs) else NotImplemented


@torchsymbol(torch.full_like)
def full_like(a: TensorProxy, fill_value: Any, **kwargs: Any) -> Any:
    """One value everywhere, in the shape of ``a``."""
    return lang.full(tuple(a.shape), fill_value, *place_of(kwargs, a)) if _strided(kwargs) else NotImplemented


@torchsymbol(OutOfPlace(Tensor.fill_diagonal_), meta=BY_DECOMPOSITION)
def fill_diagonal(a: TensorProxy, fill_value: Any, wrap: bool = False) -> Any:
    """``a`` with one value on the diagonal; PyTorch fixes sizes of square matrices, as it asks for their strides."""
    if a.ndim != 2 or wrap or all([size.__class__ is int for size in a.shape]):
        return NotImplemented
    diagonal = lang.eye(*sizes_of(a.shape), dtype=dtypes.bool8, device=a.device)
    return lang.where(diagonal, lang.full((), fill_value, a.dtype, a.device), a)


@torchsymbol(Tensor.new_zeros, tags=CREATES)
def new_zeros(a: TensorProxy, *size: Any, **kwargs: Any) -> Any:
    """Zeros of the dtype and on the device of ``a``."""
    return lang.full(sizes_of(size, kwargs.get("size")), 0, *place_of(kwargs, a))


@torchsymbol(Tensor.new_ones, tags=CREATES)
def new_ones(a: TensorProxy, *size: Any, **kwargs: Any) -> Any:
    """Ones of the dtype and on the device of ``a``."""
    return lang.full(sizes_of(size, kwargs.get("size")), 1, *place_of(kwargs, a))


@torchsymbol(Tensor.new_full)
def new_full(a: TensorProxy, size: Any, fill_value: Any, **kwargs: Any) -> Any:
    """One value everywhere, of the dtype and on the device of ``a``."""
    return lang.full(tuple(size), fill_value, *place_of(kwargs, a))


@torchsymbol(Tensor.new_empty, tags=CREATES)
def new_empty(a: TensorProxy, *size: Any, **kwargs: Any) -> Any:
    """A tensor of the dtype and on the device of ``a`` with uninitialised elements."""
    dtype, device = place_of(kwargs, a)
    return lang.empty(sizes_of(size, kwargs.get("size")), dtype=dtype, device=device)


@torchsymbol(torch.arange, tags=CREATES)
def arange(*args: Any, **kwargs: Any) -> Any:
    """``start, start + step, ...`` up to ``end``, which is not included."""
    numbers = dict(zip(("end",) if len(args) == 1 else ("start", "end", "step"), args, strict=False))
    numbers |= {k: kwargs[k] for k in ("start", "end", "step") if k in kwargs}
    if not _strided(kwargs) or any(isinstance(n, TensorProxy) for n in numbers.values()):
        return NotImplemented
    values = (numbers.get("start", 0), numbers["end"], numbers.get("step", 1))
    inferred = torch.int64 if all(_dtype_of(v) is torch.int64 for v in values) else torch.get_default_dtype()
    dtype, device = place_of({**kwargs, "dtype": kwargs.get("dtype") or inferred})
    if dtype is dtypes.bool8:
        return NotImplemented
    return lang.arange(*values, dtype=dtype, device=device)


@torchsymbol(torch.eye, tags=CREATES)
def eye(n: int, m: int | None = None, **kwargs: Any) -> Any:
    """A matrix with ones on the diagonal."""
    dtype, device = place_of(kwargs)
    return lang.eye(n, m, dtype=dtype, device=device) if _strided(kwargs) else NotImplemented


@torchsymbol(torch.tensor, tags=CONSTANT)
def tensor(
    data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Any:
    """A tensor of the numbers in nested sequences."""
    if _is_symbolic(data):
        return _of_symbolic_numbers(data, dtype, device)
    if not isinstance(data, (bool, int, float)) or dtype is not None:
        return NotImplemented
    wanted, where = place_of({"dtype": _dtype_of(data), "device": device})
    return lang.full((), data, wanted, where)


@torchsymbol(torch.as_tensor, traits=(Trait.MAY_VIEW,))
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Any:
    """``data`` itself, or a tensor of the numbers in nested sequences."""
    return _of_symbolic_numbers(data, dtype, device) if _is_symbolic(data) else NotImplemented


def _is_symbolic(data: Any) -> bool:
    """Whether nested sequences hold numbers that a program makes dynamic, and no tensors."""
    found = flat_proxies(data)
    return bool(found) and all([isinstance(p, NumberProxy) for p in found])


def _of_symbolic_numbers(data: Any, dtype: Any, device: Any) -> Any:
    kinds, waiting = set(), [data]
    while waiting:
        item = waiting.pop()
        if isinstance(item, (tuple, list)):
            waiting += item
        else:
            kinds.add(_dtype_of(item))
    order = (torch.bool, torch.int64, torch.get_default_dtype(), torch.get_default_dtype().to_complex())
    wanted, where = place_of({"dtype": dtype or max(kinds, key=order.index), "device": device})
    return prims.tensor_from_sequence(data, wanted, where)


__all__ = [
    "arange", "empty", "empty_like", "eye", "fill_diagonal", "full", "full_like", "new_empty", "new_full",
    "new_ones", "new_zeros", "ones", "ones_like", "place_of", "tensor", "zeros", "zeros_like",
]  # fmt: skip
