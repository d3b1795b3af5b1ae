"""Tensors among the inputs that are no plain ones: nested ones and those that change what operations do are refused."""

from __future__ import annotations

from typing import Any

import torch

from thunder_guards.errors import AcquisitionError
from thunder_guards.kinds import HEAP_TYPE
from thunder_guards.own_code import package_of

NATIVE: Any = torch.Tensor
_PLAIN = frozenset({
    NATIVE.__torch_function__.__func__, torch._C._disabled_torch_function_impl,
    torch.nn.Parameter.__dict__["__torch_function__"],
})  # fmt: skip


def check_tensor(tensor: torch.Tensor, source: object) -> None:
    """Refuse a tensor without sizes, and one of a class that has a say in what operations do, which is not asked."""
    if tensor.is_nested and tensor.layout is torch.strided:
        raise AcquisitionError(
            f"{source} is a nested tensor, which has no sizes that a program could be compiled for: pass its parts, "
            "tensor.unbind(), or torch.nested.to_padded_tensor(tensor, padding)"
        )
    cls = type(tensor)
    if cls is torch.Tensor or cls is torch.nn.Parameter or package_of(cls.__module__) == "torch":
        return
    own = getattr(cls.__torch_function__, "__func__", cls.__torch_function__)
    overrides = own not in _PLAIN
    if overrides or cls.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        name = "__torch_function__" if overrides else "__torch_dispatch__"
        raise AcquisitionError(
            f"{source} is a {cls.__qualname__}, a subclass of torch.Tensor that says in {name} what operations do; a "
            "compiled program does not ask it: pass its plain tensors, or leave this call uncompiled"
        )


def asks_for_functions(value: object) -> bool:
    """Whether an object that is no tensor has a say in what torch functions do with it."""
    cls = type(value)
    if not cls.__flags__ & HEAP_TYPE or isinstance(value, torch.Tensor):
        return False
    return hasattr(cls, "__torch_function__")


__all__ = ["asks_for_functions", "check_tensor"]
