"""Tensors that a program makes of what is no tensor: of NumPy's arrays and of buffers.

What they are made of is guarded where it comes from outside, so that they hold the same values on each call.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import torch

from thunder_guards.buffers import copy_of, holds
from thunder_guards.errors import AcquisitionError
from thunder_guards.kinds import holds_of_numpy, is_array
from thunder_ir import IntegerProxy
from thunder_torch import opaque_call
from thunder_torch.convert import proxy_of
from thunder_tracing.tensors._handlers import answers, answers_each
from thunder_tracing.tensors.array_calls import Array, ArrayWritten, Method, View, numpy, on_arrays, writable
from thunder_tracing.tensors.array_memory import (
    address_of,
    can_be_of_the_call,
    can_be_shared,
    is_plain,
    shares_memory,
)
from thunder_tracing.tensors.run_arrays import OF_ARRAYS, RunArray, index_of, with_numbers_of_scalars
from thunder_tracing.tensors.sizes import fixed
from thunder_tracing.tensors.traced_tensor import TracedTensor
from thunder_tracing.tensors.write_calls import WriteCalls

T = torch.Tensor
COMPUTE_ARRAYS = ("numpy", "_operator")
"""Whose functions compute arrays of what they are given alone."""
MAKES_TENSORS = frozenset({torch.frombuffer, torch.range})


class Constant:
    """Makes a tensor of the same values on each call.

    Args:
        value: it is never written to.
    """

    __name__ = "constant"

    def __init__(self, value: T) -> None:
        self._value = value

    def __call__(self) -> T:
        return self._value.clone()

    def metadata(self, values: tuple[Any, ...]) -> Any:
        """Return a proxy for what it returns."""
        return proxy_of(self._value)


class Arrays:
    """Makes tensors of arrays, and sees to it that what shares memory is not read by one after a write by the other.

    Args:
        calls: the acquisition.
        of_the_run: numbers of the arrays that the program computes when it runs: see :class:`ArrayWritten`.
    """

    def __init__(self, calls: WriteCalls, of_the_run: frozenset[int]) -> None:
        self._calls = calls
        self._of_the_run = of_the_run
        self._computed: list[Any] = []
        self._lent: dict[int, tuple[Any, Any, TracedTensor]] = {}
        self._wholes: dict[int, tuple[Any, Any, View | None]] = {}
        self._apart: list[tuple[Any, TracedTensor]] = []

    def made(self, function: object, args: Sequence[Any], result: Any) -> Any:
        """Return what a program gets for a tensor that a call in C returned: a traced one, if it is made of no tensor.

        Args:
            function, args: of the call.
            result: what it returned.
        """
        if isinstance(result, TracedTensor) or any(isinstance(a, T) for a in args):
            return result
        if function is torch.from_numpy:
            return self.sharing(args[0], result)
        if isinstance(function, type(torch.FloatTensor)) or function is T:
            if all(type(a) is int or isinstance(a, torch.Size) for a in args):  # nobody has written to it yet
                with torch._C.DisableTorchFunction():
                    shape, kind = tuple(result.shape), {"dtype": result.dtype, "device": result.device}
                return self._calls(torch.empty, (shape,), kind)
        elif function not in MAKES_TENSORS:
            return result
        return constant(self._calls, result)

    def computed(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Any:
        """Return what a program gets for an array that a function of NumPy's returned: one of the run, if it has to be.

        Args:
            function, args, kwargs: of the call.
            result: what it returned.
        """
        owner = getattr(function, "__self__", None)
        if is_array(owner):
            function, args = Method(function.__name__), (owner, *args)
        if result.base is not None:
            if id(result) not in self._wholes:
                self._note_part(function, args, kwargs, result)
            return result
        if not is_array(owner) and getattr(function, "__module__", None) not in COMPUTE_ARRAYS:
            return result
        if function is operator.getitem or any([result is given for given in (*args, *kwargs.values())]):
            return result
        self._computed.append(result)
        if len(self._computed) - 1 not in self._of_the_run:
            return result
        with torch._C.DisableTorchFunction():
            return self._calls(on_arrays, (function, tuple(args), dict(kwargs)), {})

    def _note_part(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> None:
        """Note how the program made a view of an array."""
        for index, whole in enumerate(args):
            if is_array(whole) and whole is not result and numpy().may_share_memory(result, whole):
                others = (*args[:index], *args[index + 1 :], *kwargs.values())
                again = View(function, (*args[:index], None, *args[index + 1 :]), dict(kwargs), index)
                self._wholes[id(result)] = result, whole, again if all(map(is_plain, others)) else None
                return

    def views(self) -> list[tuple[object, object, Callable[..., Any]]]:
        """Return views that the program made of arrays, each with the array and how it is made again."""
        return [(array, whole, view) for array, whole, view in self._wholes.values() if view is not None]

    def is_of_the_run(self, array: Any) -> None:
        """Begin again where the program writes what only its run brings to an array that it has computed, or a view.

        Raises:
            ArrayWritten: it has.
        """
        while array is not None:
            for number, known in enumerate(self._computed):
                if known is array:
                    raise ArrayWritten(number)
            array = array.base

    def sharing(self, array: object, tensor: T, of: Callable[..., T] = torch.from_numpy) -> TracedTensor:
        """Return what stands for a tensor that shares the memory of an array.

        Args:
            array: of NumPy.
            tensor: what shares its memory.
            of: how each call gets that.
        """
        if id(array) in self._lent:
            with torch._C.DisableTorchFunction():
                return self._calls(T.detach, (self._lent[id(array)][2],), {})  # type: ignore[no-any-return]
        if self._calls.external.source_of(array) is None:
            traced = self._part(array)
            if traced is None:
                traced = constant(self._calls, tensor)
                self._apart += [(array, traced)] * (is_array(array) and getattr(array, "base", None) is not None)
        else:
            self._calls.external.mutations.watch_buffer(array)
            traced = self._calls.external.result_of(of, (array,), tensor)
        self._lent[id(array)] = array, copy_of(array), traced
        return traced

    def _part(self, array: Any) -> TracedTensor | None:
        """Return what stands for a tensor that shares the memory of a view that the program made of an array.

        ``None`` where tensors cannot be such views.
        """
        whole = array
        while id(whole) in self._wholes and self._calls.external.source_of(whole) is None:
            whole = self._wholes[id(whole)][1]
        if whole is array or not can_be_of_the_call(whole):
            return None
        size, offset = whole.itemsize, address_of(array) - address_of(whole)
        if array.dtype != whole.dtype or any([step < 0 or step % size for step in (*array.strides, offset)]):
            return None
        with torch._C.DisableTorchFunction():
            tensor = self.sharing(whole, torch.from_numpy(whole))
            place = array.shape, tuple([step // size for step in array.strides]), offset // size
            return self._calls(torch.as_strided, (tensor, *place), {})  # type: ignore[no-any-return]

    def element(self, array: Any, key: object) -> Any:
        """Return an element of an array that others hold, at a place of which numbers change: a scalar of the run.

        ``NotImplemented`` for anything else.
        """
        keys = key if type(key) is tuple else (key,)
        if not all([isinstance(k, (int, IntegerProxy)) for k in keys]) or type(array).__module__ != "numpy":
            return NotImplemented
        if array.ndim != len(keys) or array.dtype.kind not in "fi":
            return NotImplemented
        if not can_be_shared(array) or self._calls.external.source_of(array) is None:
            return NotImplemented
        example = array[tuple([k.value if isinstance(k, IntegerProxy) else k for k in keys])]
        with torch._C.DisableTorchFunction():
            tensor = self.sharing(array, torch.from_numpy(array))
            found = self._calls(T.__getitem__, (tensor, tuple(keys)), {})
            scalar = self._calls(T.clone, (found,), {})  # which later writes to the array do not change
        return RunArray(self._calls, scalar, (example, example))

    def given_index(self, key: Any) -> Any:
        """Return an index with tensors in the place of integers in arrays that others hold, which each call reads anew.

        Args:
            key: what the program indexes a tensor with.
        """
        if type(key) is tuple:
            items = [self.given_index(k) for k in key]
            return key if all(map(operator.is_, items, key)) else tuple(items)
        if not is_array(key) or type(key) is not numpy().ndarray or key.dtype.kind != "i" or not key.ndim:
            return key
        if not can_be_shared(key) or self._calls.external.source_of(key) is None:
            return key
        with torch._C.DisableTorchFunction():
            tensor = self.sharing(key, torch.from_numpy(key), writable)
            return self._calls(T.to, (tensor, torch.int64), {})  # which shares the memory of one of int64 in eager, too

    def of_the_call(self, array: Array) -> RunArray:
        """Return what stands for an array that others hold, and that has other elements on each call."""
        with torch._C.DisableTorchFunction():
            tensor = self.sharing(array, torch.from_numpy(array), writable)
        for size in self._calls.value(tensor).shape:
            fixed(size)  # NumPy is told how many elements there are
        another = array.copy("K")
        part = another.ravel("K")[::2]
        part[...] = ~part if array.dtype.kind == "b" else 0 if array.dtype.kind in "iu" else -part
        return RunArray(self._calls, tensor, (array.copy("K"), another), given=array)

    def may_change(self, array: Array) -> bool:
        """Whether what is in an array may be other than while the program is acquired: others hold it, or a tensor."""
        is_held = self._calls.external.source_of(array) is not None
        return is_held or any([shares_memory(lent, array) for lent, *_ in self._lent.values() if is_array(lent)])

    def looked_at(self, array: Array) -> None:
        """Refuse to let code in C look at the memory of a tensor that the program wrote to.

        Raises:
            AcquisitionError: it would see what was there before.
        """
        for lent, _, traced in self._lent.values():
            if traced._memory.version and is_array(array) and shares_memory(lent, array):
                raise AcquisitionError(
                    "the program writes to a tensor that shares its memory with an array of NumPy, and uses the array "
                    "after that; make the tensor of a copy of the array, or use the tensor"
                )

    def looked_into(self, given: Sequence[Any]) -> None:
        """Refuse to let code in C look at such memory by an array in a list or a tuple that it is given."""
        if not any([traced._memory.version for _, _, traced in self._lent.values()]):
            return
        for value in given:
            for part in value if value.__class__ in (list, tuple) else ():
                if is_array(part):
                    self.looked_at(part)

    def written(self) -> list[tuple[object, TracedTensor]]:
        """Return the program's own arrays whose memory it wrote to by tensors, each with the tensor."""
        own = [(array, traced) for array, _, traced in self._lent.values() if traced._memory.version]
        return [(array, traced) for array, traced in own if self._calls.external.source_of(array) is None]

    def check(self) -> None:
        """Refuse changes of arrays that tensors share their memory with.

        Raises:
            AcquisitionError: there are some.
        """
        for _, traced in self._apart:
            if traced._memory.version:
                raise AcquisitionError(
                    "the program writes to a tensor that shares its memory with a part of an array of NumPy; make the "
                    "tensor of the whole array, and take the part of that"
                )
        for array, before, _ in self._lent.values():
            if not (holds(array, before) and self._calls.external.mutations.is_unchanged(array)):
                raise AcquisitionError(
                    "the program changes an array of NumPy that shares its memory with a tensor, which a program does "
                    "not see; make the tensor of a copy of the array, or change the tensor"
                )

    def as_index(self, key: Any) -> Any:
        """Return an index with tensors in the place of arrays."""
        if type(key) is RunArray:
            return index_of(key)
        if is_array(key):
            with torch._C.DisableTorchFunction():
                made = torch.tensor(key)
                return constant(self._calls, made.long() if key.dtype.kind == "i" else made)
        if isinstance(key, slice):
            return with_numbers_of_scalars(key)
        if isinstance(key, tuple):
            return tuple([self.as_index(k) for k in key])
        return key


