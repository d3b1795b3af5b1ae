"""Comparing between processes what they are about to communicate: once for each program, and which one they run."""

from __future__ import annotations

import torch
import torch.distributed as dist

from thunder_distributed.axes import Axis
from thunder_distributed.collectives import all_reduce
from thunder_distributed.ledger import DisagreementError
from thunder_distributed.passes.schedule import BEGINS, as_run_by, does
from thunder_distributed.prim import COMMUNICATES, DIST_PRIMS, Does, Together
from thunder_ir import BoundSymbol, Builder, Device, OpTags, Symbol, TensorProxy, Trace, devices, recording
from thunder_prims import strict
from thunder_torch import to_torch_device

compare = Symbol(
    "compare", DIST_PRIMS, meta=lambda digest, axis, device, program: None, language=strict,
    tags=frozenset({OpTags.DONT_DCE, OpTags.DEVICE_SYNC, COMMUNICATES, Does.COMPARE}),
    doc="Make sure that all processes of an axis run programs that communicate in the same way.",
)  # fmt: skip


def agree_on_collectives(trace: Trace) -> Trace:
    """Return the program once all processes have the same collectives in the same order.

    A call before all others compares at each run which of the programs that were agreed on the processes run.

    Raises:
        DisagreementError: they have not; the message has the first one that differs.
    """
    calls = [bound for bound in trace.bound_symbols if does(bound, *BEGINS, Does.REST)]
    builder = Builder(trace.names())
    with recording(builder):
        for axis in dict.fromkeys([axis_in(bound) for bound in calls]):
            if axis is not None and axis.group is not None and axis.size > 1:
                those = [bound for bound in calls if axis_in(bound) is axis]
                builder.locate = lambda first=those[0]: first.location
                ranks = ",".join(map(str, dist.get_process_group_ranks(axis.process_group)))
                lines = list(map(described, those))
                digest = axis.ledger.agree(f"{axis.name}:{ranks}", lines, trace.name, axis.patience)
                compare(digest, axis, _device_of(those), trace.name)
    if not builder.bound_symbols:
        return trace
    compares = as_run_by(calls[0].symbol.executor, builder.bound_symbols)
    return trace.replace(bound_symbols=(*compares, *trace.bound_symbols))


def _device_of(calls: list[BoundSymbol]) -> Device:
    return next((p.device for b in calls for p in b.inputs if isinstance(p, TensorProxy)), devices.cpu)


@torch.no_grad()
def compare_programs(digest: str, axis: Axis, device: Device, program: str) -> None:
    """Compare which program the processes of an axis run, if they have several.

    Args:
        digest: the hash of what this one communicates.
        axis: over which processes.
        device: of the tensors that are communicated.
        program: its name, for messages.

    Raises:
        DisagreementError: another process runs a program that communicates otherwise. Where reading a number would
            wait for the device, that fails an assertion.
    """
    if not axis.ledger.has_others(digest):
        return
    number = int(digest[:15], 16)
    sent = torch.tensor([number, -number], device=to_torch_device(device))
    same = all_reduce(sent, axis, "max").wait() == sent
    message = (
        f"processes of axis {axis.name!r} run different programs in {program}, of those that all have compiled, and "
        "would combine what does not belong together. Branches differ between the processes: let all of them call the "
        "model in the same way. ddp(..., find_unused_parameters=True) lets each use other parameters"
    )
    if not sent.is_cpu:
        torch._assert_async(same.all(), message)
    elif not same.all():
        raise DisagreementError(message)


def axis_in(bound: BoundSymbol) -> Axis | None:
    """Return the axis that a collective runs over."""
    return next((a for a in bound.args if isinstance(a, Axis)), None)


def described(bound: BoundSymbol) -> str:
    """Return what a collective sends, in a line."""
    value = bound.args[0]
    rest = [] if does(bound, Does.REST) else [repr(a) for a in bound.args[2:] if a is not None]
    rest += [f"places {tag.places}" for tag in bound.tags if isinstance(tag, Together)]
    kind = value.type_string if isinstance(value, TensorProxy) else repr(value)
    name = bound.symbol.name
    return f"{name} of {kind}{', ' if rest else ''}{', '.join(rest)}"


__all__ = ["agree_on_collectives", "axis_in", "compare", "compare_programs", "described"]
