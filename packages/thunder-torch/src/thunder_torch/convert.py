"""Dtypes, devices and tensors of PyTorch as those of the traced world, and back."""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Any

import torch

from thunder_ir import Device, DType, DTypeError, TensorProxy, dtypes, value_of
from thunder_ir import device as make_device
from thunder_torch.errors import UnknownMetadataError
from thunder_torch.fake_modes import QuickMode, faked

_TORCH_OF = {d: getattr(torch, d.name) for d in dtypes.STRONG if hasattr(torch, d.name)}
_TORCH_OF[dtypes.bool8] = torch.bool
_OF_TORCH: dict[Any, DType] = {t: d for d, t in _TORCH_OF.items()}
_OF_TORCH |= {bool: dtypes.bool8, int: dtypes.int64, float: dtypes.float64, complex: dtypes.complex128}
_TORCH_OF_WEAK = {dtypes.weak_bool: torch.bool, dtypes.weak_int: torch.int64}


def to_torch_dtype(dtype: DType | torch.dtype) -> torch.dtype:
    """Return PyTorch's dtype; a weak float or complex is that of PyTorch's current default.

    Raises:
        DTypeError: PyTorch has no such dtype.

    Example:
        >>> from thunder_ir import dtypes
        >>> from thunder_torch.convert import to_torch_dtype
        >>> to_torch_dtype(dtypes.bool8), to_torch_dtype(dtypes.bfloat16)
        (torch.bool, torch.bfloat16)
    """
    if isinstance(dtype, torch.dtype):
        return dtype
    found = _TORCH_OF.get(dtype) or _TORCH_OF_WEAK.get(dtype)
    if found is not None:
        return found
    if dtype is dtypes.weak_float:
        return torch.get_default_dtype()
    if dtype is dtypes.weak_complex:
        return torch.get_default_dtype().to_complex()
    raise DTypeError(f"PyTorch has no dtype {dtype}")


def from_torch_dtype(dtype: torch.dtype | DType) -> DType:
    """Return the dtype of a program for PyTorch's, or for a type of Python numbers, which PyTorch takes for one, too.

    Raises:
        DTypeError: programs know no such dtype (quantised ones, say).
    """
    if isinstance(dtype, DType):
        return dtype
    found = _OF_TORCH.get(dtype)
    if found is None:
        raise DTypeError(f"{dtype} is not a dtype that programs know; convert the tensor before it enters")
    return found


@lru_cache(maxsize=256)
def to_torch_device(device: Device | torch.device | str) -> torch.device:
    """Return PyTorch's device."""
    return torch.device(str(device) if isinstance(device, Device) else device)


@lru_cache(maxsize=256)
def from_torch_device(device: torch.device | Device | str | int) -> Device:
    """Return the device of a program for PyTorch's, or for what PyTorch takes as one."""
    if isinstance(device, Device):
        return device
    if not isinstance(device, torch.device):
        device = torch.device(device)
    return make_device(device.type, device.index)


@lru_cache(maxsize=4096)
def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides, in elements, of a contiguous tensor of that shape as PyTorch computes them."""
    strides, step = [], 1
    for dimension in reversed(shape):
        strides.append(step)
        step *= max(dimension, 1)
    return tuple(reversed(strides))


class _FakeModes(threading.local):
    """One fake-tensor mode per thread: tensors of different modes do not mix, and modes are not thread-safe."""

    made: QuickMode | None = None

    @property
    def mode(self) -> QuickMode:
        if self.made is None:
            self.made = QuickMode()
        return self.made


_MODES = _FakeModes()


def fake_mode() -> QuickMode:
    """Return this thread's fake-tensor mode."""
    return _MODES.mode


def meta_of(proxy: TensorProxy) -> torch.Tensor:
    """Return a tensor of the meta device that lies as ``proxy``; symbolic dimensions by their value at hand."""
    shape = tuple(value_of(d) for d in proxy.shape)
    strides = contiguous_strides(shape) if proxy.strides is None else tuple(value_of(s) for s in proxy.strides)
    return torch.empty_strided(shape, strides, dtype=to_torch_dtype(proxy.dtype), device="meta")


def fake_of(proxy: TensorProxy) -> torch.Tensor:
    """Return a fake tensor that has the metadata of ``proxy``; symbolic dimensions by their value at hand."""
    device = to_torch_device(proxy.device)
    if device.type == "meta":  # which is none that a fake tensor stands for
        with _MODES.mode:
            fake = meta_of(proxy)
    else:
        fake = faked(meta_of(proxy), device, _MODES.mode)
    return fake.requires_grad_() if proxy.requires_grad else fake


def unheld_kind(tensor: torch.Tensor) -> tuple[str, str] | None:
    """Return what kind of tensor this is and what to pass in its place, if it is one that no proxy stands for."""
    if tensor.layout is not torch.strided:
        return f"tensor of layout {tensor.layout}", "tensor.to_dense()"
    if tensor.is_nested:
        return "nested tensor", "its parts, tensor.unbind()"
    if getattr(tensor, "has_names", bool)():  # PyTorch before 2.13 names dimensions
        return "tensor with named dimensions", "tensor.rename(None)"
    return None


def proxy_of(tensor: torch.Tensor, name: str = "") -> TensorProxy:
    """Return a proxy with the metadata of ``tensor``.

    Raises:
        UnknownMetadataError: it is sparse, nested or named.

    Example:
        >>> import torch
        >>> from thunder_torch.convert import proxy_of
        >>> proxy_of(torch.zeros(2, 3, dtype=torch.int8), "x")
        <TensorProxy x: int8[2, 3]>
    """
    unheld = unheld_kind(tensor)
    if unheld is not None:
        raise UnknownMetadataError(f"a {unheld[0]} cannot enter a program; pass {unheld[1]}")
    return TensorProxy(
        tuple(tensor.shape),
        from_torch_dtype(tensor.dtype),
        from_torch_device(tensor.device),
        tensor.requires_grad,
        tuple(tensor.stride()),
        name=name,
    )
