"""Tensors that are no plain ones: nested ones and those that change what operations do are refused.

What functions return of a tensor of another class is of that class, too, where PyTorch has it so.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import torch
from torch.overrides import get_default_nowrap_functions

from thunder_guards.errors import AcquisitionError
from thunder_guards.kinds import HEAP_TYPE
from thunder_guards.own_code import package_of

NATIVE: Any = torch.Tensor
_PLAIN = frozenset({
    NATIVE.__torch_function__.__func__, torch._C._disabled_torch_function_impl,
    torch.nn.Parameter.__dict__["__torch_function__"],
})  # fmt: skip
_SEQUENCES, _OURS = (list, tuple), package_of(__name__)


def check_tensor(tensor: torch.Tensor, source: object) -> None:
    """Refuse a tensor without sizes, and one of a class that has a say in what operations do, which is not asked."""
    if tensor.is_nested and tensor.layout is torch.strided:
        raise AcquisitionError(
            f"{source} is a nested tensor, which has no sizes that a program could be compiled for: pass its parts, "
            "tensor.unbind(), or torch.nested.to_padded_tensor(tensor, padding)"
        )
    check_class(type(tensor), str(source))


def check_class(cls: type, what: str) -> None:
    """Refuse a class of tensors that has a say in what operations do.

    Args:
        cls: the class.
        what: is of it.
    """
    if cls is torch.Tensor or cls is torch.nn.Parameter or package_of(cls.__module__) == "torch":
        return
    overrides = _function_of(cls) not in _PLAIN
    if overrides or cls.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:  # type: ignore[attr-defined]
        name = "__torch_function__" if overrides else "__torch_dispatch__"
        raise AcquisitionError(
            f"{what} is a {cls.__qualname__}, a subclass of torch.Tensor that says in {name} what operations do; a "
            "compiled program does not ask it: pass its plain tensors, or leave this call uncompiled"
        )


def _function_of(cls: Any) -> Any:
    return getattr(cls.__torch_function__, "__func__", cls.__torch_function__)


def is_handed_on(cls: type) -> bool:
    """Whether what functions return of tensors of a class is of that class, too."""
    return cls is not torch.Tensor and _function_of(cls) is NATIVE.__torch_function__.__func__


def keeps_classes(function: object) -> bool:
    """Whether a function returns tensors of the classes that they have."""
    return function in get_default_nowrap_functions()


def asks_for_functions(value: object) -> bool:
    """Whether an object that is no tensor has a say in what torch functions do with it."""
    cls = type(value)
    if not cls.__flags__ & HEAP_TYPE or isinstance(value, torch.Tensor):
        return False
    return hasattr(cls, "__torch_function__")


def asked_for_functions(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """Return the objects among arguments, and in lists and tuples of them, that have a say, one of each class.

    They are in the order in which PyTorch asks them: those of a class derived from another's come before it. What
    stands for arrays while a program is acquired answers for itself alone: eager has arrays there.
    """
    listed = [a for a in (*args, *kwargs.values()) if type(a) in _SEQUENCES]
    others = chain(kwargs.values(), *listed)
    found: list[Any] = []
    for asked in chain(args, (a for a in others if asks_for_functions(a) and package_of(type(a).__module__) != _OURS)):
        if asks_for_functions(asked) and type(asked) not in map(type, found):
            after = [i for i, other in enumerate(found) if isinstance(asked, type(other))]
            found.insert(after[0] if after else len(found), asked)
    return found
