"""Symbolic numbers in the hands of user code: what Python and PyTorch's C code would take apart."""

from __future__ import annotations

import functools
import operator
import sys
import types
from typing import Any

import torch

from thunder_frontend._acquiring import Acquiring
from thunder_frontend._external_state.given_numbers import numbers_given
from thunder_frontend._external_state.symbolic_numbers import identical
from thunder_guards.kinds import CONTAINERS
from thunder_guards.templates import Built
from thunder_interpreter import DECLINED
from thunder_ir import BoolProxy, FloatProxy, IntegerProxy, NumberProxy, ShapeError, flat_proxies, is_unknown
from thunder_lang import broadcast_shapes
from thunder_tracing.tensors.comparisons import compared
from thunder_tracing.tensors.foreach import OF_LISTS
from thunder_tracing.tensors.number_functions import FUNCTIONS, computed, to_nearest
from thunder_tracing.tensors.run_arrays import INDEX, OF_ARRAYS, RunArray, of_ufunc, with_numbers_of_scalars
from thunder_tracing.tensors.run_numbers import RESULTS, of_the_run
from thunder_tracing.tensors.run_texts import RunText, formatted
from thunder_tracing.tensors.sizes import SymbolicSize, as_size, shown
from thunder_tracing.tensors.traced_tensor import TracedTensor, is_replaced
from thunder_tracing.tensors.whole_numbers import ROUNDING, rounded

SIZES = (tuple, list, torch.Size, SymbolicSize)


@functools.cache
def functions_in_c() -> tuple[Any, ...]:
    """Return PyTorch's functions and methods that are written in C, but for those of lists of tensors."""
    places = (torch.Tensor, torch, torch.nn.functional, torch._C._nn, torch.special, torch.linalg, torch.fft)
    found = {
        id(f): f
        for place in places
        for f in map(place.__dict__.get, dir(place))
        if isinstance(f, types.BuiltinFunctionType) and not f.__name__.startswith(OF_LISTS)
    }
    methods = [m for m in vars(torch._C.TensorBase).values() if isinstance(m, types.MethodDescriptorType)]
    return (*found.values(), *methods)


