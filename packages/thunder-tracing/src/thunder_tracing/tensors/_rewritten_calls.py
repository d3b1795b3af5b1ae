"""Torch functions whose calls are done as those of others, or in another form, which say the same in usual terms."""

from __future__ import annotations

from typing import Any

import torch

from thunder_guards.errors import AcquisitionError
from thunder_guards.kinds import HEAP_TYPE
from thunder_ir import BoolProxy, IntegerProxy, NumberProxy, Proxy, is_unknown
from thunder_ir.trees import flatten, unflatten
from thunder_torch.convert import to_torch_device, to_torch_dtype
from thunder_torch.deprecated_signatures import DEPRECATED, in_current_form
from thunder_torch.places import is_place
from thunder_tracing.tensors._handlers import answers_each
from thunder_tracing.tensors.calls import Calls
from thunder_tracing.tensors.run_arrays import RunArray
from thunder_tracing.tensors.sizes import SymbolicSize
from thunder_tracing.tensors.symbolic_numbers import with_numbers

T = torch.Tensor


@answers_each(T.view_as, T.reshape_as, T.expand_as)
def _of_shape(method: Any, calls: Calls, *args: Any, **kwargs: Any) -> Any:
    """Of the other tensor they read its shape and nothing else."""
    if len(args) == 2 and isinstance(args[1], T):
        view = getattr(T, method.__name__.removesuffix("_as"))
        return calls.write_or_record(view, (args[0], tuple(calls.value(args[1]).shape)), kwargs)
    return calls.write_or_record(method, args, kwargs)


@answers_each(T.to, T.type_as)
def _of_kind(method: Any, calls: Calls, *args: Any, **kwargs: Any) -> Any:
    if len(args) < 2 or not isinstance(args[1], T):
        return calls.write_or_record(method, args, kwargs)
    model = calls.value(args[1])
    kind = to_torch_device(model.device), to_torch_dtype(model.dtype)
    return calls.write_or_record(T.to, (args[0], *kind, *args[2:]), kwargs)


@answers_each(T.new)
def _new(method: Any, calls: Calls, tensor: T, *given: Any, **kwargs: Any) -> Any:
    """A tensor of a size, which PyTorch takes for the elements of one where it is any other tuple."""
    is_size = len(given) == 1 and isinstance(given[0], (torch.Size, SymbolicSize))
    return calls.write_or_record(T.new_empty if is_size else method, (tensor, *given), kwargs)


@answers_each(T.select, torch.select)
def _selected(function: Any, calls: Calls, *args: Any, **kwargs: Any) -> Any:
    """What selects by a tensor that is no number is an index."""
    args, kwargs = with_numbers(function, args, kwargs, calls.number_of)
    if any([isinstance(a, T) for a in (*args[1:], *kwargs.values())]):
        return calls.write_or_record(T.__getitem__, _key_of_select(calls, *args, **kwargs), {})
    return calls.write_or_record(function, args, kwargs)


def _key_of_select(calls: Calls, input: Any, dim: int, index: Any) -> tuple[Any, Any]:
    return input, (*[slice(None)] * (dim % max(calls.traced(input).ndim, 1)), index)


@answers_each(*DEPRECATED)
def _in_old_form(function: Any, calls: Calls, *args: Any, **kwargs: Any) -> Any:
    args, kwargs = in_current_form(function, args, kwargs)
    return calls.write_or_record(function, args, kwargs)


@answers_each(T.__getitem__, T.__setitem__)
def _indexed(method: Any, calls: Calls, tensor: T, *rest: Any) -> Any:
    """The index may hold arrays, sequences of tensors, and objects that stand for integers."""
    rest = (_joined(calls, _counted(calls, calls.arrays.as_index(rest[0]))), *rest[1:]) if rest else rest
    if len(rest) == 2 and all([isinstance(r, T) for r in rest]):
        mask, value = map(calls.value, rest)
        if mask.ndim == 0 and mask.dtype.is_bool and any(map(is_unknown, value.shape)):  # PyTorch would look at these
            return calls(
                method, (calls(T.unsqueeze, (tensor, 0), {}), calls(T.unsqueeze, (rest[0], 0), {}), rest[1]), {}
            )
    return calls.write_or_record(method, (tensor, *rest), {})


def _counted(calls: Calls, key: Any) -> Any:
    """Return an index with integers in the place of objects, which are seen to say what integers they stand for."""
    if isinstance(key, tuple):
        return tuple([_counted(calls, part) for part in key])
    cls = type(key)
    if not (cls.__flags__ & HEAP_TYPE and hasattr(cls, "__index__")) or isinstance(key, KNOWN_INDICES):
        return key
    if hasattr(cls, "__getitem__"):
        raise AcquisitionError(
            f"an index is a {cls.__qualname__}, which is both an integer and a sequence; make it the one that is meant"
        )
    return calls.interpreted(cls.__index__)(key)


KNOWN_INDICES = (int, T, Proxy, RunArray, torch.SymInt, torch._C.ScriptObject)
"""What stands for a value of the program, or was asked already."""


def _joined(calls: Calls, key: Any) -> Any:
    """Return an index with one tensor in the place of a sequence that holds tensors of one integer each, or numbers."""
    if isinstance(key, list) and _holds_numbers(key):
        return calls(torch.tensor, (key,), {})
    if not isinstance(key, (list, tuple)) or not any([isinstance(part, (list, tuple)) for part in key]):
        return key
    parts = [_joined_part(calls, part) if isinstance(part, (list, tuple)) else part for part in key]
    return parts if isinstance(key, list) else tuple(parts)


def _holds_numbers(items: list[Any]) -> bool:
    """Whether integers of an index are left open, and none is a tensor or one of a mask."""
    integers = all([isinstance(i, (int, IntegerProxy)) and not isinstance(i, (bool, BoolProxy)) for i in items])
    return integers and any([isinstance(i, IntegerProxy) for i in items])


def _joined_part(calls: Calls, part: Any) -> Any:
    leaves, structure = flatten(part)
    if _holds_numbers(leaves):
        return calls(torch.tensor, (part,), {})
    places = [calls.value(leaf) for leaf in leaves if isinstance(leaf, T)]
    numbers = [leaf for leaf in leaves if isinstance(leaf, (int, NumberProxy))]
    if not places or not all(map(is_place, places)) or len(places) + len(numbers) < len(leaves):
        return part
    with torch._C.DisableTorchFunction():
        shape = torch.tensor(unflatten(structure, [0] * len(leaves))).shape
    full = {"dtype": torch.int64, "device": to_torch_device(places[0].device)}
    integers = [
        calls(T.long, (leaf,), {}) if isinstance(leaf, T) else calls(torch.full, ((), leaf), full) for leaf in leaves
    ]
    return calls(torch.reshape, (calls(torch.stack, (integers,), {}), tuple(shape)), {})


@answers_each(torch.atleast_1d, torch.atleast_2d, torch.atleast_3d)
def _each(function: Any, calls: Calls, *tensors: Any) -> Any:
    """Of several tensors each becomes a view of its own."""
    several = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    if several is tensors and len(tensors) == 1:
        return calls.write_or_record(function, tensors, {})
    return tuple([calls.write_or_record(function, (tensor,), {}) for tensor in several])
