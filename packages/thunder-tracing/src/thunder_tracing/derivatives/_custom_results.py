"""Results of custom functions that share memory, with what the functions got, or with each other."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

import torch

from thunder_guards.errors import AcquisitionError
from thunder_ir import TensorProxy
from thunder_tracing.tensors.storage import View, share_storage
from thunder_tracing.tensors.traced_tensor import TracedTensor

T = torch.Tensor


def viewed_by_several(results: Iterable[object], known: Iterable[TracedTensor]) -> list[TracedTensor]:
    """Return the tensors that several results are views of, and which nothing knows otherwise.

    Args:
        results: of a function, as its ``forward`` returned them.
        known: what it was given.
    """
    tensors = [r for r in results if isinstance(r, TracedTensor)]
    ends = {id(t) for t in (*tensors, *known)}
    found: dict[int, list[TracedTensor]] = {}
    for tensor in tensors:
        end = way_to(tensor, ends)[0]
        found.setdefault(id(end), []).append(end)
    return [same[0] for i, same in found.items() if len(same) > 1 and i not in ends and same[0].source is None]


def way_to(tensor: TracedTensor, ends: Collection[int]) -> tuple[TracedTensor, list[View]]:
    """Return the first of some tensors that another is a view of, or what has no parent, and the views on the way.

    Args:
        tensor: the other.
        ends: identities of the tensors. The tensor itself counts only if it is no view.
    """
    views: list[View] = []
    while tensor._viewed_as is not None and not (views and id(tensor) in ends):
        views.insert(0, tensor._viewed_as)
        tensor = tensor._viewed_as.parent
    return tensor, views


def share(
    new: Callable[[TensorProxy], TracedTensor],
    result: TracedTensor,
    made: TracedTensor,
    outside: Mapping[int, TracedTensor],
    place: int,
    name: str,
    constant: bool,
) -> None:
    """Let what the caller gets for a result share memory as the result does.

    Autograd takes it for a view by the functions that ``forward`` called, and does not write its history again, which
    is the custom function's.

    Args:
        new: makes a traced tensor.
        result: what ``forward`` returned.
        made: what the caller gets for it, with memory of its own so far.
        outside: what tensors inside of the function are to the caller, by identity.
        place: which result it is.
        name: of the function.
        constant: whether the result has no derivative.

    Raises:
        AcquisitionError: it is a tensor from outside that the function was not given.
    """
    end, views = way_to(result, outside)
    parent = outside.get(id(end), end if end.source is not None else None)
    if parent is None or parent is made:
        return
    if not views and parent is end and not constant:
        raise AcquisitionError(
            f"{name} returns {end.source}, which it was not given and which autograd would change; return a clone()"
        )
    if not views and constant:
        views = [View(parent, T.detach, (), {}, None)]
    elif not views:
        views = [View(parent, T.__getitem__, (...,), {}, None)]
    apart = any([view.cuts for view in views])
    for view, following in itertools.pairwise(views):
        step = new(following.parent._proxy)
        share_storage(step, replace(view, parent=parent, tracked=False))
        step._seen = -1  # computed again if user code asks for it: nothing else has what forward drew
        parent = step
    fixed = None if apart or constant else f"Output {place} of {name} is a view"
    share_storage(made, replace(views[-1], parent=parent, tracked=False, apart=apart, fixed=fixed))
