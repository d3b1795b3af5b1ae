"""Calls of NumPy that programs make when they run, on arrays that share the memory of tensors of the program."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from thunder_guards.errors import BeginAgain, DataDependentError
from thunder_guards.kinds import is_array
from thunder_torch.convert import proxy_of
from thunder_torch.opaque import Call
from thunder_tracing.bailouts import Bailout

T = torch.Tensor


class Array(Protocol):
    """What is asked of an array of NumPy, which this package does without."""

    base: Any
    dtype: Any
    flags: Any
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    size: int
    __array_interface__: dict[str, Any]

    def copy(self, order: str) -> Any:
        """Return a copy."""


def numpy() -> Any:
    """Return NumPy, which is loaded where there are arrays."""
    return sys.modules["numpy"]


def as_tensor(value: object) -> T:
    """Return the tensor in whose place a program has an array or a scalar, with its memory if it is an array.

    Raises:
        TypeError: tensors have no such elements, or no such layout.
    """
    return torch.from_numpy(value if is_array(value) else numpy().asarray(value))


def writable(array: Array) -> T:
    """Return the tensor that shares the memory of an array.

    Raises:
        ValueError: nobody may write to that.
    """
    if not array.flags.writeable:
        raise ValueError("the array is read-only")
    return torch.from_numpy(array)


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
            raise Bailout  # the program is one for another shape
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


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """Makes a view of an array, as the program made one.

    Args:
        function: that returned it.
        args, kwargs: which it was given besides the array.
        place: of the array among its arguments.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    place: int

    @property
    def __name__(self) -> str:
        return getattr(self.function, "__name__", "view")

    def __call__(self, whole: Any) -> Any:
        return self.function(*[whole if i == self.place else a for i, a in enumerate(self.args)], **self.kwargs)


@dataclass(frozen=True, slots=True)
class Written:
    """Returns a copy of one of its arguments that a function has written to.

    Args:
        function: writes to it.
        place: of the argument, or its name.
    """

    function: Callable[..., Any]
    place: int | str

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.run(*args, **kwargs)[0]

    def run(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Return the copy, and what the function returns."""
        given: dict[Any, Any] = {**dict(enumerate(args)), **kwargs}
        copied = given[self.place] = given[self.place].copy()
        return copied, self.function(*[given[i] for i in range(len(args))], **{k: given[k] for k in kwargs})


@dataclass(frozen=True, slots=True)
class At:
    """Does what a ufunc does at indices of an array, which writes to read-only arrays, too, if it is left to.

    Args:
        ufunc: computes what is written.
    """

    ufunc: Any

    def __call__(self, array: Any, *args: Any) -> None:
        if not array.flags.writeable:
            raise ValueError("the array is read-only")
        self.ufunc.at(array, *args)


class DynamicArrayError(DataDependentError):
    """An array is made of a tensor of dynamic sizes: by Python rather than by a program for each size."""


class ReadOnlyError(DataDependentError):
    """A function writes to an array that it is given."""


class ArrayWritten(BeginAgain):
    """The program writes what only its run brings to an array that was taken for one of the same values on each call.

    Args:
        number: of the array, among those that the program computes.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def on_arrays(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Stand for a call of a function with such arrays, where it is recorded."""
    return function(*args, **kwargs)
