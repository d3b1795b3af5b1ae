"""``torch.einsum`` of one tensor, all of whose dimensions it keeps: a view, made of diagonals and a permutation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

Labels = list[Any]


def rearranged(tensor: torch.Tensor, shape: Sequence[Any], equation: str, call: Callable[..., Any]) -> Any:
    """Return what ``torch.einsum`` makes of one tensor, as a view of it; ``None`` where that computes something.

    Args:
        tensor: the operand.
        shape: its own.
        equation: for one operand.
        call: ``(function, args, kwargs)``: calls one of PyTorch's functions.

    Example:
        >>> import torch
        >>> from thunder_tracing.tensors._einsum_views import rearranged
        >>> x = torch.arange(4).reshape(2, 2)
        >>> plainly = lambda function, args, kwargs: function(*args, **kwargs)
        >>> rearranged(x, x.shape, "ij -> ji", plainly).tolist(), rearranged(x, x.shape, "ii -> i", plainly).tolist()
        ([[0, 2], [1, 3]], [0, 3])
        >>> rearranged(x, x.shape, "ij -> i", plainly)
    """
    labels, wanted = _labels(equation, len(shape))
    if not labels or set(wanted) != set(labels) or len(set(wanted)) != len(wanted):
        return None
    for label in wanted:
        first, *others = [s for s, other in zip(shape, labels, strict=True) if other == label]
        if any([other != first for other in others]):
            return None
    for label in wanted:
        places = [i for i, other in enumerate(labels) if other == label]
        while len(places) > 1:
            first, second, *_ = places
            tensor = call(torch.Tensor.diagonal, (tensor, 0, first, second), {})
            labels = [other for i, other in enumerate(labels) if i not in (first, second)] + [label]
            places = [i for i, other in enumerate(labels) if other == label]
    return call(torch.Tensor.permute, (tensor, [labels.index(label) for label in wanted]), {})


def _labels(equation: str, dims: int) -> tuple[Labels, Labels]:
    """Return a label for each dimension of the operand and of the result; nothing if the equation is none for it."""
    given, arrow, result = equation.replace(" ", "").partition("->")
    hidden = list(range(dims - len(given.replace("...", ""))))
    labels = _expanded(given, hidden)
    if len(labels) != dims:
        return [], []
    if arrow:
        return labels, _expanded(result, hidden)
    return labels, hidden + sorted([label for label in given if label.isalpha() and given.count(label) == 1])


def _expanded(term: str, hidden: list[int]) -> Labels:
    """Return the labels of a term, those of an ellipsis as numbers."""
    before, dots, after = term.partition("...")
    letters = [*before, *after]
    return [*before, *(hidden if dots else []), *after] if all([x.isalpha() for x in letters]) else []
