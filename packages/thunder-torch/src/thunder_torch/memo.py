"""What calls of PyTorch come to, remembered by all that it may depend on: the metadata of the arguments."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from thunder_ir import IntegerProxy, NumberProxy, Proxy, TensorProxy, is_unknown
from thunder_ir.unknown import bounds_of, terms_of
from thunder_torch.specs import NUMBERS, PLAIN, map_tensors, with_numbers
from thunder_torch.torch_versions import default_device

CAPACITY = 1 << 16  # calls remembered


class _NotCacheableError(Exception):
    """The metadata of the result may depend on more than the metadata of the arguments."""


class Memo(dict[Any, Any]):
    """What earlier calls returned. It forgets everything rather than grow without bound."""

    def keep(self, key: Any, value: Any) -> None:
        if len(self) >= CAPACITY:
            self.clear()
        self[key] = value


def _key(value: Any) -> Any:
    """Return a hashable stand-in for an argument: equal only where the metadata of results are."""
    cls = value.__class__
    if cls is TensorProxy:
        shape = value.shape
        for dimension in shape:
            if dimension.__class__ is not int:
                raise _NotCacheableError
        return (shape, value.dtype, value.device, value.requires_grad, value.strides)
    if cls in NUMBERS:
        return (cls, value)
    if cls in PLAIN:
        return value
    if isinstance(value, (tuple, list)):
        return (cls, *map(_key, value))
    if isinstance(value, dict):
        return (cls, *[(k, _key(v)) for k, v in value.items()])
    if cls is slice:
        return (slice, _key(value.start), _key(value.stop), _key(value.step))
    if isinstance(value, (torch.Tensor, torch.Generator, NumberProxy, Proxy)):
        raise _NotCacheableError
    try:
        hash(value)
    except TypeError:
        raise _NotCacheableError from None
    return value


def arguments_key(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the key under which a call is remembered, or ``None`` if it cannot be."""
    try:
        state = (torch.is_grad_enabled(), torch.get_default_dtype(), default_device_name())
        if kwargs:
            return (function, state, *map(_key, args), *[(name, _key(v)) for name, v in kwargs.items()])
        return (function, state, *map(_key, args))
    except _NotCacheableError:
        return None


def default_device_name() -> str | None:
    """Return the device on which factory functions create tensors where that is not the CPU."""
    if torch._C._len_torch_function_stack() == 0:
        return None
    name = str(default_device())
    return None if name == "cpu" else name


class _Tensor(NamedTuple):
    """What the metadata of results may depend on, of a tensor some of whose sizes only the run of the program tells."""

    shape: Any
    dtype: Any
    device: Any
    requires_grad: bool
    strides: Any


class _Number(NamedTuple):
    """What metadata of results may depend on, of a number that only the run of the program tells."""

    kind: type
    terms: Any


class Renamed:
    """The unknown sizes among the arguments of a call, numbered as they are met: calls may differ in their names alone.

    Args:
        function, args, kwargs: of the call.

    Attributes:
        key: under which the call is remembered, or ``None`` if it cannot be.
        sizes: the unknown sizes, of which others are sums of products.

    Example:
        >>> import torch
        >>> from thunder_ir import IntegerProxy, TensorProxy, Unknown, dtypes
        >>> from thunder_torch.memo import Renamed
        >>> rows = [IntegerProxy(7, name, Unknown("how many there are", 0)) for name in ("i0", "i1")]
        >>> a, b = [Renamed(torch.sin, (TensorProxy((n, 3), dtypes.float32),), {}) for n in rows]
        >>> a.key == b.key, [a.sizes, b.sizes] == [[rows[0]], [rows[1]]]
        (True, True)
    """

    def __init__(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.sizes: list[IntegerProxy] = []
        self._places: dict[Any, int] = {}
        try:
            given, named = (with_numbers(self._number, map_tensors(self._tensor, v)) for v in (args, kwargs))
        except _NotCacheableError:
            self.key = None
        else:
            self.key = arguments_key(function, given, named)

    def _tensor(self, tensor: Any) -> Any:
        if not isinstance(tensor, TensorProxy):
            raise _NotCacheableError
        shape, strides = (None if v is None else tuple(map(self._number, v)) for v in (tensor.shape, tensor.strides))
        return _Tensor(shape, str(tensor.dtype), str(tensor.device), tensor.requires_grad, strides)

    def _number(self, number: Any) -> Any:
        if number.__class__ is int:
            return number
        if not is_unknown(number):  # one that is open: what is asked of it is a constraint
            raise _NotCacheableError
        if not isinstance(number, IntegerProxy):
            return _Number(number.python_type, None)
        products = [(tuple(map(self._size, factors)), count) for factors, count in terms_of(number)]
        return _Number(int, tuple(products))

    def _size(self, size: Any) -> Any:
        if not is_unknown(size):
            raise _NotCacheableError
        return self._place(size), bounds_of(size), size.value

    def _place(self, size: IntegerProxy) -> int:
        place = self._places.setdefault(size.name or id(size), len(self._places))
        if place == len(self.sizes):
            self.sizes.append(size)
        return place


class Symbolic(Renamed):
    """The symbolic integers among the arguments of a call, numbered as they are met.

    Calls of one key have the same values in the same places: what they compute of each other is not part of it.
    """

    def _number(self, number: Any) -> Any:
        if number.__class__ is int:
            return number
        if is_unknown(number):
            raise _NotCacheableError
        if not isinstance(number, IntegerProxy):
            return _Number(number.python_type, number.value)
        if not number.value:  # PyTorch is told this very value, to which the program is fixed
            raise _NotCacheableError
        return self._place(number), number.value
