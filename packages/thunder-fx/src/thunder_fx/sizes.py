"""Examples of inputs as proxies: PyTorch's symbolic sizes become numbers of the program."""

from __future__ import annotations

from typing import Any

import torch

from thunder_fx.errors import FXError
from thunder_ir import IntegerProxy, Names, NumberProxy, Proxy, TensorProxy, number_proxy
from thunder_torch import from_torch_device, from_torch_dtype, proxy_of


class Examples:
    """What stands for the inputs of a graph.

    Args:
        names: of the trace.
    """

    def __init__(self, names: Names) -> None:
        self.names = names
        self.more: list[IntegerProxy] = []
        self._numbers: dict[Any, NumberProxy] = {}

    def take(self, name: str, value: Any) -> Proxy:
        """Return what stands for an input.

        Raises:
            FXError: it is neither tensor nor number, or a number no example of which is known.
        """
        if isinstance(value, torch.Tensor):
            return self._tensor(value, self.names.take(name))
        if isinstance(value, (torch.SymInt, torch.SymFloat)):
            return self._number(value, name)
        if isinstance(value, torch.SymBool):
            raise FXError(f"the input {name} is a symbolic bool, which traces do not know")
        if isinstance(value, (int, float)):  # bools among them
            return number_proxy(value, self.names.take(name))
        raise FXError(f"the input {name} is a {type(value).__name__}; traces take tensors and numbers")

    def _number(self, value: torch.SymInt | torch.SymFloat, name: str) -> NumberProxy:
        key = value.node.expr
        found = self._numbers.get(key)
        if found is None:
            hint = value.node.hint
            if hint is None:
                raise FXError(
                    f"the input {name} is {value}, a size that only a run tells (unbacked): pass an example of it"
                )
            found = self._numbers[key] = number_proxy(hint, self.names.take(name))
        return found

    def _tensor(self, value: torch.Tensor, name: str) -> TensorProxy:
        if all([isinstance(d, int) for d in value.shape]):
            return proxy_of(value, name)
        shape = []
        for i, size in enumerate(value.shape):
            if isinstance(size, torch.SymInt):
                key, known = size.node.expr, len(self._numbers)
                number = self._number(size, f"{name}_{i}")
                if len(self._numbers) > known and self._numbers[key] is number:
                    self.more.append(number)
                size = number
            shape.append(size)
        return TensorProxy(
            tuple(shape), from_torch_dtype(value.dtype), from_torch_device(value.device), value.requires_grad, name=name
        )


__all__ = ["Examples"]
