"""Guards that are not checked because the user answers for what they are about."""

from __future__ import annotations

from typing import Any

from thunder_frontend import Transform
from thunder_guards.traces import CHECK
from thunder_ir import BoundSymbol, Trace


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

    def transform_traces_pre_prologue(
        self, prologue_trace: Trace, computation_trace: Trace, epilogue_trace: Trace, **kwargs: Any
    ) -> tuple[Trace, Trace, Trace]:
        kept = tuple([bound for bound in prologue_trace.bound_symbols if not self._is_left_out(bound)])
        return prologue_trace.replace(bound_symbols=kept), computation_trace, epilogue_trace

    def _is_left_out(self, bound: BoundSymbol) -> bool:
        return bound.symbol is CHECK and (self.prune_all_checks or not bound.args[0].source.is_of_the_call())
