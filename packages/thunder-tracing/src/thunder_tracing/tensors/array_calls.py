"""Calls of NumPy that programs make when they run, on arrays that share the memory of tensors of the program."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from thunder_guards.errors import DataDependentError
from thunder_guards.kinds import is_array
from thunder_torch.convert import proxy_of
from thunder_torch.opaque import Call
from thunder_tracing.one_way import OtherWay

T = torch.Tensor


def numpy() -> Any:
    """Return NumPy, which is loaded where there are arrays."""
    return sys.modules["numpy"]


def as_tensor(value: Any) -> T:
    """Return the tensor in whose place a program has an array or a scalar, with its memory if it is an array.

    Raises:
        TypeError: tensors have no such elements, or no such layout.
    """
    return torch.from_numpy(value if is_array(value) else numpy().asarray(value))


def of_tensor(tensor: T) -> Any:
    """Return the array that a tensor is in the place of."""
    return tensor.numpy()


def scalar_of_tensor(tensor: T) -> Any:
    """Return the scalar that a tensor is in the place of."""
    return tensor.numpy()[()]


@dataclass(frozen=True, slots=True, eq=False)
class OnArrays:
    """Calls a function, when a program runs, with arrays and scalars in the place of tensors.

    Args:
        call: the function, with what it is given besides.
        scalars: which of its values are scalars.
        example: of what it returns.
    """

    call: Call
    scalars: tuple[bool, ...]
    example: Any

    @property
    def __name__(self) -> str:
        return self.call.__name__

    def __call__(self, *values: Any) -> T:
        pairs = zip(values, self.scalars, strict=True)
        given = [v if not isinstance(v, T) else scalar_of_tensor(v) if scalar else of_tensor(v) for v, scalar in pairs]
        made = self.call(*given)
        tensor, like = as_tensor(made), as_tensor(self.example)
        if (tensor.shape, tensor.dtype, tensor.stride()) != (like.shape, like.dtype, like.stride()):
            raise OtherWay  # the program is one for another shape
        return tensor

    def metadata(self, values: tuple[Any, ...]) -> Any:
        """Return a proxy for what it returns."""
        return proxy_of(as_tensor(self.example), "")


@dataclass(frozen=True, slots=True)
class Method:
    """Calls a method.

    Args:
        name: of the method.
    """

    name: str

    def __call__(self, owner: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(owner, self.name)(*args, **kwargs)


@dataclass(frozen=True, slots=True)
class Written:
    """Returns a copy of its first argument that a function has written to.

    Args:
        function: writes to its first argument.
    """

    function: Callable[..., Any]

    def __call__(self, owner: Any, *args: Any, **kwargs: Any) -> Any:
        copied = owner.copy()
        self.function(copied, *args, **kwargs)
        return copied


class ReadOnlyError(DataDependentError):
    """A function writes to an array that it is given."""


def on_arrays(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Stand for a call of a function with such arrays, where it is recorded."""
    return function(*args, **kwargs)


__all__ = [
    "Method", "OnArrays", "ReadOnlyError", "Written", "as_tensor", "numpy", "of_tensor", "on_arrays",
    "scalar_of_tensor",
]  # fmt: skip
