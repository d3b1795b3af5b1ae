"""Guards that are not checked because the user answers for what they are about."""

from __future__ import annotations

from collections.abc import Sequence

from thunder_frontend import Transform
from thunder_guards import Guard


class PrunePrologueChecks(Transform):
    """Leave out the guards on what the compiled function holds: the module, its attributes, globals, functions.

    What a call is given is still checked, as is the metadata of parameters. Whoever changes anything else of what the
    program read, such as an attribute of a layer, gets results of the state in which it was compiled.

    Args:
        prune_all_checks: leave out those on the arguments of a call, too, but for the metadata of tensors.

    Example:
        >>> import torch
        >>> from thunder_frontend import jit
        >>> from thunder_transforms import PrunePrologueChecks
        >>> class Scale(torch.nn.Module):
        ...     factor = 2.0
        ...     def forward(self, x):
        ...         return x * self.factor
        >>> model = Scale()
        >>> compiled = jit(model, transforms=[PrunePrologueChecks()])
        >>> compiled(torch.ones(2))
        tensor([2., 2.])
        >>> model.factor = 3.0
        >>> compiled(torch.ones(2)), compiled(torch.ones(1))
        (tensor([2., 2.]), tensor([3.]))
    """

    def __init__(self, prune_all_checks: bool = False) -> None:
        self.prune_all_checks = prune_all_checks

    def transform_guards(self, guards: Sequence[Guard]) -> Sequence[Guard]:
        return [] if self.prune_all_checks else [g for g in guards if g.source.is_of_the_call()]
