"""Comparing between processes what they are about to communicate, once for each program."""

from __future__ import annotations

import torch.distributed as dist

from thunder_distributed.axes import Axis
from thunder_distributed.passes.schedule import BEGINS, does
from thunder_distributed.prim import Does
from thunder_ir import BoundSymbol, TensorProxy, Trace


def agree_on_collectives(trace: Trace) -> Trace:
    """Return the program once all processes have the same collectives in the same order.

    Raises:
        DisagreementError: they have not; the message has the first one that differs.
    """
    calls = [bound for bound in trace.bound_symbols if does(bound, *BEGINS, Does.REST)]
    for axis in dict.fromkeys([axis_in(bound) for bound in calls]):
        if axis is not None and axis.group is not None and axis.size > 1:
            lines = [described(bound) for bound in calls if axis_in(bound) is axis]
            ranks = ",".join(map(str, dist.get_process_group_ranks(axis.process_group)))
            axis.ledger.agree(f"{axis.name}:{ranks}", lines, trace.name, axis.patience)
    return trace


def axis_in(bound: BoundSymbol) -> Axis | None:
    """Return the axis that a collective runs over."""
    return next((a for a in bound.args if isinstance(a, Axis)), None)


def described(bound: BoundSymbol) -> str:
    """Return what a collective sends, in a line."""
    value = bound.args[0]
    rest = [repr(a) for a in bound.args[2:] if a is not None]
    kind = value.type_string if isinstance(value, TensorProxy) else repr(value)
    name = bound.symbol.name
    return f"{name} of {kind}{', ' if rest else ''}{', '.join(rest)}"


__all__ = ["agree_on_collectives", "axis_in", "described"]