def ufunc_of_numbers(calls: Acquiring, function: Any) -> Any:
    """Return what is run in place of one of NumPy's functions of single elements, which would fix symbolic numbers."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(function, numpy.ufunc) or not calls.allows_unknown:
        return None

    def called(*args: Any, **kwargs: Any) -> Any:
        are_known = [isinstance(a, (IntegerProxy, FloatProxy)) and not is_unknown(a) for a in args]
        others = [a for a, known in zip(args, are_known, strict=True) if not known]
        if kwargs or not any(are_known) or not all([type(a) in (int, float) for a in others]):
            return DECLINED
        return of_ufunc(calls, function, *args)

    return called


class SymbolicNumbers:
    """Stands in for callables that would take symbolic numbers apart.

    Args:
        calls: the acquisition.
    """

    def __init__(self, calls: Acquiring) -> None:
        self._calls = calls

    def lookasides(self) -> dict[Any, Any]:
        """Return what is run in place of which callables in a program with symbolic numbers."""
        table: dict[Any, Any] = {
            isinstance: _is_instance,
            **dict.fromkeys((bool, operator.truth), self._to_bool),
            float: self._to_float,
            int: self._to_int,
            len: self._length,
            repr: _shown,
            str: _formatted,
            format: _formatted,
            operator.is_: identical,
            operator.is_not: lambda a, b: not identical(a, b),
            **{f: functools.partial(self._of_math, f) for f in (*FUNCTIONS, *RESULTS) if f not in ROUNDING},
            **{f: functools.partial(_rounded, f) for f in ROUNDING if f is not int},
            round: _to_digits,
            torch.Size: functools.partial(self._of_sizes, as_size),
            torch.broadcast_shapes: functools.partial(self._of_sizes, lambda *sizes: as_size(broadcast_shapes(*sizes))),
        }
        table.update({function: self._with_symbolic_numbers(function) for function in functions_in_c()})
        return table

    def _with_symbolic_numbers(self, function: Any) -> Any:
        """PyTorch's functions written in C fix symbolic numbers when they take their arguments apart: go round that."""

        def called(*args: Any, **kwargs: Any) -> Any:
            seen = numbers_given(self._calls.external, function, args, kwargs)
            if seen is not None:
                args, kwargs = tuple(seen[0]), seen[1]
            if function not in OF_ARRAYS and function not in INDEX:
                args, kwargs = with_numbers_of_scalars((args, kwargs))
            if any(isinstance(p, NumberProxy) for p in flat_proxies((args, kwargs))):
                for given in (*args, *kwargs.values()):
                    if isinstance(given, CONTAINERS):
                        self._calls.external.unwatched.escapes(given)
                with torch._C.DisableTorchFunction():
                    return self._calls(function, args, kwargs)
            return DECLINED

        return called

    def _of_sizes(self, function: Any, *sizes: Any) -> Any:
        """Return the size that a function makes of sizes with symbolic dimensions, which PyTorch's own would fix."""
        if not any([type(size) in SIZES and any([type(d) is IntegerProxy for d in size]) for size in sizes]):
            return DECLINED
        if not all([type(size) in SIZES and all([type(d) in (int, IntegerProxy) for d in size]) for size in sizes]):
            return DECLINED
        for size in sizes:
            self._calls.external.unwatched.escapes(size)
        try:
            return function(*sizes)
        except ShapeError:  # which PyTorch words in its own way
            return DECLINED

    def _is_tensors_own(self, function: object, name: str, args: tuple[Any, ...]) -> bool:
        """Whether PyTorch's own method does what a builtin asks of its one argument, a tensor; guard that."""
        if len(args) != 1 or not isinstance(args[0], TracedTensor):
            return False
        self._calls.external.classes.operands(function, args)
        return not is_replaced(name)

    def _item(self, tensor: TracedTensor) -> Any:
        with torch._C.DisableTorchFunction():
            return self._calls(torch.Tensor.item, (tensor,), {})

    def _to_bool(self, *args: Any) -> Any:
        if self._is_tensors_own(bool, "__bool__", args) and args[0]._proxy.numel == 1:
            with torch._C.DisableTorchFunction():
                is_truth = args[0]._proxy.dtype.is_bool
                return self._item(args[0] if is_truth else self._calls(torch.ne, (args[0], 0), {}))
        if len(args) == 1 and isinstance(args[0], NumberProxy):
            made = args[0] if isinstance(args[0], BoolProxy) else compared(operator.ne, args[0], 0)
            return made if is_unknown(made) else DECLINED
        return DECLINED

    def _to_float(self, *args: Any) -> Any:
        if len(args) == 1 and type(args[0]) is RunArray:
            args = (args[0].item(),)
        own = self._is_tensors_own(float, "__float__", args) and not args[0]._proxy.dtype.is_complex
        number = self._item(args[0]) if own else None
        if number is not None and not isinstance(number, NumberProxy):
            return float(number)
        if number is None:
            number = args[0] if len(args) == 1 and isinstance(args[0], (IntegerProxy, FloatProxy)) else None
        if number is None:
            return DECLINED
        return number / 1 if isinstance(number, (IntegerProxy, BoolProxy)) else number

    def _to_int(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and type(args[0]) is RunArray:
            return self._to_int(args[0].item())
        if self._is_tensors_own(int, "__int__", args) and args[0].numel() == 1:
            with torch._C.DisableTorchFunction():
                known = self._calls.known_value(args[0])
                if known is not None:
                    return int(known)
                return self._calls.on_values(torch.Tensor.__int__, (self._calls.value(args[0]),), {})
        if len(args) == 1 and isinstance(args[0], IntegerProxy):
            return args[0]
        return _rounded(int, *args, **kwargs)

    def _of_math(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            return DECLINED
        takes_floats = RESULTS.get(function) is not int
        are_elements = [isinstance(a, torch.Tensor) or type(a) is RunArray for a in args]
        numbers = [self._to_float(a) if takes_floats and e else a for a, e in zip(args, are_elements, strict=True)]
        made = computed(function, *numbers)
        if made is NotImplemented:
            made = of_the_run(function, *numbers)
        return DECLINED if made is NotImplemented else made

    def _length(self, value: Any) -> Any:
        own = self._is_tensors_own(len, "__len__", (value,))
        if own and value._proxy.shape and isinstance(value._proxy.shape[0], NumberProxy):
            return value._proxy.shape[0]
        return DECLINED


def _rounded(function: Any, *args: Any, **kwargs: Any) -> Any:
    made = rounded(function, args[0]) if len(args) == 1 and not kwargs else NotImplemented
    return DECLINED if made is NotImplemented else made


def _to_digits(*args: Any, **kwargs: Any) -> Any:
    if len(args) == 2 and type(args[1]) is int and isinstance(args[0], FloatProxy) and not is_unknown(args[0]):
        made = to_nearest(*args)
        return DECLINED if made is NotImplemented else made
    if len(args) == 2 and type(args[1]) is int and args[1] >= 0 and isinstance(args[0], IntegerProxy):
        return args[0]
    return _rounded(round, *args, **kwargs)


def _is_instance(value: Any, classes: Any) -> Any:
    if value.__class__ is SymbolicSize:
        return isinstance(torch.Size(), classes)
    if value.__class__ is RunText:
        return isinstance("", classes)
    return isinstance(value.value, classes) if isinstance(value, NumberProxy) else DECLINED


def _formatted(*args: Any, **kwargs: Any) -> Any:
    if len(args) == 2 and args[1] and type(args[0]) is RunArray and args[0].is_scalar:
        number = args[0].item()  # which NumPy formats in its place
        args = (number, args[1]) if isinstance(number, (IntegerProxy, FloatProxy)) else args
    made = formatted(*args) if len(args) in (1, 2) and not kwargs else NotImplemented
    if made is NotImplemented and not kwargs and (len(args) == 1 or args[1:] and type(args[1]) is str and not args[1]):
        made = shown(args[0])
    return DECLINED if made is NotImplemented else made


def _shown(value: object) -> Any:
    made = shown(value)
    if made is NotImplemented:
        return RunText(Built(repr, (value,))) if isinstance(value, NumberProxy) else DECLINED
    return made
