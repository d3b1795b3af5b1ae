"""What is remembered of the result of a call: the metadata of its tensors, and all else as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import torch

from thunder_ir import Device, IntegerProxy, NumberProxy, TensorProxy, map_values, value_of
from thunder_torch.convert import from_torch_device, from_torch_dtype, unheld_kind
from thunder_torch.errors import UnknownMetadataError
from thunder_torch.unknown_sizes import SYMBOLS

PLAIN = frozenset({str, bytes, type(None), type(...), torch.dtype, torch.device, torch.memory_format, torch.layout})
NUMBERS = frozenset({int, float, bool, complex})


class _Unknown(Protocol):
    """What knows of sizes that are symbolic or known only when the program runs."""

    def dimension(self, size: Any, place: int) -> Any: ...

    def strides(self, strides: Any) -> Any: ...

    def result(self, value: Any) -> Any: ...


class TensorSpec(NamedTuple):
    """What is remembered of an output tensor.

    Args:
        shape, dtype, device, requires_grad, strides: as of a :class:`~thunder_ir.TensorProxy`.
        argument: the tensor argument, counted in order, that the output is itself; ``None`` if it is a new one.
        viewed: the tensor argument whose memory it shares, or ``None``.
        has_unknown: whether the shape, or the strides, hold patterns of sizes that the run of the program tells.
    """

    shape: tuple[Any, ...]
    dtype: Any
    device: Any
    requires_grad: bool
    strides: tuple[Any, ...] | None
    argument: int | None
    viewed: int | None
    has_unknown: bool = False


def tensors_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """Return the tensor proxies and real tensors among the arguments, in order."""
    found: list[Any] = []

    def collect(value: Any) -> Any:
        found.append(value)
        return value

    map_tensors(collect, args)
    map_tensors(collect, kwargs)
    return found


def map_tensors(function: Callable[[Any], Any], value: Any) -> Any:
    """Return ``value`` with ``function`` applied to the tensor proxies and real tensors in it."""
    cls = value.__class__
    if cls in NUMBERS or cls in PLAIN:
        return value
    if isinstance(value, (TensorProxy, torch.Tensor)):
        return function(value)
    if isinstance(value, (tuple, list)):
        items = [map_tensors(function, v) for v in value]
        if cls is tuple or cls is list or cls is torch.Size:
            return items if cls is list else tuple(items)
        return value._make(items) if hasattr(value, "_make") else cls(items)
    if isinstance(value, dict):
        return {k: map_tensors(function, v) for k, v in value.items()}
    if cls is slice:
        return slice(*[map_tensors(function, v) for v in (value.start, value.stop, value.step)])
    return value


def with_numbers(function: Callable[[NumberProxy], Any], value: Any) -> Any:
    """Return ``value`` with ``function`` applied to the number proxies in it."""
    return map_values(lambda v: function(v) if isinstance(v, NumberProxy) else v, value)


def resized(number: Callable[[Any], Any], tensor: TensorProxy) -> TensorProxy:
    """Return a proxy like another, of the sizes and strides that ``number`` makes of its own."""
    strides = None if tensor.strides is None else tuple(map(number, tensor.strides))
    return TensorProxy(tuple(map(number, tensor.shape)), tensor.dtype, tensor.device, tensor.requires_grad, strides)


def at_values(tree: Any) -> Any:
    """Return arguments with the values at hand of numbers among them, and of sizes and strides of tensors."""
    return map_values(lambda v: resized(value_of, v) if isinstance(v, TensorProxy) else value_of(v), tree)


def map_specs(function: Callable[[TensorSpec], Any], told: Any) -> Any:
    """Return what is remembered of a result, with ``function`` applied to the specifications of tensors in it."""
    if isinstance(told, TensorSpec):
        return function(told)
    if isinstance(told, (tuple, list)):
        items = [map_specs(function, item) for item in told]
        return told._make(items) if hasattr(told, "_make") else told.__class__(items)
    if isinstance(told, dict):
        return {key: map_specs(function, item) for key, item in told.items()}
    return told


def plain(number: NumberProxy) -> Any:
    """Return a plain number: integers are fixed, others stand in by their value."""
    return int(number) if isinstance(number, IntegerProxy) else number.value


def spec_of_result(
    output: Any,
    inputs: list[torch.Tensor],
    known: bool,
    unknown: _Unknown | None = None,
    device: Device | None = None,
) -> Any:
    """Return ``output`` with specifications for its tensors.

    Args:
        inputs: the tensors that were given, in order.
        known: whether the strides of all of them were.
        unknown: what made them, if some sizes are symbolic or known only when the program runs.
        device: of the tensors that the outputs stand for, if not theirs.
    """
    storages = {storage_key(t): i for i, t in reversed(list(enumerate(inputs)))}

    def spec(tensor: torch.Tensor) -> TensorSpec:
        unheld = unheld_kind(tensor)
        if unheld is not None:
            raise UnknownMetadataError(
                f"the result is a {unheld[0]}; programs hold dense ones of sizes and strides alone"
            )
        argument = next((i for i, t in enumerate(inputs) if t is tensor), None)
        if unknown is None:
            shape: Any = tuple([int(d) for d in tensor.shape])
            strides: Any = tuple([int(s) for s in tensor.stride()]) if known else None
        else:
            shape = tuple([unknown.dimension(d, i) for i, d in enumerate(tensor.shape)])
            strides = unknown.strides(tensor.stride()) if known else None
        return TensorSpec(
            shape,
            from_torch_dtype(tensor.dtype),
            device or from_torch_device(tensor.device),
            tensor.requires_grad,
            strides,
            argument,
            storages.get(storage_key(tensor)),
            any([s.__class__ is not int for s in (*shape, *(strides or ()))]),
        )

    specified = map_tensors(spec, output)
    if unknown is None:
        return specified
    return map_values(lambda v: unknown.result(v) if isinstance(v, SYMBOLS) else v, specified)


def storage_key(tensor: torch.Tensor) -> int:
    """Return what tells storages apart while they live."""
    return tensor.untyped_storage()._cdata if tensor.layout is torch.strided else id(tensor)


STORAGE_ID: Callable[[torch.Tensor], int] = getattr(torch._C, "_storage_id", storage_key)
"""The same of a tensor that has a storage, in one call of PyTorch where it has that; raises for others."""
