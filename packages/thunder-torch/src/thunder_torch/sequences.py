"""Recurrent layers: metadata of long sequences follow from those of short ones, as PyTorch's fakes run each step."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from thunder_ir import TensorProxy
from thunder_torch.convert import contiguous_strides
from thunder_torch.marked_sizes import LEAST, Merged, primes
from thunder_torch.specs import tensors_of
from thunder_torch.traits import Trait, has_trait

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