def variable(
    calls: WriteCalls, data: Any = None, requires_grad: bool | None = None, volatile: bool | None = None
) -> Any:
    """Do what ``torch.autograd.Variable`` does: what was a class of its own is a detached tensor."""
    if not isinstance(data, T):
        return torch.autograd.Variable(data, requires_grad, volatile)
    with torch._C.DisableTorchFunction():
        made = calls(T.detach, (data,), {})
        if requires_grad:
            calls.leaves.begin(made)
        return made


def constant(calls: WriteCalls, value: T) -> TracedTensor:
    """Return a traced tensor of these values, made anew on each call."""
    with torch._C.DisableTorchFunction():
        return calls.wrap(opaque_call(Constant(value.detach().clone())))


@answers_each(*OF_ARRAYS)
def _made_of(function: Any, calls: WriteCalls, *args: Any, requires_grad: bool | None = None, **kwargs: Any) -> Any:
    data: Any = args[0] if args else kwargs.get("data", kwargs.get("obj"))
    if function is torch.asarray and isinstance(data, T):
        return _converted(calls, data, requires_grad, **kwargs)
    if not holds_of_numpy(data):
        with torch._C.DisableTorchFunctionSubclass():
            is_list = isinstance(data, (list, tuple))
            made = calls.record(torch.tensor if is_list and function is torch.as_tensor else function, args, kwargs)
    elif is_array(data) and (function is not torch.tensor or calls.arrays.may_change(data)):
        with torch._C.DisableTorchFunction():
            read = torch.from_numpy(data)
        read = calls.arrays.sharing(data, read)
        place = {k: kwargs[k] for k in ("dtype", "device") if kwargs.get(k) is not None}
        copies = function is torch.tensor or kwargs.get("copy") is True
        made = calls(T.to, (read,), {**place, "copy": copies})
    else:
        with torch._C.DisableTorchFunction():
            real = function(*args, **kwargs)
        made = constant(calls, real)
    if requires_grad:
        calls.leaves.begin(made)
    return made


