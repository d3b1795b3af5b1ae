"""Recurrent layers: metadata of long sequences follow from those of short ones, as PyTorch's fakes run each step."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch

from thunder_ir import IntegerProxy, TensorProxy, Unknown
from thunder_torch.convert import contiguous_strides
from thunder_torch.marked_sizes import LEAST, Merged, primes
from thunder_torch.specs import TensorSpec, map_tensors, tensors_of
from thunder_torch.traits import Trait, has_trait
from thunder_torch.unknown_sizes import TYPICAL

BATCH_FIRST = 8
"""The place of the argument that says where the length is."""


def length_of(function: Callable[..., Any], args: tuple[Any, ...]) -> int | None:
    """Return the dimension of the first argument that is the length of sequences, or ``None`` if there is none.

    Args:
        function: any.
        args: all of its arguments; packed sequences have their batch sizes for the second one.
    """
    if len(args) <= BATCH_FIRST or not isinstance(args[2], (tuple, list)) or not has_trait(function, Trait.RECURRENT):
        return None
    sequence = args[0]
    if not isinstance(sequence, TensorProxy) or len(sequence.shape) != 3:
        return None
    return int(bool(args[BATCH_FIRST]))


def with_few_steps(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments of a call, with short sequences where it is one of a recurrent layer."""
    dim = length_of(function, args)
    return args if dim is None else _with_length(args, dim, LEAST)


def _with_length(args: tuple[Any, ...], dim: int, length: int) -> tuple[Any, ...]:
    """Return the arguments of a recurrent layer for contiguous sequences of another length."""
    sequence = args[0]
    shape = (*sequence.shape[:dim], length, *sequence.shape[dim + 1 :])
    strides = None if sequence.strides is None else contiguous_strides(shape)
    return (TensorProxy(shape, sequence.dtype, sequence.device, sequence.requires_grad, strides), *args[1:])


def with_one_step(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return the arguments of a call for sequences of one step where a recurrent layer is given packed ones.

    PyTorch's fakes would read how many sequences there are at each step. What is told of one step differs in the first
    result alone, which has as many rows as were packed.
    """
    if len(args) <= BATCH_FIRST or not isinstance(args[3], (tuple, list)) or not has_trait(function, Trait.RECURRENT):
        return None
    data, _, hidden, *rest = args
    given = tensors_of((data, hidden), {})
    if not all([isinstance(t, TensorProxy) for t in given]) or [len(t.shape) for t in given] != [
        2,
        *[3] * len(given[1:]),
    ]:
        return None
    batch = given[1].shape[1]
    hidden = map_tensors(lambda t: t.like(shape=(t.shape[0], batch, t.shape[2])), hidden)  # of one, or PyTorch raises
    return (data.like(shape=(1, batch, data.shape[1])), hidden, *rest, False)


def with_rows(spec: Any, data: TensorProxy) -> Any:
    """Return what a recurrent layer returns for packed sequences, by what it returns for one step."""
    first, *others = spec
    rows, width = data.shape[0], first.shape[2]
    packed = first._replace(shape=(rows, width), strides=(width, 1), has_unknown=rows.__class__ is not int)
    return spec.__class__((packed, *others))


def padded(data: TensorProxy, batch_sizes: TensorProxy, batch_first: bool, _: float, steps: Any) -> Any:
    """Return the specification of what padding packed sequences returns, of which the first batch size tells how many.

    PyTorch reads it where it is asked for metadata.
    """
    count = IntegerProxy(TYPICAL, "", Unknown("how many sequences were packed", 0))
    shape = ((count, steps) if batch_first else (steps, count)) + tuple(data.shape[1:])
    connected = data.requires_grad and torch.is_grad_enabled()
    rows = TensorSpec(shape, data.dtype, data.device, connected, None, None, None, True)
    return rows, TensorSpec((count,), batch_sizes.dtype, batch_sizes.device, False, (1,), None, None, True)


def told_by_fewer_steps(tell: Callable[..., Any], function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Return the specification of a recurrent layer's result, by those for two small lengths that stand out.

    Args:
        tell: returns the specification for such arguments.
        function, args: of the call, whose sizes are known.

    Returns:
        ``None`` if it is none, if sequences are short, or if that fails: what is to be said then is better known for
        the sequences that are given.
    """
    dim = length_of(function, args)
    if dim is None:
        return None
    length = args[0].shape[dim]
    few = list(itertools.islice(primes([d for t in tensors_of(args[1:], {}) for d in t.shape if d]), 2))
    if length.__class__ is not int or length <= sum(few):
        return None
    try:
        first, second = [tell(_with_length(args, dim, n)) for n in few]
        return Merged({"length": length}, {"length": few[0]}, {"length": few[1]}).merged(first, second)
    except Exception:  # PyTorch's own refusal, or what is no product: asked again for what is given
        return None
