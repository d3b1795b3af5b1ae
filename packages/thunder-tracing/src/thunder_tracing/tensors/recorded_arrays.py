"""How calls with arrays that only the run of the program brings are recorded, by what NumPy makes of examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from thunder_guards.errors import DataDependentError
from thunder_guards.kinds import NumPyScalar, is_array, is_value
from thunder_ir import FloatProxy, IntegerProxy, NumberProxy, is_unknown, map_values, values_in
from thunder_torch import opaque_call
from thunder_torch.opaque import call_of
from thunder_tracing.bailouts import TAGS
from thunder_tracing.tensors._handlers import answers
from thunder_tracing.tensors.array_calls import (
    DynamicArrayError,
    OnArrays,
    ReadOnlyError,
    Written,
    as_tensor,
    numpy,
    on_arrays,
)
from thunder_tracing.tensors.calls import Calls
from thunder_tracing.tensors.known_values import ValueSpecialisation
from thunder_tracing.tensors.run_arrays import RunArray, run_arrays_in
from thunder_tracing.tensors.sizes import fixed
from thunder_tracing.tensors.write_calls import WriteCalls

T = torch.Tensor
NATIVE: Any = T
OF_ELEMENTS = frozenset("add sub mul truediv floordiv mod pow eq ne lt le gt ge and_ or_ xor lshift rshift".split())
"""Operators of arrays: the shape of what they return does not follow from integers."""
EXAMPLES = 2
"""How many examples there are of each: where they are not alike, what comes of them is not known."""


@answers(on_arrays)
def _on_arrays(calls: Calls, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    calls.changes += 1  # a module that does the same may be given others
    of_elements = isinstance(function, numpy().ufunc) or getattr(function, "__name__", "") in OF_ELEMENTS
    keeps = of_elements and not any([type(v) is not RunArray and is_array(v) for v in values_in((args, kwargs))])
    given: tuple[Any, Any] = map_values(partial(_settled, keeps_integers=keeps), (args, kwargs))
    try:
        made = _examples(function, *given)
    except ReadOnlyError as refused:
        return _write(calls, function, args, kwargs, refused)
    for one in run_arrays_in(given):
        if not one.is_scalar and is_array(made[0]) and numpy().may_share_memory(one.example, made[0]):
            return _view(calls, one.root, made)
    return _computed(calls, function, given, made)


@answers(T.numpy)
def _of_tensor(calls: WriteCalls, tensor: T, *, force: bool = False) -> Any:
    """Return what stands for the array that shares the memory of a tensor.

    Raises:
        DataDependentError: of a tensor of which the sizes or the layout are not those of each call.
    """
    known = calls.known_of_inputs(tensor) if calls.specialised_on is ValueSpecialisation.ALL else None
    if known is not None:
        return known.numpy(force=force)
    calls.changes += 1  # a module that does the same may be given others
    if force:
        for function in (T.detach, T.cpu, T.resolve_conj, T.resolve_neg):
            tensor = calls(function, (tensor,), {})
    traced = calls.traced(tensor)
    shape = calls.value(traced).shape
    if calls.levels.stack:
        raise DataDependentError("an array of NumPy is made of a tensor that torch.func transforms")
    if any([isinstance(size, NumberProxy) for size in shape]):
        raise DynamicArrayError("an array of NumPy is made of a tensor of which the sizes are dynamic")
    strides = calls(T.stride, (tensor,), {})
    if any([step == 0 and size > 1 for step, size in zip(strides, shape, strict=True)]):
        raise DataDependentError("an array of NumPy is made of a tensor whose elements lie in one place")
    with torch._C.DisableTorchFunction():
        fake = calls.layouts.fake(traced)
        like = torch.empty_strided([fixed(size) for size in shape], strides, dtype=fake.dtype, device=fake.device)
        like = torch._neg_view(like) if fake.is_neg() else like.conj() if fake.is_conj() else like
        like.requires_grad_(calls.requires_grad(traced)).numpy()  # which raises what it raises in eager
        examples = tuple([_filled(like, mixed).numpy() for mixed in (False, True)])
        return RunArray(calls, calls(NATIVE.data.__get__, (tensor,), {}), examples)


def _filled(like: T, mixed: bool) -> T:
    """Return a tensor that lies in memory as another does.

    Args:
        like: the other.
        mixed: whether some elements are negative, or some integers are not zero: shapes that follow from values differ.
    """
    size = like.numel()
    chosen = torch.arange(size) % 2 == 0 if mixed else torch.zeros(size, dtype=torch.bool)
    if like.dtype.is_floating_point or like.dtype.is_complex:
        values = torch.randn(size, generator=torch.Generator().manual_seed(0), dtype=torch.float64).abs()
        chosen = torch.where(chosen, -values, values)
    made = torch.empty_strided(like.shape, like.stride(), dtype=like.dtype)
    return made.copy_(chosen.view(like.shape))


def _computed(calls: Calls, function: Any, given: tuple[Any, Any], examples: tuple[Any, ...]) -> Any:
    """Record a call, of which what it returns is not part of what it is given."""
    scalars = [v for v in values_in(given) if isinstance(v, (RunArray, NumberProxy))]
    call, values = call_of(function, *map_values(lambda v: calls.value(v.tensor) if type(v) is RunArray else v, given))
    kinds = tuple([type(v) is RunArray and v.is_scalar for v in scalars])
    return recorded(calls, OnArrays(call, kinds, examples[0]), values, examples)


def _write(calls: Calls, function: Any, args: Any, kwargs: Any, refused: ReadOnlyError) -> Any:
    """Record a call that writes to one of the arrays that it is given; return what it returns.

    Raises:
        DataDependentError: it writes to what a program cannot write to, or returns something else besides.
    """
    given: tuple[Any, Any] = map_values(_settled, (args, kwargs))
    for place, owner in [*enumerate(args), *kwargs.items()]:
        if type(owner) is RunArray and not owner.is_scalar or is_array(owner):
            written = Written(function, place)
            try:
                found = _examples(written.run, *given)
            except ReadOnlyError:
                continue
            if type(owner) is not RunArray:
                calls.arrays.is_of_the_run(owner)
                break
            copies, returned = zip(*found, strict=True)
            made = _computed(calls, written, given, copies)
            itself = returned[0] is copies[0]
            alike = made.example.dtype == owner.example.dtype and made.example.shape == owner.example.shape
            spread = 0 in owner.example.strides  # to which NumPy does not write, either
            if not alike or spread or not itself and returned[0] is not None:
                break
            calls(T.copy_, (owner.tensor, made.tensor), {})
            for example, now in zip(owner._examples, made._examples, strict=True):
                example[...] = now
            return owner if itself else None
    raise refused


def recorded(calls: Calls, call: Any, values: Sequence[Any], examples: tuple[Any, ...]) -> Any:
    """Record a call that brings an array, a scalar or a number; return what stands for it.

    Args:
        calls: the acquisition.
        call: what is called.
        values: it is given when it runs.
        examples: of what it may return.

    Raises:
        DataDependentError: they are not alike.
    """
    try:
        with torch._C.DisableTorchFunction():
            tensors = [as_tensor(e) for e in examples]
            alike = {(type(e), t.shape, t.dtype, t.stride()) for e, t in zip(examples, tensors, strict=True)}
    except (TypeError, ValueError) as error:
        raise DataDependentError(f"only the run of the program brings what no tensor holds: {error}") from error
    if (
        len(alike) > 1
        or not isinstance(examples[0], (bool, int, float, NumPyScalar))
        and type(examples[0]) is not numpy().ndarray
    ):
        raise DataDependentError(
            "NumPy computes of numbers that only the run of the program brings what is another kind of value, or of "
            "another shape, for others"
        )
    with torch._C.DisableTorchFunction(), calls.builder.tagged(*TAGS):
        tensor = calls.wrap(opaque_call(call, *values))
    made = RunArray(calls, tensor, tuple([e.copy("K") if is_array(e) else e for e in examples]))
    return made.number() if type(examples[0]) in (bool, int, float) else made


def _settled(value: Any, keeps_integers: bool = False) -> Any:
    """Return what a call may be given that is recorded; integers are fixed where a shape may follow from them."""
    if type(value) is RunArray or isinstance(value, FloatProxy) and value.value is not None:
        return value
    if keeps_integers and isinstance(value, IntegerProxy) and not is_unknown(value):
        return value
    if isinstance(value, NumberProxy):
        if is_unknown(value):
            raise DataDependentError("NumPy is given a number that only the run of the program tells")
        return fixed(value)
    if type(value) is numpy().ndarray:
        return value.copy("K")
    if value is None or is_value(value) or isinstance(value, (type, numpy().dtype)):
        return value
    raise DataDependentError(
        f"NumPy is given a {type(value).__name__} beside numbers that only the run of the program brings"
    )


def _examples(function: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Any, ...]:
    return tuple([_example(function, args, kwargs, index) for index in range(EXAMPLES)])


def _example(function: Callable[..., Any], args: Any, kwargs: Any, index: int) -> Any:
    """Return what a function returns for one of the examples of what it is given, none of which it may write to."""

    def given(value: Any) -> Any:
        if type(value) is RunArray:
            value = value._examples[index]
        if is_array(value):
            value = value.view()
            value.flags.writeable = False
        return value.value if isinstance(value, NumberProxy) else value

    args, kwargs = map_values(given, (args, kwargs))
    try:
        with numpy().errstate(all="ignore"):
            return function(*args, **kwargs)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        kind = ReadOnlyError if "read-only" in str(error) else DataDependentError
        raise kind(f"NumPy may refuse what only the run of the program brings: {error}") from error


def _view(calls: Calls, root: RunArray, made: tuple[Any, ...]) -> Any:
    """Return what stands for a view of an array."""
    first, size = made[0], root.example.itemsize
    bounds = {_place(m, r) for m, r in zip(made, root._examples, strict=True)}
    shape, dtype, strides, offset = bounds.pop()
    in_order = root.example.flags.forc and all([s >= 0 and s % size == 0 for s in (*strides, offset)])
    if bounds or dtype != root.example.dtype or not in_order or type(first) is not numpy().ndarray:
        raise DataDependentError("the program views an array that only its run brings in a way that tensors cannot")
    begin = calls(T.storage_offset, (root.tensor,), {})
    place = (shape, tuple([s // size for s in strides]), begin + offset // size)
    examples = [numpy().ndarray(shape, dtype, r.ravel("K"), offset, strides) for r in root._examples]
    return RunArray(calls, calls(torch.as_strided, (root.tensor, *place), {}), tuple(examples), root)


def _place(view: Any, root: Any) -> tuple[Any, ...]:
    offset = view.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    return view.shape, view.dtype, view.strides, offset