def _converted(
    calls: WriteCalls, tensor: T, requires_grad: bool | None, obj: object = None, copy: bool | None = None, **place: Any
) -> Any:
    """Do what ``torch.asarray`` does of a tensor: what it returns requires gradients as it is told, a leaf itself."""
    place = {k: v for k, v in place.items() if v is not None}
    with torch._C.DisableTorchFunctionSubclass():
        if copy is not None and not copy:
            torch.asarray(torch.empty(0, dtype=tensor.dtype, device=tensor.device), copy=False, **place)  # or raises
        made = calls(T.to, (tensor,), {**place, "copy": True} if copy else place) if copy or place else tensor
        traced = calls.traced(made)
        if requires_grad is None and calls.requires_grad(traced):
            requires_grad = _follows_what_it_is_of()
        if requires_grad is not None and not requires_grad and not calls.leaves.is_leaf(traced):
            return calls(T.detach, (made,), {})
    return made if requires_grad is None else calls(T.requires_grad_, (made, requires_grad), {})


@cache
def _follows_what_it_is_of() -> bool:
    """Whether what ``torch.asarray`` returns requires gradients if its argument does, as it does since PyTorch 2.12."""
    return torch.asarray(torch.empty(0, requires_grad=True)).requires_grad


@answers(T.new_tensor)
def _new_tensor(calls: WriteCalls, tensor: T, data: object, requires_grad: bool = False, **kwargs: Any) -> Any:
    with torch._C.DisableTorchFunctionSubclass():
        if not holds_of_numpy(data):
            made = calls.record(T.new_tensor, (tensor, data), kwargs)
            if requires_grad:
                calls.leaves.begin(made)
            return made
        like = {"dtype": tensor.dtype, "device": tensor.device, "requires_grad": requires_grad}
    return calls(torch.tensor, (data,), like | {k: v for k, v in kwargs.items() if v is not None})
