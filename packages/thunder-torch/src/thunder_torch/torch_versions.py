"""What differs between versions of PyTorch, found by feature."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.autograd import forward_ad
from torch.overrides import TorchFunctionMode
from torch.utils._device import DeviceContext

if TYPE_CHECKING:
    from torch._ops import OpOverload, OpOverloadPacket
else:  # wherever these classes are
    OpOverloadPacket, OpOverload = type(torch.ops.aten.add), type(torch.ops.aten.add.Tensor)


def _shares_gradients() -> bool:
    """Return whether a bound has no slope; forward mode tells, without the threads of the backward engine.

    Its operators are called beneath ``forward_ad.make_dual``, which would compile decompositions for other operations.
    """
    with forward_ad.dual_level() as level:
        zero = torch.zeros((), device="cpu")
        dual = torch._VF._make_dual(zero, zero + 1, level=level)
        _, tangent = torch._VF._unpack_dual(torch.clamp_min(dual, 0), level=level)
    return tangent is None or not bool(tangent)


SHARES_GRADIENTS = _shares_gradients()
"""Whether ``clamp``, ``fmax`` and ``fmin`` share the gradient among equal tensors, as PyTorch does since 2.14."""


_FIRST: Any = torch.zeros((), dtype=torch.int64, device="cpu")  # which the annotations do not allow
LISTS_OF_ONE_TENSOR = torch.zeros(2, 3, device="cpu").sum(_FIRST).ndim == 1
"""Whether a tensor of one integer is a list of it, where PyTorch takes a list; once it took that for an empty list."""


def names_dimensions(overload: str) -> bool:
    """Return whether an overload takes names of dimensions, as PyTorch had them until 2.12.

    Example:
        >>> from thunder_torch.torch_versions import names_dimensions
        >>> names_dimensions("dim_DimnameList"), names_dimensions("dim_IntList")
        (True, False)
    """
    return "dimname" in overload.lower()


def function_modes() -> list[TorchFunctionMode]:
    """Return the modes that functions of PyTorch are dispatched to, outermost first."""
    return [torch._C._get_function_stack_at(i) for i in range(torch._C._len_torch_function_stack())]


def default_device() -> torch.device:
    """Return the device of factory functions; PyTorch 2.9 cannot tell once ``torch.set_default_device(None)`` ran."""
    if getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", True) is None:
        modes = reversed(function_modes())
        return next((mode.device for mode in modes if isinstance(mode, DeviceContext)), torch.device("cpu"))
    return torch.get_default_device()


__all__ = [
    "LISTS_OF_ONE_TENSOR",
    "SHARES_GRADIENTS",
    "OpOverload",
    "OpOverloadPacket",
    "default_device",
    "function_modes",
    "names_dimensions",
]
