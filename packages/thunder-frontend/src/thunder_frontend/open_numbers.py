"""Numbers that a program leaves open, in the hands of user code: what Python and PyTorch's C code would take apart."""

from __future__ import annotations

import functools
import types
from typing import Any

import torch

from thunder_frontend.traced_tensor import TracedTensor
from thunder_ir import BoolProxy, FloatProxy, IntegerProxy, NumberProxy, flat_proxies


class NumbersMet(BaseException):  # noqa: N818  (a signal, which no handler of the user's may take for an error)
    """User code got hold of a number that only the run of the program tells: acquisition begins again, prepared."""


@functools.cache
def functions_in_c() -> tuple[Any, ...]:
    """Return PyTorch's functions and methods that are written in C."""
    places = (torch.Tensor, torch, torch.nn.functional, torch._C._nn, torch.special, torch.linalg, torch.fft)
    found = {
        id(f): f
        for place in places
        for f in map(place.__dict__.get, dir(place))
        if isinstance(f, types.BuiltinFunctionType)
    }
    methods = [m for m in vars(torch._C.TensorBase).values() if isinstance(m, types.MethodDescriptorType)]
    return (*found.values(), *methods)


def open_number_lookasides(acquisition: Any) -> dict[Any, Any]:
    """Return what is run in place of which callables in a program that leaves numbers open."""

    def is_instance(value: Any, classes: Any) -> bool:
        if isinstance(value, NumberProxy):
            return isinstance(value.value, classes)
        return isinstance(value, classes)

    def with_open_numbers(function: Any) -> Any:
        """PyTorch's functions written in C fix open numbers when they take their arguments apart: go round that."""

        def called(*args: Any, **kwargs: Any) -> Any:
            if any(isinstance(p, NumberProxy) for p in flat_proxies((args, kwargs))):
                with torch._C.DisableTorchFunction():
                    return acquisition(function, args, kwargs)
            return function(*args, **kwargs)

        return called

    def item(tensor: TracedTensor) -> Any:
        with torch._C.DisableTorchFunction():
            return acquisition(torch.Tensor.item, (tensor,), {})

    def to_float(*args: Any) -> Any:
        number = item(args[0]) if len(args) == 1 and isinstance(args[0], TracedTensor) else None
        if number is not None and not isinstance(number, NumberProxy):
            return float(number)
        if number is None:
            number = args[0] if len(args) == 1 and isinstance(args[0], (IntegerProxy, FloatProxy)) else None
        if number is None:
            return float(*args)
        return number / 1 if isinstance(number, (IntegerProxy, BoolProxy)) else number

    def to_int(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], TracedTensor) and args[0].numel() == 1:
            with torch._C.DisableTorchFunction():
                known = acquisition.known_value(args[0])
                if known is not None:
                    return int(known)
                return acquisition.on_values(torch.Tensor.__int__, (acquisition.value(args[0]),), {})
        if len(args) == 1 and isinstance(args[0], IntegerProxy):
            return args[0]
        return int(*args, **kwargs)

    def length(value: Any) -> Any:
        if isinstance(value, TracedTensor) and value._proxy.shape and isinstance(value._proxy.shape[0], NumberProxy):
            return value._proxy.shape[0]
        return len(value)

    def shown(value: Any) -> str:
        return repr(value.fixed() if isinstance(value, NumberProxy) else value)

    table: dict[Any, Any] = {isinstance: is_instance, float: to_float, int: to_int, len: length, repr: shown}
    table.update({function: with_open_numbers(function) for function in functions_in_c()})
    return table
