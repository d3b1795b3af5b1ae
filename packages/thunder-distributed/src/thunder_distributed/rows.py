"""Rows that processes send each other, of each as many as the data say: an exchange of any lengths.

What comes has a fixed number of rows, as many as could come, of which the last are zero. Only those that there are go
out.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

from thunder_autograd import Pullback, vjp_rule
from thunder_distributed import prims
from thunder_distributed.axes import Axis
from thunder_distributed.executor import executor
from thunder_distributed.in_flight import InFlight, Pending, in_flight
from thunder_distributed.prim import COMMUNICATES, DIST_PRIMS, Does, collective
from thunder_ir import DTypeError, OpTags, ShapeError, Symbol, TensorProxy
from thunder_prims import strict
from thunder_prims.derivatives import linear


@collective(Does.EXCHANGE, COMMUNICATES)
def exchange_rows(a: TensorProxy, sends: TensorProxy, receives: TensorProxy, axis: Axis, rows: int) -> InFlight:
    """Begin to send each process the rows that are for it.

    Args:
        a: shape ``(n, ...)``: rows for the first process, for the second one, and so on, and rows for nobody.
        sends: integers, shape ``(processes,)``: how many rows are for each process.
        receives: the same of the rows that come from each.
        axis: over which processes.
        rows: of the result, at least as many as come.

    Returns:
        shape ``(rows, ...)``: what the first process sends, what the second one does, and so on, and zeros.
    """
    for counts in (sends, receives):
        if not counts.dtype.is_integer or tuple(counts.shape) != (axis.size,):
            raise (DTypeError if not counts.dtype.is_integer else ShapeError)(
                f"exchange_rows takes an integer for each of the {axis.size} processes of axis {axis.name!r}, got "
                f"{counts.type_string}"
            )
    return in_flight(a, (rows, *a.shape[1:]))


@vjp_rule(exchange_rows)
def exchange_rows_vjp(
    a: TensorProxy, sends: TensorProxy, receives: TensorProxy, axis: Axis, rows: int
) -> tuple[InFlight, Pullback]:
    """All goes back: what was sent is what comes."""
    count: Any = a.shape[0]

    def pullback(dy: TensorProxy) -> Any:
        return prims.wait(exchange_rows(dy, receives, sends, axis, count)), None, None

    return exchange_rows(a, sends, receives, axis, rows), pullback


linear(exchange_rows)


@executor.implements(exchange_rows)
def send_rows(a: torch.Tensor, sends: torch.Tensor, receives: torch.Tensor, axis: Axis, rows: int) -> Pending:
    """Begin to send rows. How many has to be known before, so this waits for the counts."""
    go, come = sends.tolist(), receives.tolist()
    sent, received = a[: sum(go)].contiguous(), a.new_zeros((rows, *a.shape[1:]))
    work = dist.all_to_all_single(received[: sum(come)], sent, come, go, group=axis.process_group, async_op=True)
    away = sent.numel() - go[axis.rank] * (sent.numel() // max(sum(go), 1))
    axis.ledger.begin(away * a.element_size())
    dtype = str(a.dtype).removeprefix("torch.")
    what = f"exchange_rows of {dtype}{list(a.shape)} over axis {axis.name!r} ({axis.size})"
    return Pending(received, [work], what, axis.ledger, [sent])


# In the user's program ------------------------------------------------------------------------------------------------


def exchanged(counts: Any, axis: Axis) -> Any:
    """Return integers of which each process has sent a part to every other, one process after the other."""
    raise RuntimeError("experts on several processes run in compiled programs: call what parallelize() returned")


def exchanged_rows(a: Any, sends: Any, receives: Any, axis: Axis, rows: int) -> Any:
    """Return the rows that came, and zeros; see :func:`exchange_rows`."""
    raise RuntimeError("experts on several processes run in compiled programs: call what parallelize() returned")


executor.replacements[exchanged] = Symbol(
    "exchanged", DIST_PRIMS, meta=lambda counts, axis: counts.like(),
    decomposition=lambda counts, axis: prims.wait(prims.all_to_all(counts, axis, 0, 0)),
    tags=frozenset({OpTags.CONSTANT_FOR_DERIVATIVE}), language=strict,
    doc="Integers of which each process has sent a part to every other.",
)  # fmt: skip
executor.replacements[exchanged_rows] = Symbol(
    "exchanged_rows", DIST_PRIMS,
    meta=lambda a, sends, receives, axis, rows: a.like(shape=(rows, *a.shape[1:])),
    decomposition=lambda *args: prims.wait(exchange_rows(*args)), language=strict,
    doc="Rows that came from all processes, and zeros.",
)  # fmt: skip

__all__ = ["exchange_rows", "exchanged", "exchanged_rows", "send_rows"]
