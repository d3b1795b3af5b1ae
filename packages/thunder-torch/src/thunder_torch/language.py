"""The torch language: operators and methods of proxies as PyTorch's tensors have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from thunder_ir import Language, Symbol, TensorProxy
from thunder_lang import core
from thunder_torch.opaque import opaque
from thunder_torch.symbol import find_symbol

_OPERATORS = {
    "add": ("__add__", "__radd__"),
    "sub": ("__sub__", "__rsub__"),
    "mul": ("__mul__", "__rmul__"),
    "true_divide": ("__truediv__", "__rtruediv__"),
    "floor_divide": ("__floordiv__", "__rfloordiv__"),
    "remainder": ("__mod__", "__rmod__"),
    "pow": ("__pow__", "__rpow__"),
    "matmul": ("__matmul__", "__rmatmul__"),
    "bitwise_and": ("__and__", "__rand__"),
    "bitwise_or": ("__or__", "__ror__"),
    "bitwise_xor": ("__xor__", "__rxor__"),
    "bitwise_left_shift": ("__lshift__", "__rlshift__"),
    "bitwise_right_shift": ("__rshift__", "__rrshift__"),
}
_RENAMED = {"getitem": "__getitem__"}
_PROPERTIES = frozenset({"T", "mT", "H", "mH", "real", "imag"})


def symbol_of(function: Callable[..., Any]) -> Symbol:
    """Return the symbol of a PyTorch callable: the one defined for it, or an opaque one."""
    return find_symbol(function) or opaque(function)


class TorchLanguage(Language):
    """Resolves a method to the symbol of the tensor method of that name, whatever PyTorch has."""

    __slots__ = ()

    def find(self, name: str) -> Callable[..., Any] | None:
        """Return the method of that name, or ``None``."""
        found = self._methods.get(name)
        if found is not None:
            return found
        if name in _OPERATORS:
            return self._keep(name, _operator(name))
        if name in _PROPERTIES:
            self._attributes.add(name)
            return self._keep(name, symbol_of(getattr(torch.Tensor, name).__get__))
        method = getattr(torch.Tensor, _RENAMED.get(name, name), None)
        if method is not None and callable(method):
            return self._keep(name, symbol_of(method))
        return super().find(name)

    def is_attribute(self, name: str) -> bool:
        """Whether ``name`` is computed on access, without a call."""
        return name in _PROPERTIES or super().is_attribute(name)

    def _keep(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        self._methods[name] = method
        return method


def _operator(name: str) -> Callable[..., Any]:
    plain, reflected = (symbol_of(getattr(torch.Tensor, n)) for n in _OPERATORS[name])
    if (method := getattr(torch.Tensor, name, None)) is not None:
        plain = symbol_of(method)

    def operator(a: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(a, TensorProxy):
            return plain(a, b, *args, **kwargs)
        return reflected(b, a)

    return operator


torch_language = TorchLanguage("torch", base=core)
"""The language of programs written as PyTorch code is."""

tensor_language = TorchLanguage("torch", base=core, instead=("numel",))
"""The same for functions of users, to whom proxies look like PyTorch's tensors in all."""
