"""Results of a call that share nothing a derivative goes through: they are differentiated one after the other.

PyTorch frees what a node saved once the node has run. Eager's operations have a node each, so that a gradient of one
result leaves alone what only other results need; all results of a compiled call have one node.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from torch import Tensor

from thunder_autograd import ACCUMULATES, Joint
from thunder_ir import Trace
from thunder_torch.saved_apart import check_unchanged

Flags = tuple[bool, ...]


def independent_groups(joint: Trace) -> tuple[int, ...]:
    """Return the group of each differentiable result; a derivative goes through no value that two groups share.

    Inputs do not count, nor what only sums of gradients belong to.

    Args:
        joint: a joint program.

    Example:
        >>> from thunder_autograd import forward_and_backward
        >>> from thunder_ir import Tensor, trace_of
        >>> from thunder_prims import exp, mul, sin
        >>> from thunder_torch.independent_results import independent_groups
        >>> def program(x, y):
        ...     h = sin(x)
        ...     return exp(h), exp(y), mul(h, h), sin(x)
        >>> trace = trace_of(program, Tensor((2,), requires_grad=True), Tensor((2,), requires_grad=True))
        >>> independent_groups(forward_and_backward(trace).joint)
        (0, 1, 0, 3)
    """
    parts = Joint.of(joint)
    groups = list(range(len(parts.cotangents)))
    reaching = {p.name: frozenset({i}) for i, p in enumerate(parts.cotangents)}
    for bound in parts.pulled:
        read = frozenset[int]().union(*[reaching.get(p.name, ()) for p in bound.inputs])
        if len(read) > 1 and ACCUMULATES not in bound.tags:
            joined = {groups[i] for i in read}
            groups = [min(joined) if g in joined else g for g in groups]
        reaching.update([(p.name, read) for p in bound.outputs])
    return tuple(groups)


def untouched(groups: Sequence[int], present: Sequence[bool]) -> Flags:
    """Return for each result whether it is in a group of which no result has a cotangent.

    Args:
        groups: of the results.
        present: for each of them, whether it has a cotangent.
    """
    touched = {g for g, there in zip(groups, present, strict=True) if there}
    return tuple([g not in touched for g in groups])


class SavedForOthers:
    """What a call saved, once its node has run for some results, for others that are independent of these.

    Args:
        tensors: what it saved.
        reads: the places of what the others read.
        results: for each differentiable result, whether it is one of the others.
    """

    def __init__(self, tensors: Sequence[Tensor | None], reads: Container[int], results: Flags) -> None:
        self.tensors = [t if i in reads else None for i, t in enumerate(tensors)]
        self.results = results

    def serve(self, present: Sequence[bool]) -> bool:
        """Whether these results, and no others, may be differentiated.

        Args:
            present: for each differentiable result, whether it has a cotangent.
        """
        return all([may for may, there in zip(self.results, present, strict=True) if there])

    def values(self, reads: Container[int], versions: Sequence[int | None]) -> list[Tensor | None]:
        """Return those that are read, and ``None`` in the places of the others.

        Args:
            reads: their places.
            versions: how often each was written to when it was saved.

        Raises:
            RuntimeError: one of those that are read was written to since.
        """
        kept = [t if i in reads else None for i, t in enumerate(self.tensors)]
        for i, tensor in enumerate(kept):
            if tensor is not None:
                check_unchanged(f"value {i} that a compiled function saved", tensor, versions[i])
        return kept
