"""The inverse of each view: from a parent's value and a view's new value to the parent's new value."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from thunder_guards.errors import AcquisitionError
from thunder_guards.memory import is_dense, part_of
from thunder_ir import TensorProxy, flat_proxies
from thunder_torch import DataDependentShapeError
from thunder_torch.inplace import OutOfPlace
from thunder_torch.names import name_of
from thunder_torch.places import setitem
from thunder_torch.traits import Trait, state
from thunder_tracing.tensors.storage import View, ViewStep

Call = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], TensorProxy]
Inverse = Callable[[Call, View, TensorProxy, TensorProxy], TensorProxy]
INVERSES: dict[Any, Inverse] = {}


def inverse_of(*functions: Any) -> Callable[[Inverse], Inverse]:
    """File the decorated function as the inverse of these views."""

    def register(inverse: Inverse) -> Inverse:
        for function in functions:
            INVERSES[function] = inverse
        return inverse

    return register


def scatter_into_parent(call: Call, view: View, parent: TensorProxy, value: TensorProxy) -> TensorProxy:
    """Return the parent's value after ``value`` was written to its view."""
    if isinstance(view.function, Chain):
        return call(placed, (parent, value, view.function), {})
    return INVERSES.get(view.function, _by_position)(call, view, parent, value)


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """Several views, one of the other, as one function.

    Args:
        steps: from the tensor to the last of them.
    """

    steps: tuple[ViewStep, ...]

    @property
    def __name__(self) -> str:
        return "views"

    def __call__(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the last view."""
        return functools.reduce(lambda viewed, step: step(viewed), self.steps, tensor)


def placed(parent: torch.Tensor, value: torch.Tensor, chain: Chain) -> torch.Tensor:
    """Return what ``parent`` holds after ``value`` was written to a view in which each element lies apart."""
    numbers = torch.arange(parent.numel(), device=parent.device).view(parent.shape)
    places = chain(torch.empty_like(parent, dtype=torch.int64).copy_(numbers))  # laid out alike, for views by strides
    written = parent.reshape(-1).scatter(0, places.reshape(-1), value.reshape(-1))
    return written.view(parent.shape)


NATIVE: Any = torch.Tensor


@inverse_of(
    torch.Tensor.view, torch.Tensor.reshape, torch.reshape, torch.Tensor.flatten, torch.flatten, torch.Tensor.unflatten,
    torch.unflatten, torch.Tensor.squeeze, torch.squeeze, torch.Tensor.unsqueeze, torch.unsqueeze, torch.Tensor.view_as,
    torch.Tensor.reshape_as, torch.Tensor.ravel, torch.ravel, torch.Tensor.detach, torch.detach,
    NATIVE.data.__get__, torch.Tensor.contiguous, NATIVE.alias if hasattr(torch.Tensor, "alias") else None,
)  # fmt: skip
def _reshaped(call: Call, view: View, parent: TensorProxy, value: TensorProxy) -> TensorProxy:
    if value.dtype is not parent.dtype:  # a view of other elements
        return _by_position(call, view, parent, value)
    if value.shape == parent.shape:
        return value
    return call(torch.Tensor.reshape, (value, tuple(parent.shape)), {})


@inverse_of(torch.Tensor.as_strided, torch.as_strided)
def _strided(call: Call, view: View, parent: TensorProxy, value: TensorProxy) -> TensorProxy:
    if view.parent._viewed_as is not None:
        raise AcquisitionError(
            "a write through as_strided() of a view, of a tensor that is not contiguous, is not supported; "
            "use as_strided() of the whole tensor, or indexing"
        )
    return _by_position(call, view, parent, value)


SEVERAL_IN_ONE_PLACE = (
    "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
    "Please clone() the tensor before performing the operation."
)
"""What PyTorch says of a write to an expanded tensor."""

TOLERANT = frozenset({
    setitem, torch.zeros_like, torch.full_like, torch.Tensor.index_put, torch.Tensor.index_fill, torch.Tensor.index_add,
    torch.Tensor.index_copy, torch.Tensor.masked_fill, torch.Tensor.scatter, torch.Tensor.tril, torch.Tensor.triu,
    OutOfPlace(torch.Tensor.fill_diagonal_),
})  # fmt: skip
"""Functions whose in-place forms PyTorch does not refuse to call on an expanded tensor, or not always."""


def overlaps(held: TensorProxy) -> bool:
    """Whether several elements of a tensor lie in one place."""
    strides = held.strides
    still = [step.__class__ is int and step == 0 for step in strides or ()]  # other steps are products of sizes
    if not any(still) or 0 in held.shape:
        return False
    return any(same and length > 1 for length, same in zip(held.shape, still, strict=True))


def check_overlap(held: TensorProxy) -> None:
    """Refuse, as PyTorch does, a write to a tensor in which several elements lie in one place."""
    if overlaps(held):
        raise RuntimeError(SEVERAL_IN_ONE_PLACE)


OVERLAPPING = frozenset({torch.Tensor.unfold, torch.Tensor.as_strided, torch.as_strided, part_of})
"""Views in which several elements may lie in one place though no stride is 0."""


def check_laid_apart(shape: Any, strides: Any) -> None:
    """Refuse a write to a tensor in which several elements lie in one place though no stride is 0.

    PyTorch lets everyone of them be written, in no particular order.
    """
    reach = 0
    for step, length in sorted(zip(strides, shape, strict=True)):
        if length > 1 and step <= reach:
            raise AcquisitionError(
                "a write to a view in which several elements lie in one place is not supported; write to a clone()"
            )
        reach += step * (length - 1)


@inverse_of(torch.Tensor.unfold)
def _windows(call: Call, view: View, parent: TensorProxy, value: TensorProxy) -> TensorProxy:
    _, size, step = (*view.args, *[view.kwargs[name] for name in ("size", "step") if name in view.kwargs])[-3:]
    check_laid_apart((2, size), (step, 1))
    return _by_position(call, view, parent, value)


@inverse_of(part_of)
def _part(call: Call, view: View, parent: TensorProxy, value: TensorProxy) -> TensorProxy:
    check_laid_apart(view.args[0], view.args[1])
    return _by_position(call, view, parent, value)


APART = frozenset({
    torch.Tensor.index_add, torch.Tensor.index_copy, torch.Tensor.index_put, torch.Tensor.index_reduce,
    torch.Tensor.scatter, torch.Tensor.scatter_add, torch.Tensor.scatter_reduce, torch.Tensor.put,
    torch.gather, torch.take, torch.index_select, torch.index_add, torch.index_copy, torch.scatter, torch.scatter_add,
})  # fmt: skip
"""Functions that may read nothing of what they write to; others may, if it is all of it."""


def overlap_wrongly(written: torch.Tensor, read: torch.Tensor, apart: bool) -> bool:
    """Whether PyTorch finds that two tensors of one memory share some of their elements, but not all in order.

    Args:
        written, read: the tensors.
        apart: whether they may not share all in order, either.
    """
    if not written.numel() or not read.numel() or not (is_dense(written) and is_dense(read)):
        return False
    (a, b), (c, d) = [(t.storage_offset(), t.storage_offset() + t.numel()) for t in (written, read)]
    if (a, b) == (c, d):
        return apart or written.stride() != read.stride()
    return a < d and c < b


EXPANDING = frozenset({torch.Tensor.expand, torch.Tensor.broadcast_to, torch.broadcast_to})


@inverse_of(*EXPANDING)
def _expanded(call: Call, view: View, parent: TensorProxy, value: TensorProxy) -> TensorProxy:
    if value.numel == parent.numel:
        return value if value.shape == parent.shape else call(torch.Tensor.reshape, (value, tuple(parent.shape)), {})
    raise AcquisitionError(
        "a write to a part of an expanded tensor that is not contiguous is not supported; "
        "write to the tensor that was expanded, or to a clone()"
    )


@inverse_of(torch.Tensor.select, torch.select)
def _selected(call: Call, view: View, parent: TensorProxy, value: TensorProxy) -> TensorProxy:
    return call(torch.select_scatter, (parent, value, *view.args), view.kwargs)


@inverse_of(torch.Tensor.diagonal, torch.diagonal)
def _diagonal(call: Call, view: View, parent: TensorProxy, value: TensorProxy) -> TensorProxy:
    return call(torch.diagonal_scatter, (parent, value, *view.args), view.kwargs)


@inverse_of(torch.Tensor.__getitem__)
def _indexed(call: Call, view: View, parent: TensorProxy, value: TensorProxy) -> TensorProxy:
    if flat_proxies((view.args, view.kwargs)) and view.index is None:  # a place that is known when the program runs
        return call(setitem, (parent, *view.args, value), view.kwargs)
    return _by_position(call, view, parent, value)


def replaced_view(
    parent: torch.Tensor,
    value: torch.Tensor,
    function: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    index: object,
) -> torch.Tensor:
    """Return a copy of ``parent`` in which the view that ``function`` makes of it holds ``value``."""
    copy = parent.clone()
    view = function(copy, *args, **kwargs)
    if index is not None:  # autograd lets nobody write to one of several views, but to one made alone
        view = copy.as_strided(view[index].shape, view[index].stride(), view[index].storage_offset())
    view.copy_(value)
    return copy


def laid_out(tensor: torch.Tensor, strides: tuple[int, ...]) -> torch.Tensor:
    """Return a copy with these strides."""
    made = torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype, device=tensor.device)
    once = tuple([slice(0, 1) if step == 0 else slice(None) for step in strides])  # each place in memory
    made[once].copy_(tensor[once])
    return made


state(Chain, laid_out, placed, replaced_view, traits=(Trait.TOTAL,))


def _by_position(call: Call, view: View, parent: TensorProxy, value: TensorProxy) -> TensorProxy:
    """Any view: the program writes to that view of a copy of the parent, which keeps its layout."""
    args = (parent, value, view.function, view.args, view.kwargs, view.index)
    try:
        return call(replaced_view, args, {})
    except DataDependentShapeError as error:
        raise AcquisitionError(
            f"a write through a part of a tensor that {name_of(view.function)}() makes, and whose place only values "
            "tell, is not supported; write through an index, as in x[:n], or to a clone()"
        ) from error
