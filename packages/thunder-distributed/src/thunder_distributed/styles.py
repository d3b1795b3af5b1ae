"""How modules are run in parts: what a plan of tensor parallelism says of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from thunder_distributed.axes import Axis


@dataclass(frozen=True)
class Colwise:
    """Cut a ``Linear``'s outputs, or an ``Embedding``'s features: each process computes a part of them.

    Args:
        gather_output: whether all processes get all of them; otherwise each goes on with its own.
        sequence_dim: of a ``Linear``'s input, if each process has a part of that dimension only; it is gathered.
    """

    gather_output: bool = False
    sequence_dim: int | None = None


@dataclass(frozen=True)
class Rowwise:
    """Cut a ``Linear``'s inputs, or an ``Embedding``'s rows: what each process computes is summed.

    Args:
        cut_input: whether all processes have all inputs; otherwise each has its own, of a column-wise layer.
        sequence_dim: of the output, if each process is to get its part of that dimension of the sum only.
    """

    cut_input: bool = False
    sequence_dim: int | None = None


@dataclass(frozen=True)
class SequenceParallel:
    """Run a ``LayerNorm`` or an ``RMSNorm`` on this process's part of a sequence.

    The gradients of its parameters, which all processes have whole, are summed.
    """


@dataclass(frozen=True)
class WholeSequence:
    """Gather the first argument of a module, of which each process has a part, so that all have it whole.

    Args:
        dim: along which it is cut.
    """

    dim: int = 1


@dataclass(frozen=True)
class ExpertParallel:
    """Leave each process some of the experts of a module, and send it the rows for them.

    The module is called with rows, those for the first expert first, and how many there are for each expert:
    ``experts(x, counts)``, and returns as many. Its parameters have an entry for each expert along their first
    dimension. In a process it gets the rows of all processes for the experts that are there, their counts, and empty
    rows behind them. Batches differ between the processes: apply ``ddp`` or ``fsdp`` over the same ones after it.

    Args:
        capacity: how many rows each process sends to one expert at most; the first ones, and zeros come back of the
            others. So buffers are no larger than that takes. All rows are sent if not given.
    """

    capacity: int | None = None


Style: TypeAlias = Colwise | Rowwise | SequenceParallel | WholeSequence | ExpertParallel


@dataclass(frozen=True)
class Layout:
    """How one module is run in parts."""

    axis: Axis
    style: Style


__all__ = ["Colwise", "ExpertParallel", "Layout", "Rowwise", "SequenceParallel", "Style", "WholeSequence"]
